// The CUDA backend as the engine sees it: memory, recorded programs, kernels, errors.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <sstream>

#include "cuda_stand_in/stand_in_test.h"
#include "io/temp_folder.h"
#include "support/expect_error.h"
#include "tessera/backend/cuda/compiler.h"
#include "tessera/backend/cuda/kernels/kernel.h"
#include "tessera/backend/cuda/kernels/layer_norm_backward.h"
#include "tessera/backend/cuda/kernels/product.h"
#include "tessera/backend/cuda/libraries.h"
#include "tessera/base/precision.h"
#include "tessera/exec/kernel_cache.h"
#include "tessera/runtime/caching_allocator.h"
#include "tessera/runtime/counters.h"
#include "tessera/tessera.h"

namespace tessera::test {
namespace {

class CudaBackendTest : public OnStandIn<> {};

Backend& device() { return backend(kCuda); }

std::vector<float> numbers(size_t n) {
  std::vector<float> result(n);
  std::iota(result.begin(), result.end(), 1.0f);
  return result;
}

std::vector<float> read(BufferRef from, size_t n) {
  std::vector<float> result(n);
  device().download(result.data(), from, int64_t(4 * n), Stream{});
  return result;
}

TEST_F(CudaBackendTest, DescribesItself) {
  const Target& target = device().target();
  EXPECT_EQ(target.device, "cuda:0");
  EXPECT_EQ(target.description,
            "Stand-in, 4 multiprocessors, compute capability 9.0, driver for CUDA 13.0");
  EXPECT_EQ(target.memory_bytes, int64_t(1) << 30);
  for (const char* kernel : {"matmul", "attention", "scatter_add", "sort", "copy", "custom"}) {
    EXPECT_TRUE(target.has(kernel)) << kernel;
  }
  EXPECT_EQ(error_text([] { backend("cuda:99"); }),
            "Failed to initialize CUDA device 99: 1 device found");
}

TEST_F(CudaBackendTest, CopiesBothWaysAtOffsets) {
  const auto memory = device().allocate(64), other = device().allocate(64);
  device().upload({memory->handle, 16}, numbers(4).data(), 16, Stream{});
  device().copy({other->handle, 4}, {memory->handle, 16}, 16, Stream{});
  EXPECT_EQ(read({other->handle, 8}, 3), (std::vector<float>{2, 3, 4}));
  device().upload({memory->handle, 0}, numbers(4).data(), 16, Stream{1});
  device().synchronize(Stream{1});
  EXPECT_EQ(read({memory->handle, 0}, 4), numbers(4));
}

// More than all of the pinned memory that uploads go through, in pieces of odd sizes.
TEST_F(CudaBackendTest, UploadsAnyAmount) {
  const std::vector<float> large = numbers(size_t(25) << 20);
  const auto memory = device().allocate(int64_t(4 * large.size()));
  device().upload({memory->handle, 0}, large.data(), int64_t(4 * large.size()), Stream{});
  EXPECT_EQ(read({memory->handle, 0}, large.size()), large);
  for (size_t i = 0; i < 3000; ++i) {
    const std::vector<float> part = numbers(i % 97 * 700);
    device().upload({memory->handle, 0}, part.data(), int64_t(4 * part.size()), Stream{});
    if (i % 500 == 499) EXPECT_EQ(read({memory->handle, 0}, part.size()), part);
  }
}

TEST_F(CudaBackendTest, SaysWhatItCouldNotAllocate) {
  const int64_t bytes = int64_t(1) << 40;
  for (const bool arena : {false, true}) {
    const std::string text =
        error_text([&] { arena ? device().allocate_arena(bytes) : device().allocate(bytes); });
    EXPECT_EQ(text.find(cat("cuda:0: out of memory: asked for ", bytes, " bytes; ")), 0u) << text;
    EXPECT_TRUE(text.ends_with(" of 1073741824 are free")) << text;
  }
}

// What was captured keeps its address while the arena grows.
TEST_F(CudaBackendTest, AnArenaGrowsWhereItIs) {
  const CounterValues before = counters().snapshot();
  {
    const auto arena = device().allocate_arena(1000);
    void* const address = arena->handle;
    device().upload({address, 0}, numbers(100).data(), 400, Stream{});
    for (const int64_t bytes : {int64_t(5) << 20, int64_t(100) << 20, int64_t(300) << 20}) {
      EXPECT_TRUE(device().extend(*arena, bytes));
      EXPECT_EQ(arena->handle, address);
      EXPECT_EQ(arena->bytes, bytes);
      device().upload({address, bytes - 400}, numbers(100).data(), 400, Stream{});
    }
    EXPECT_EQ(read({address, 0}, 100), numbers(100));
    EXPECT_NE(error_text([&] {
                device().extend(*arena, int64_t(2) << 30);
              }).find("cuda:0: out of memory: asked for 2147483648 bytes; "),
              std::string::npos);
    EXPECT_FALSE(device().extend(*device().allocate(64), 128));
  }
  EXPECT_EQ(counters().snapshot().bytes_in_use, before.bytes_in_use);
}

// Results that are kept make the program write elsewhere: other buffers, other recordings.
TEST_F(CudaBackendTest, RecordingsFollowTheirBuffers) {
  auto twice = compile([](const Tensor& x) { return x * 2.f + 1.f; });
  std::vector<Tensor> kept;
  for (int i = 0; i < 30; ++i) kept.push_back(twice(tensor<float>({float(i), 1}, {2})));
  for (int i = 0; i < 30; ++i) {
    EXPECT_EQ(kept[size_t(i)].to_vector<float>(), (std::vector<float>{2 * float(i) + 1, 3}));
  }
}

TEST_F(CudaBackendTest, AnIndexOutOfRangeIsAnError) {
  const Tensor table = arange(10, DType::f32);
  table.eval();
  auto look_up = compile([&](const Tensor& index) { return take(table, index, 0); });
  for (int i = 0; i < 4; ++i) {  // recorded at last
    EXPECT_EQ(look_up(tensor<int64_t>({3, i}, {2})).to_vector<float>(),
              (std::vector<float>{3, float(i)}));
  }
  const std::string text = error_text([&] {
    look_up(tensor<int64_t>({3, 10}, {2})).to_vector<float>();
  });
  EXPECT_NE(text.find("an index is out of range [0, 10)"), std::string::npos) << text;
  EXPECT_EQ(look_up(tensor<int64_t>({9, 0}, {2})).to_vector<float>(), (std::vector<float>{9, 0}))
      << "the flag is taken back";
}

TEST_F(CudaBackendTest, KeepsTheSourceThatDoesNotCompile) {
  const std::string source = "extern \"C\" __global__ void broken(float* y) { y[0] = nonsense; }";
  cuda::Session session(0, cuda::devices().list[0], "cuda:0");
  const std::string text = full_error_text([&] { session.build("broken", source, "broken"); });
  EXPECT_EQ(text.find("broken: the kernel does not compile for cuda:0 (Stand-in, sm_90a, NVRTC "
                      "13.0): "),
            0u)
      << text;
  EXPECT_NE(text.find("nonsense"), std::string::npos) << text;
  const std::string before = "; its source is kept in ";
  const std::string path = text.substr(text.find(before) + before.size());
  std::ostringstream kept;
  kept << std::ifstream(path).rdbuf();
  EXPECT_EQ(kept.str(), source);
  std::filesystem::remove(path);
}

TEST_F(CudaBackendTest, SaysWhatDoesNotFitAKernel) {
  const std::string source = "extern \"C\" __global__ void one(float* y) { y[0] = 1; }";
  cuda::Session session(0, cuda::devices().list[0], "cuda:0");
  EXPECT_EQ(error_text([&] { session.build("op", source, "two"); }),
            "op: its source has no kernel 'two' for cuda:0: named symbol not found (500)");
  const auto kernel = session.build("op", source, "one");
  gpu::Range large;
  large.group[0] = 2048;
  void* nothing = nullptr;
  EXPECT_EQ(error_text([&] { (*kernel)(Stream{}, large, nothing); }),
            "op: cuda:0 reports: invalid argument (1)");
  gpu::Range none;
  none.groups[0] = 0;
  (*kernel)(Stream{}, none, nothing);
  session.finish(Stream{});
  EXPECT_EQ(error_text([&] { session.free(1); }),
            "CUDA: freeing memory failed: invalid argument (1)");
}

TEST_F(CudaBackendTest, SaysWhatTheCompilerLacks) {
  const std::string source = "extern \"C\" __global__ void one(float* y) { y[0] = 5; }";
  cuda::DeviceInfo old = cuda::devices().list[0];
  old.major = 5;
  cuda::Session session(0, old, "cuda:0");
  EXPECT_EQ(error_text([&] { session.build("op", source, "one"); }),
            "op: NVRTC 13.0 knows no architecture of cuda:0 (compute capability 5.0)");
  std::string out;  // of this program, in a process that has no compiler
  const std::string command = "TESSERA_NVRTC_LIBRARY=libnone.so.1 " +
                              std::filesystem::read_symlink("/proc/self/exe").native() +
                              " --gtest_filter=CudaBackendTest.RunsAUsersKernel 2>&1";
  FILE* pipe = ::popen(command.c_str(), "r");
  char block[4096];
  for (size_t n = 0; (n = ::fread(block, 1, sizeof block, pipe)) > 0;) out.append(block, n);
  EXPECT_NE(::pclose(pipe), 0);
  EXPECT_NE(out.find("kernels for cuda:0 need NVIDIA's run-time compiler: libnone.so.1 not found"),
            std::string::npos)
      << out;
}

TEST_F(CudaBackendTest, ADriverMayRefuseAKernel) {
  const std::string source = "extern \"C\" __global__ void one(float* y) { y[0] = 6; }";
  cuda::Session session(0, cuda::devices().list[0], "cuda:0");
  session.enter();
  tell(STAND_IN_DRIVER, "stand_in_refuse", true);
  EXPECT_EQ(error_text([&] { session.build("op", source, "one"); }),
            "op: cuda:0 does not take the kernel that was compiled for it");
  tell(STAND_IN_DRIVER, "stand_in_refuse", false);
  session.build("op", source, "one");
}

TEST_F(CudaBackendTest, RunsAUsersKernel) {
  const CustomFunction scale = custom_op(
      {.name = "scale",
       .types = [](std::span<const Type> inputs) { return std::vector<Type>{inputs[0]}; },
       .cuda = "extern \"C\" __global__ void scale(const float* x, float* y, long long n) {\n"
               "  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;\n"
               "  if (i < n) y[i] = 3 * x[i];\n}\n"});
  const Tensor x = arange(1000, DType::f32);
  EXPECT_EQ(sum(scale(x)).item(), 3 * 499500);
}

// Every way the operands of a product may lie, against the CPU.
TEST_F(CudaBackendTest, ProductsOfAnyLayout) {
  const auto make = [](Device where, DType dtype, int way) {
    set_default_device(where);
    const auto numbers_of = [&](const Shape& shape, float step) {
      std::vector<float> values(size_t(numel(shape)));
      for (size_t i = 0; i < values.size(); ++i) values[i] = std::sin(step * float(i));
      const Tensor whole = tensor(values, shape);
      return dtype == DType::f32 ? whole : cast(whole, dtype);
    };
    Tensor a = numbers_of(way & 1 ? Shape{3, 2, 20, 12} : Shape{3, 2, 12, 20}, 0.3f);
    Tensor b = numbers_of(way & 2 ? Shape{3, 2, 17, 20} : Shape{3, 2, 20, 17}, 0.7f);
    if (way & 1) a = transpose(a, 2, 3);
    if (way & 2) b = transpose(b, 2, 3);
    if (way & 4) a = slice(a, 1, 0, 1);   // one of a pair, for both
    if (way & 8) b = slice(b, 3, 3, 14);  // columns in the middle
    if (way & 16) a = transpose(a, 0, 1), b = transpose(b, 0, 1);
    Tensor c = matmul(a, b);
    if (way & 32) c = transpose(c, 2, 3);
    if (dtype != DType::f32) c = cast(c, DType::f32);
    return c.to_vector<float>();
  };
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16}) {
    for (int way = 0; way < 64; way += dtype == DType::f32 ? 1 : 31) {
      SCOPED_TRACE(cat(name(dtype), " ", way));
      const std::vector<float> here = make(kCuda, dtype, way);
      const std::vector<float> there = make(DeviceKind::cpu, dtype, way);
      ASSERT_EQ(here.size(), there.size());
      const double tolerance = is_half(dtype) ? 0.04 : 1e-5;
      for (size_t i = 0; i < here.size(); ++i) ASSERT_NEAR(here[i], there[i], tolerance) << i;
    }
  }
}

