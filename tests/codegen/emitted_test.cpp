// What the compiler writes, rendered and run on the host, against the CPU backend running the same
// KernelIR.
#include "codegen/emitted.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "codegen/host_kernel.h"
#include "support/random_source.h"
#include "tessera/conformance/reference.h"
#include "tessera/runtime/registry.h"

namespace tessera {
namespace {

using Bytes = std::vector<char>;

// Numbers at which no function overflows, and indices that are in range.
Bytes random_bytes(DType dtype, int64_t bytes, RandomSource& random) {
  Bytes result(size_t(bytes), 0);
  visit(dtype, [&]<class T>() {
    for (size_t at = 0; at + sizeof(T) <= result.size(); at += sizeof(T)) {
      T value{};
      if constexpr (std::is_integral_v<T>) {
        value = T(random.below(2));
      } else {
        value = T(float(random.unit() * 1.5 + 0.125));
      }
      std::memcpy(&result[at], &value, sizeof value);
    }
  });
  return result;
}

// A vector whose elements lie 16 bytes aligned.
struct Aligned {
  std::vector<std::max_align_t> storage;
  explicit Aligned(const Bytes& bytes) : storage(bytes.size() / sizeof(std::max_align_t) + 1) {
    std::memcpy(storage.data(), bytes.data(), bytes.size());
  }
  char* data() { return reinterpret_cast<char*>(storage.data()); }
};

std::vector<Bytes> run_on_cpu(const EmittedKernel& kernel, const std::vector<Bytes>& operands) {
  Backend& cpu = backend("cpu");
  KernelCall call;
  call.ir = kernel.ir;
  std::vector<Buffer> buffers;
  std::vector<BufferRef> refs;
  call.outputs = 0;
  for (size_t i = 0; i < operands.size(); ++i) {
    const IrOperand& operand = kernel.ir->operands[i];
    const int64_t bytes = int64_t(operands[i].size());
    call.outputs += operand.is_output;
    call.operands.push_back({operand.dtype, contiguous_view({bytes / size_of(operand.dtype)})});
    buffers.push_back({cpu.allocate(bytes), 0, bytes});
    cpu.upload(ref(buffers.back()), operands[i].data(), bytes, {});
    refs.push_back(ref(buffers.back()));
  }
  cpu.launch(*cpu.compile(call), refs, kernel.ir->extents[0], {});
  std::vector<Bytes> results = operands;
  for (size_t i = 0; i < operands.size(); ++i) {
    cpu.download(results[i].data(), refs[i], int64_t(results[i].size()), {});
  }
  return results;
}

std::vector<Bytes> run_on_host(const EmittedKernel& kernel, const HostKernel& host,
                               const std::vector<Bytes>& operands) {
  std::vector<Aligned> storage(operands.begin(), operands.end());
  std::vector<void*> pointers;
  for (Aligned& operand : storage) pointers.push_back(operand.data());
  const int64_t extent0 = kernel.ir->extents[0];
  const int error = !host.rendered().fold_entry.empty() ? host.run_split(pointers, extent0, 3)
                                                        : host.run(pointers, extent0);
  EXPECT_EQ(error, 0);
  std::vector<Bytes> results = operands;
  for (size_t i = 0; i < results.size(); ++i) {
    std::memcpy(results[i].data(), pointers[i], results[i].size());
  }
  return results;
}

// Equal, or as close as two orders of summation and two libraries' functions are.
void expect_close(const KernelIR& ir, const std::vector<Bytes>& actual,
                  const std::vector<Bytes>& expected) {
  for (size_t k = 0; k < actual.size(); ++k) {
    const DType dtype = ir.operands[k].dtype;
    visit(dtype, [&]<class T>() {
      const auto at = [](const Bytes& bytes, size_t i) {
        T value{};
        std::memcpy(&value, &bytes[i * sizeof(T)], sizeof value);
        return double(value);
      };
      const size_t count = actual[k].size() / sizeof(T);
      double largest = 1e-3;
      size_t differing = 0;
      for (size_t i = 0; i < count; ++i) {
        const double y = at(expected[k], i);
        if (std::isfinite(y)) largest = std::max(largest, std::fabs(y));
      }
      const double slack = is_float(dtype) ? 64 * ulp(dtype, largest) : 0;
      for (size_t i = 0; i < count; ++i) {
        const double x = at(actual[k], i), y = at(expected[k], i);
        differing += !(x == y || std::fabs(x - y) <= slack || (std::isnan(x) && std::isnan(y)));
      }
      EXPECT_EQ(differing, 0u) << "operand " << k << " of " << count << " elements";
    });
  }
}

std::vector<RenderOptions> variants(const KernelIR& ir) {
  std::vector<RenderOptions> result = {
      {.max_group_size = 64},
      {.max_group_size = 16, .alignment = 16, .narrow_index = true},
  };
  if (can_split(ir)) {
    result.push_back({.max_group_size = 64, .alignment = 16, .narrow_index = true, .split = true});
  }
  return result;
}

void expect_right(const EmittedKernel& kernel, const RenderOptions& options) {
  RandomSource random(7);
  std::vector<Bytes> operands;
  for (size_t i = 0; i < kernel.bytes.size(); ++i) {
    operands.push_back(random_bytes(kernel.ir->operands[i].dtype, kernel.bytes[i], random));
  }
  const std::vector<Bytes> expected = run_on_cpu(kernel, operands);
  const HostKernel host(*kernel.ir, options);
  const std::vector<Bytes> actual = run_on_host(kernel, host, operands);
  expect_close(*kernel.ir, actual, expected);
  if (testing::Test::HasFailure()) {
    FAIL() << kernel.from << "\n" << to_string(*kernel.ir) << host.rendered().source;
  }
  EXPECT_EQ(run_on_host(kernel, host, operands), actual) << "results do not repeat";
}

class Emitted : public testing::Test {
 protected:
  void SetUp() override {
    const std::string reason = host_compiler_missing();
    if (!reason.empty()) GTEST_SKIP() << reason;
  }
};

TEST(EmittedPieces, TakeFewKernels) {
  for (const Piece& piece : network_pieces(DType::f32)) {
    EXPECT_EQ(emitted_kernels(piece.outputs, piece.name).size(), piece.kernels) << piece.name;
  }
}

TEST_F(Emitted, PiecesOfNetworksAreRight) {
  size_t number = 0;
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const Piece& piece : network_pieces(dtype)) {
      if (dtype == DType::bf16 && ++number % 4 != 1) continue;
      SCOPED_TRACE(cat(piece.name, " ", dtype));
      for (const EmittedKernel& kernel : emitted_kernels(piece.outputs, piece.name)) {
        const std::vector<RenderOptions> all = variants(*kernel.ir);
        expect_right(kernel, all[dtype == DType::f32 ? all.size() - 1 : 1]);
        if (HasFatalFailure()) return;
      }
    }
  }
}

// A sample, because each text goes through the C++ compiler: TESSERA_CODEGEN_ALL=1 takes all.
TEST_F(Emitted, KernelsOfTheConformanceTableAreRight) {
  const bool all = std::getenv("TESSERA_CODEGEN_ALL") != nullptr;
  const std::vector<EmittedKernel> kernels = conformance_kernels(false);
  const size_t step = all ? 1 : std::max<size_t>(1, kernels.size() / 25);
  for (size_t i = 0; i < kernels.size(); i += step) {
    SCOPED_TRACE(kernels[i].from);
    const std::vector<RenderOptions> options = variants(*kernels[i].ir);
    expect_right(kernels[i], options[i / step % options.size()]);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace tessera
