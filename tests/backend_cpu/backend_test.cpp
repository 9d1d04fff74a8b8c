// The backend as the engine sees it: memory, copies, counters, calls without a graph, errors.
#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "backend_cpu/named_kernels.h"
#include "tessera/backend/cpu/isa.h"
#include "tessera/backend/cpu/scratch.h"
#include "tessera/runtime/caching_allocator.h"
#include "tessera/runtime/counters.h"
#include "tessera/runtime/registry.h"

namespace tessera::test {
namespace {

TEST(CpuBackend, DescribesItself) {
  const Target& target = test_backend().target();
  EXPECT_EQ(target.device, "cpu");
  EXPECT_NE(target.description.find(name(cpu::isa())), std::string::npos) << target.description;
  EXPECT_NE(target.description.find("thread"), std::string::npos) << target.description;
  EXPECT_GT(target.memory_bytes, int64_t(1) << 28);
  for (const char* kernel : {"matmul", "softmax", "layer_norm", "layer_norm_backward", "cumsum",
                             "cumprod", "sort", "topk", "scatter_add", "scatter", "update_slice",
                             "attention", "attention_backward", "copy"}) {
    EXPECT_TRUE(target.has(kernel)) << kernel;
  }
  EXPECT_FALSE(target.has("fft"));
}

TEST(CpuBackend, AllocatesAligned) {
  for (int64_t bytes : {0, 1, 63, 64, 1000, 1 << 20}) {
    const auto memory = test_backend().allocate(bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory->handle) % 64, 0u);
    EXPECT_EQ(memory->bytes, bytes);
  }
}

TEST(CpuBackend, SaysWhatItCouldNotAllocate) {
  for (int64_t bytes : {int64_t(1) << 56, int64_t(1) << 62}) {
    EXPECT_EQ(error_of([&] { test_backend().allocate(bytes); }),
              cat("cpu: out of memory: asked for ", bytes, " bytes"));
  }
  EXPECT_EQ(error_of([] { cpu::scratch(cpu::Scratch::tile, int64_t(1) << 56); }),
            cat("cpu: out of memory: asked for ", int64_t(1) << 56, " bytes of scratch"));
}

TEST(CpuBackend, CountsWhatItDoes) {
  const CounterValues before = counters().snapshot();
  {
    const auto a = test_backend().allocate(1000), b = test_backend().allocate(24);
    const CounterValues during = counters().snapshot();
    EXPECT_EQ(during.allocations - before.allocations, 2);
    EXPECT_EQ(during.bytes_in_use - before.bytes_in_use, 1024);
    EXPECT_GE(during.peak_bytes, during.bytes_in_use);
  }
  EXPECT_EQ(counters().snapshot().bytes_in_use, before.bytes_in_use);
  std::vector<Operand> o = {dense(random_array(DType::f32, 6, 0, 1), {6}),
                            dense(Array(DType::f32, 6), {6})};
  call("softmax", o, 1);
  const CounterValues after = counters().snapshot();
  EXPECT_EQ(after.compiles - before.compiles, 1);
  EXPECT_EQ(after.launches - before.launches, 1);
}

TEST(CpuBackend, CopiesBothWays) {
  const auto memory = test_backend().allocate(64), other = test_backend().allocate(64);
  const std::vector<float> in = {1, 2, 3, 4};
  std::vector<float> out(4);
  test_backend().upload({memory->handle, 16}, in.data(), 16, Stream{});
  test_backend().copy({other->handle, 0}, {memory->handle, 16}, 16, Stream{});
  test_backend().download(out.data(), {other->handle, 0}, 16, Stream{});
  test_backend().synchronize(Stream{});
  EXPECT_EQ(in, out);
}

TEST(CpuBackend, RunsANamedKernelWithoutAGraph) {
  CachingAllocator allocator(test_backend());
  const std::vector<float> a = {1, 2, 3, 4, 5, 6}, b = {1, 0, 0, 1, 1, 1};
  const std::vector<Buffer> buffers = {allocator.allocate(24), allocator.allocate(24),
                                       allocator.allocate(16)};
  test_backend().upload(ref(buffers[0]), a.data(), 24, Stream{});
  test_backend().upload(ref(buffers[1]), b.data(), 24, Stream{});
  KernelCall product;
  product.kernel = "matmul";
  product.operands = {{DType::f32, contiguous_view({2, 3})},
                      {DType::f32, contiguous_view({3, 2})},
                      {DType::f32, contiguous_view({2, 2})}};
  call_kernel(test_backend(), product, buffers);
  std::vector<float> c(4);
  test_backend().download(c.data(), ref(buffers[2]), 16, Stream{});
  EXPECT_EQ(c, (std::vector<float>{4, 5, 10, 11}));
  EXPECT_EQ(error_of([&] { call_kernel(test_backend(), product, std::span(buffers).subspan(1)); }),
            "call_kernel: expected 3 buffers, got 2");
}

TEST(CpuBackend, RefusesUnknownKernelsAndWrongCounts) {
  KernelCall call;
  call.kernel = "fft";
  EXPECT_EQ(error_of([&] { test_backend().compile(call); }),
            "cpu: expected the name of a kernel it has, got 'fft'");
  call.kernel = "softmax";
  EXPECT_EQ(error_of([&] { test_backend().compile(call); }), "softmax: expected 2 operands, got 0");
}

TEST(CpuBackend, ServesSeveralCallersAtOnce) {
  std::vector<std::thread> callers;
  std::vector<double> sums(4, 0);
  for (size_t t = 0; t < 4; ++t) {
    callers.emplace_back([&sums, t] {
      KernelBuilder k({300, 1000}, 1);
      const int x = k.input(random_array(DType::f32, 300000, 0, 1, int(t) + 1));
      const int y = k.output(DType::f32, 300);
      k.store(y, k.reduce(ReduceOp::sum, k.load(x, {1000, 1})), {1, 0}, 0, IrLevel::row);
      for (int i = 0; i < 10; ++i) {
        const std::vector<Array> got = k.run();
        for (int64_t r = 0; r < 300; ++r) sums[t] += got[1].get(r) / 10;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  for (double sum : sums) EXPECT_NEAR(sum, 150000, 1000);
}

TEST(CpuBackend, DomainsBeyondTwoToThe31) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "takes minutes under ThreadSanitizer";
#endif
  // One operand element, read 2^31 + 1000 times: counts and indices must not wrap.
  const int64_t n = (int64_t(1) << 31) + 1000;
  KernelBuilder k({n}, 0);
  const int one = k.input(random_array(DType::u8, 1, 1, 2)), y = k.output(DType::i64, 1);
  const int top = k.output(DType::i64, 1);
  const int wide = k.cast(k.load(one, {0}), DType::i64);
  k.store(y, k.reduce(ReduceOp::sum, wide), {0}, 0, IrLevel::row);
  k.store(top, k.reduce(ReduceOp::max, k.index({1})), {0}, 0, IrLevel::row);
  const std::vector<Array> got = k.run();
  EXPECT_EQ(got[1].get(0), double(n));
  EXPECT_EQ(got[2].get(0), double(n - 1));
}

}  // namespace
}  // namespace tessera::test