// Rows of one warp, of a whole group, and too long or too odd for registers.
TEST_F(CudaBackendTest, GradientsOfNorms) {
  const auto gradients = [](Device where, DType dtype, int64_t rows, int64_t columns) {
    set_default_device(where);
    const auto numbers_of = [&](const Shape& shape, float step) {
      std::vector<float> values(size_t(numel(shape)));
      for (size_t i = 0; i < values.size(); ++i) values[i] = std::sin(step * float(i));
      return cast(tensor(values, shape), dtype);
    };
    const Tensor x = numbers_of({rows, columns}, 0.37f), g = numbers_of({rows, columns}, 0.11f);
    const Tensor gamma = numbers_of({columns}, 0.7f), beta = numbers_of({columns}, 0.2f);
    std::vector<std::vector<float>> values;
    for (const Tensor& each : grad(sum(layer_norm(x, gamma, beta) * g), {x, gamma, beta})) {
      values.push_back(cast(each, DType::f32).to_vector<float>());
    }
    return values;
  };
  for (const auto& [rows, columns, dtype] :
       {std::tuple(50, 64, DType::f32), std::tuple(37, 768, DType::bf16),
        std::tuple(9, 2048, DType::f16), std::tuple(70, 33, DType::f32),
        std::tuple(5, 33, DType::f64), std::tuple(3, 20000, DType::f32)}) {
    SCOPED_TRACE(cat(rows, " ", columns, " ", name(dtype)));
    const auto here = gradients(kCuda, dtype, rows, columns);
    const auto there = gradients(DeviceKind::cpu, dtype, rows, columns);
    for (size_t k = 0; k < 3; ++k) {
      ASSERT_EQ(here[k].size(), there[k].size());
      for (size_t i = 0; i < here[k].size(); ++i) {
        const double tolerance =
            (is_half(dtype) ? 0.02 : 2e-5) * std::max(1.f, std::abs(there[k][i]));
        EXPECT_NEAR(here[k][i], there[k][i], tolerance) << k << " " << i;
      }
    }
  }
}

