// What is told of memory: before a program runs, and where there is none.
#include "cuda_stand_in/stand_in_test.h"
#include "support/expect_error.h"
#include "tessera/graph/scope.h"
#include "tessera/runtime/caching_allocator.h"
#include "tessera/runtime/counters.h"
#include "tessera/tessera.h"

namespace tessera::test {
namespace {

class CudaMemory : public OnStandIn<> {};

constexpr int64_t kMiB = int64_t(1) << 20;

// Everything but so many bytes.
std::shared_ptr<Memory> leave_free(int64_t bytes) {
  release_cached_memory();
  return backend(kCuda).allocate(*backend(kCuda).free_bytes() - bytes);
}

TEST_F(CudaMemory, IsCounted) {
  const MemoryStats before = memory_stats(kCuda);
  ASSERT_TRUE(before.free.has_value());
  {
    const Var kept(zeros({kMiB}), "kept");
    const MemoryStats during = memory_stats(kCuda);
    EXPECT_EQ(during.in_use - before.in_use, 4 * kMiB);
    EXPECT_GE(during.peak, during.in_use);
  }
  EXPECT_EQ(memory_stats(kCuda).in_use, before.in_use);
  EXPECT_FALSE(memory_stats(DeviceKind::cpu).free.has_value());
}

// The temporaries do not fit beside what is held: told with the breakdown, before anything runs.
TEST_F(CudaMemory, IsMissedWhenTheProgramIsPlanned) {
  const Tensor x = ones({1024, 4});
  x.eval();
  const auto total = [&] {
    const Scope scope("model");
    return sum(gelu(matmul(x, transpose(x))));  // a product of 4 MiB
  };
  auto rest = leave_free(kMiB);
  const CounterValues before = counters().snapshot();
  const std::string text = full_error_text([&] { total().eval(); });
  EXPECT_EQ(counters().snapshot().launches, before.launches);
  EXPECT_TRUE(text.starts_with("out of memory: the program needs ")) << text;
  EXPECT_NE(text.find(" more bytes on cuda:0, which has "), std::string::npos) << text;
  EXPECT_NE(text.find(" of 1073741824 free\nnodes "), std::string::npos) << text;
  EXPECT_NE(text.find("\nmemory         16.0 KiB inputs and state, 4 B outputs, 4.0 MiB "
                      "temporaries at peak\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("at peak      4.0 MiB  matmul f32(1024, 1024) in model\n"), std::string::npos)
      << text;
  rest.reset();
  EXPECT_NEAR(total().item(), 1024. * 1024 * 4, 1024. * 1024 * 4e-3);
}

// Who holds the temporaries of a step, as on the CPU.
TEST_F(CudaMemory, ThePeakIsToldByScope) {
  Var w(ones({64, 64}), "w");
  auto step = compile([&](const Tensor& x) {
    Tensor h = x;
    for (const char* name : {"first", "second"}) {
      const Scope scope(name);
      h = gelu(matmul(h, w));
    }
    const Tensor loss = mean(h * h);
    w.assign(w.value() - grad(loss, {w})[0] * 0.01f);
    return loss;
  });
  step(ones({64, 64})).item();
  const Report& report = step.program().report;
  ASSERT_FALSE(report.peak_by_scope.empty());
  int64_t bytes = 0;
  for (const ScopeBytes& one : report.peak_by_scope) bytes += one.bytes;
  EXPECT_EQ(bytes, report.peak_bytes);
  EXPECT_GE(memory_stats(kCuda).arena, report.temporary_bytes);
}

}  // namespace
}  // namespace tessera::test