std::vector<std::string> labels(const Program& program) {
  std::vector<std::string> result;
  for (const Instruction& instruction : program.instructions) result.push_back(instruction.label);
  return result;
}

// gelu(x w + b) and its gradients: the library does on its way out of a product what it can.
TEST_F(CudaBackendTest, ProductsTakeWhatStandsBesideThem) {
  matmul(ones({2, 2}), ones({2, 2})).eval();  // opens the library
  for (const bool library : {true, false}) {
    tell(STAND_IN_PRODUCTS, "stand_in_refuse_epilogues", !library);
    for (const DType dtype : {DType::f32, DType::bf16, DType::f64}) {
      // Of other shapes: algorithms that were found are kept.
      for (const int64_t columns : library ? std::vector{24, 7} : std::vector{32, 9}) {
        std::vector<std::vector<std::vector<float>>> results;
        for (const Device where : {kCuda, Device(DeviceKind::cpu)}) {
          set_default_device(where);
          const auto made = [&](const Shape& shape, int seed) {
            return cast(Random(uint64_t(seed)).uniform(shape) - 0.5f, dtype);
          };
          const Tensor x = made({2, 8, 16}, 1), w = made({16, columns}, 2), b = made({columns}, 3);
          const Tensor g = made({2, 8, columns}, 4), c = made({16}, 5);
          const auto step = compile([&](const Tensor& in) {
            const Tensor y = gelu_tanh(matmul(in, w) + b);
            std::vector<Tensor> all = {y};
            const std::vector<Tensor> of = {in, w, b};
            for (const Tensor& gradient : grad(sum(y * g), of)) all.push_back(gradient);
            const Tensor z = gelu_tanh(matmul(y, transpose(w)) + c);
            all.push_back(z);
            const std::vector<Tensor> of_first = {in, b};
            for (const Tensor& gradient : grad(sum(z), of_first)) all.push_back(gradient);
            return all;
          });
          std::vector<std::vector<float>> values;
          for (const Tensor& result : step(x)) {
            values.push_back(cast(result, DType::f32).to_vector<float>());
          }
          results.push_back(std::move(values));
          const std::vector<std::string> kernels = labels(step.program());
          const bool is_gpu = where == kCuda;
          const auto count = [&](const char* name) {
            return std::count(kernels.begin(), kernels.end(), name);
          };
          const bool joins = is_gpu ? dtype != DType::f64 : dtype == DType::f32;
          EXPECT_EQ(count("linear"), joins ? 2 : 0);
          EXPECT_EQ(count("linear_slope"), joins ? 1 : 0);
        }
        set_default_device(kCuda);
        for (size_t k = 0; k < results[0].size(); ++k) {
          for (size_t i = 0; i < results[0][k].size(); ++i) {
            const double expected = results[1][k][i];
            const double tolerance = is_half(dtype) ? 0.03 : 1e-5;
            EXPECT_NEAR(results[0][k][i], expected, tolerance * std::max(1.0, std::abs(expected)))
                << dtype << " " << columns << " result " << k << " element " << i;
          }
        }
      }
    }
  }
  tell(STAND_IN_PRODUCTS, "stand_in_refuse_epilogues", false);
}

TEST(CudaNorms, AreDividedByTheirLength) {
  const auto plan = [](int64_t columns, DType dtype) {
    const cuda::NormPlan p = cuda::plan_norm(columns, dtype);
    return std::tuple(p.held, p.team, p.vector, p.vectors);
  };
  EXPECT_EQ(plan(768, DType::bf16), std::tuple(true, 96, 8, 1));
  EXPECT_EQ(plan(768, DType::f32), std::tuple(true, 192, 4, 1));
  EXPECT_EQ(plan(1024, DType::bf16), std::tuple(true, 128, 8, 1));
  EXPECT_EQ(plan(8192, DType::bf16), std::tuple(true, 512, 8, 2));
  EXPECT_EQ(plan(96, DType::f32), std::tuple(true, 32, 4, 1));
  EXPECT_EQ(plan(33, DType::f32), std::tuple(true, 64, 1, 1));
  EXPECT_EQ(cuda::plan_norm(768, DType::f32, 1).vector, 1);  // a view that starts at an odd element
  EXPECT_EQ(cuda::plan_norm(768, DType::bf16, 4).vector, 4);
  EXPECT_FALSE(std::get<0>(plan(50257, DType::bf16)));
  KernelCall call;
  call.kernel = "layer_norm_backward";
  EXPECT_EQ(error_text([&] { device().compile(call); }),
            "layer_norm_backward: expected 8 operands, got 0");
}

TEST_F(CudaBackendTest, SaysWhatCublasLtRefuses) {
  const auto multiply = [](int64_t n) {
    const Tensor ones = tensor(std::vector<float>(size_t(n * n), 1.f), {n, n});
    return matmul(ones, ones).to_vector<float>()[0];
  };
  EXPECT_EQ(multiply(21), 21);
  tell(STAND_IN_PRODUCTS, "stand_in_refuse_products", true);
  EXPECT_NE(error_text([&] {
              multiply(23);
            }).find("matmul: cuBLASLt knows no algorithm for cuBLASLt f32 N23x23/23"),
            std::string::npos);
  EXPECT_NE(
      error_text([&] { multiply(21); }).find("matmul: cuBLASLt failed at a product: status 7"),
      std::string::npos);
  tell(STAND_IN_PRODUCTS, "stand_in_refuse_products", false);
  EXPECT_EQ(multiply(21), 21);
}

// A Var that products are added to, in its own memory; and products that are added to a matrix that
// lies otherwise.
TEST_F(CudaBackendTest, ProductsAreAdded) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    std::vector<std::vector<float>> results;
    for (const Device where : {kCuda, Device(DeviceKind::cpu)}) {
      set_default_device(where);
      const auto made = [&](const Shape& shape, int seed) {
        return cast(Random(uint64_t(seed)).uniform(shape) - 0.5f, dtype);
      };
      const Var total(made({16, 24}, 1), "total");
      const Tensor g = made({8, 24}, 2), turned = made({24, 16}, 3);
      const auto step = compile([&](const Tensor& x) {
        total.assign(total + matmul(transpose(x), g));
        return matmul(transpose(x), g * 2.0f) + transpose(turned);
      });
      Tensor sum;
      for (int i = 0; i < 3; ++i) sum = step(made({8, 16}, 4 + i));
      for (const Tensor& each : {total.value(), sum}) {
        results.push_back(cast(each, DType::f32).to_vector<float>());
      }
      if (where != kCuda) continue;
      const std::vector<std::string> kernels = labels(step.program());
      EXPECT_EQ(std::count(kernels.begin(), kernels.end(), "matmul_add"), 2);
      EXPECT_EQ(step.program().report.donated, 1);
    }
    set_default_device(kCuda);
    for (size_t k = 0; k < 2; ++k) {
      for (size_t i = 0; i < results[k].size(); ++i) {
        ASSERT_NEAR(results[k][i], results[k + 2][i], dtype == DType::f32 ? 1e-5 : 0.05) << i;
      }
    }
  }
}

TEST(CudaProducts, RoundToTf32WhereThatIsAllowed) {
  KernelCall call;
  call.kernel = "matmul";
  for (int i = 0; i < 3; ++i) call.operands.push_back({DType::f32, contiguous_view({8, 8})});
  const bool before = set_tf32(true);
  const std::string key = kernel_key(call);
  EXPECT_TRUE(cuda::panel_product(call)->tf32);
  set_tf32(false);
  EXPECT_FALSE(cuda::panel_product(call)->tf32);
  EXPECT_NE(kernel_key(call), key) << "a kernel of the other kind would be found";
  set_tf32(true);
  for (OperandView& operand : call.operands) operand.dtype = DType::bf16;
  EXPECT_FALSE(cuda::panel_product(call)->tf32);
  set_tf32(before);
}

TEST(CudaProducts, AreSeenAsPanels) {
  const auto call = [](View a, View b, View c) {
    KernelCall made;
    made.kernel = "matmul";
    for (const View& view : {a, b, c}) made.operands.push_back({DType::bf16, view});
    return made;
  };
  const View a = contiguous_view({4, 6, 8, 16}), b = contiguous_view({4, 6, 16, 32}),
             c = contiguous_view({4, 6, 8, 32});
  const auto plain = cuda::panel_product(call(a, b, c));
  ASSERT_TRUE(plain);
  EXPECT_TRUE(plain->swapped);
  EXPECT_FALSE(plain->first.transposed);
  EXPECT_EQ(plain->first.rows, 32);
  EXPECT_EQ(plain->batch.extent, 24);
  EXPECT_EQ(plain->batch.b, 16 * 32);
  EXPECT_TRUE(plain->loops.empty());
  View shared = b;  // one b for each of the four
  shared.strides[0] = 0;
  const auto two = cuda::panel_product(call(a, shared, c));
  ASSERT_TRUE(two);
  EXPECT_EQ(two->batch.extent, 6);
  ASSERT_EQ(two->loops.size(), 1u);
  EXPECT_EQ(two->loops[0].extent, 4);
  View wide = a;
  wide.strides[3] = 2;
  EXPECT_FALSE(cuda::panel_product(call(wide, b, c))) << "no dimension is contiguous";
}

TEST(CudaCompiler, ChoosesAnArchitecture) {
  const std::vector<int> known = {75, 80, 86, 90, 100, 120};
  EXPECT_EQ(cuda::architecture_for(9, 0, known), "sm_90a");
  EXPECT_EQ(cuda::architecture_for(8, 0, known), "sm_80");
  EXPECT_EQ(cuda::architecture_for(8, 9, known), "compute_86");
  EXPECT_EQ(cuda::architecture_for(12, 1, known), "compute_120");
  EXPECT_EQ(cuda::architecture_for(7, 0, known), "");
  EXPECT_EQ(cuda::cluster_groups("sm_90a"), 8);
  EXPECT_EQ(cuda::cluster_groups("compute_120"), 8);
  EXPECT_EQ(cuda::cluster_groups("compute_86"), 1);
  EXPECT_EQ(cuda::cluster_groups(""), 1);
}

TEST(CudaLibraries, AreLookedForInFolders) {
  const TempFolder folder;
  write_text(folder / "libone.so.1", "");
  const char* const names[] = {"libone.so.1", "libtwo.so.2"};
  const std::vector<std::string> folders = {folder.path().native(), "/no/such/folder"};
  EXPECT_EQ(
      cuda::library_files(names, folders),
      (std::vector<std::string>{"libone.so.1", "libtwo.so.2", (folder / "libone.so.1").native()}));
}

TEST(CudaDriver, SaysWhatIsMissing) {
  EXPECT_EQ(cuda::open_driver("libnone.so.1").absent, "libnone.so.1 not found");
  EXPECT_EQ(cuda::open_driver("libm.so.6").absent,
            "libm.so.6 has no cuInit: the driver is too old");
}

}  // namespace
}  // namespace tessera::test
