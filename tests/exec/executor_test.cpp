#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <thread>

#include "runtime/child.h"
#include "runtime/fake_backend.h"
#include "support/expect_error.h"
#include "tessera/base/log.h"
#include "tessera/compile/compile.h"
#include "tessera/exec/executor.h"
#include "tessera/graph/build.h"
#include "tessera/graph/scope.h"
#include "tessera/runtime/caching_allocator.h"
#include "tessera/runtime/compile_notice.h"
#include "tessera/runtime/counters.h"
#include "tessera/runtime/registry.h"

namespace tessera {
namespace {

using namespace graph;

Buffer upload(Backend& device, const std::vector<float>& data) {
  const int64_t bytes = int64_t(data.size() * sizeof(float));
  Buffer buffer{device.allocate(bytes), 0, bytes};
  device.upload(ref(buffer), data.data(), bytes, {});
  return buffer;
}

std::vector<float> download(Backend& device, const Buffer& buffer) {
  std::vector<float> data(size_t(buffer.bytes) / sizeof(float));
  device.download(data.data(), ref(buffer), buffer.bytes, {});
  return data;
}

// exp(x @ x) of a 2×2 matrix.
GraphFunction example() {
  const Value x = make_leaf({DType::f32, {2, 2}});
  return {{x}, {apply(Op::exp, matmul(x, x))}, {}};
}

TEST(Executor, RunsAProgramOverBuffersOfTheCaller) {
  Backend& device = backend("cpu");
  ExecContext context(device);
  Executor executor(compile_graph(example(), device.target()), context);
  const Buffer x = upload(device, {1, 0, 1, 1}), y = upload(device, {0, 0, 0, 0});
  executor.run(std::span(&x, 1), std::span(&y, 1));
  const std::vector<float> result = download(device, y);
  EXPECT_NEAR(result[0], std::exp(1.0), 1e-6);
  EXPECT_NEAR(result[1], 1, 1e-6);
  EXPECT_NEAR(result[2], std::exp(2.0), 2e-6);
}

TEST(Executor, RunsAllocateNothingAndLaunchOncePerInstruction) {
  Backend& device = backend("cpu");
  ExecContext context(device);
  Executor executor(compile_graph(example(), device.target()), context);
  const Buffer x = upload(device, {1, 0, 1, 1}), y = upload(device, {0, 0, 0, 0});
  executor.run(std::span(&x, 1), std::span(&y, 1));
  const CounterValues before = counters().snapshot();
  for (int i = 0; i < 10; ++i) executor.run(std::span(&x, 1), std::span(&y, 1));
  const CounterValues after = counters().snapshot();
  EXPECT_EQ(after.allocations, before.allocations);
  EXPECT_EQ(after.compiles, before.compiles);
  EXPECT_EQ(after.launches - before.launches, 10 * int64_t(executor.program().instructions.size()));
}

TEST(Executor, ProgramsShareKernelsAndOneArena) {
  Backend& device = backend("cpu");
  ExecContext context(device);
  Executor first(compile_graph(example(), device.target()), context);
  const size_t kernels = context.kernels().size();
  Executor second(compile_graph(example(), device.target()), context);
  EXPECT_EQ(context.kernels().size(), kernels);
  const Buffer x = upload(device, {1, 0, 1, 1}), y = upload(device, {0, 0, 0, 0});
  first.run(std::span(&x, 1), std::span(&y, 1));
  const int64_t bytes = context.arena_bytes();
  second.run(std::span(&x, 1), std::span(&y, 1));
  EXPECT_EQ(context.arena_bytes(), bytes);
  EXPECT_EQ(bytes, std::max(first.program().arena_bytes, second.program().arena_bytes));
}

TEST(Executor, ThreadsShareAContext) {
  Backend& device = backend("cpu");
  ExecContext context(device);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Executor executor(compile_graph(example(), device.target()), context);
      const float v = float(t);
      const Buffer x = upload(device, {v, 0, 0, v}), y = upload(device, {0, 0, 0, 0});
      for (int i = 0; i < 50; ++i) {
        executor.run(std::span(&x, 1), std::span(&y, 1));
        EXPECT_NEAR(download(device, y)[3], std::exp(double(v * v)), 1e-2);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// What an allocator keeps for later gives way to a program's temporaries.
TEST(Executor, TheCacheGivesWayToTheArena) {
  constexpr int64_t kRoom = 4096;
  test::FakeBackend device(kRoom);
  CachingAllocator allocator(device);
  ExecContext context(device);
  Executor executor(compile_graph(example(), backend("cpu").target()), context);
  ASSERT_GT(executor.program().arena_bytes, 0);
  const Buffer x{device.allocate(16), 0, 16}, y{device.allocate(16), 0, 16};
  allocator.allocate(kRoom - device.used - 512);  // and dropped at once
  const int64_t rest = kRoom - device.used;
  const Buffer held{device.allocate(rest), 0, rest};
  executor.run(std::span(&x, 1), std::span(&y, 1));
  EXPECT_EQ(allocator.stats().cached, 0);
  EXPECT_EQ(device.used, 32 + rest + executor.program().arena_bytes);
}

TEST(ExecutorError, AnArenaThatIsRefusedShowsTheBreakdown) {
  test::FakeBackend device(64);
  ExecContext context(device);
  Executor executor(compile_graph(example(), backend("cpu").target()), context);
  const Buffer x{device.allocate(16), 0, 16}, y{device.allocate(16), 0, 16};
  const std::string text =
      full_error_text([&] { executor.run(std::span(&x, 1), std::span(&y, 1)); });
  EXPECT_TRUE(text.starts_with("fake: out of memory: asked for ")) << text;
  EXPECT_NE(text.find(", for the temporaries of a program\nnodes "), std::string::npos) << text;
  EXPECT_NE(text.find("\nmemory         16 B inputs and state, 16 B outputs, "), std::string::npos)
      << text;
}

// A device that says what is free: programs are refused before their kernels are compiled.
TEST(ExecutorError, FreeMemoryIsCheckedWhenTheProgramIsBound) {
  class Telling : public test::FakeBackend {
   public:
    using FakeBackend::FakeBackend;
    std::optional<int64_t> free_bytes() override { return 4096 - used; }
  };
  Telling device(4096);
  CachingAllocator allocator(device);
  ExecContext context(device);
  const Program program = compile_graph(example(), backend("cpu").target());
  const int64_t wanted = program.arena_bytes + program.report.output_bytes;
  allocator.allocate(2048);  // and dropped at once: it gives way
  const int64_t held = 4096 - wanted;
  const Buffer fits{device.allocate(held - 2048), 0, 0};
  { Executor executor(program, context); }
  release_cached_memory();
  const Buffer rest{device.allocate(2048 + 1), 0, 0};
  EXPECT_TRUE(full_error_text([&] { Executor executor(program, context); })
                  .starts_with(cat("out of memory: the program needs ", wanted, " more bytes on ",
                                   device.target().device, ", which has ", wanted - 1, " of ",
                                   device.target().memory_bytes, " free\nnodes ")));
}

TEST(ExecutorError, DataErrorsNameKernelAndScope) {
  Backend& device = backend("cpu");
  ExecContext context(device);
  const Value x = make_leaf({DType::f32, {3}}), index = make_leaf({DType::i32, {2}});
  Value y;
  int line = 0;
  {
    const Scope outer("model"), inner("embedding");
    line = __LINE__ - 1;
    y = gather(x, index, 0);
  }
  Executor executor(compile_graph({{x, index}, {y}, {}}, device.target()), context);
  const int32_t indices[2] = {0, -1};
  Buffer bad{device.allocate(8), 0, 8};
  device.upload(ref(bad), indices, 8, {});
  const Buffer data = upload(device, {1, 2, 3}), out = upload(device, {0, 0});
  const std::vector<Buffer> externals = {data, bad};
  EXPECT_EQ(error_text([&] { executor.run(externals, std::span(&out, 1)); }),
            cat("index -1 is out of range [0, 3) in kernel gather (in model/embedding, "
                "executor_test.cpp:",
                line, ")"));
}

TEST(ExecutorError, MemoryIsCheckedWhenTheProgramIsBound) {
  Backend& device = backend("cpu");
  ExecContext context(device);
  const Value x = make_leaf({DType::f32, {1}});
  const Value huge = expand(x, {int64_t{1} << 50});
  const std::string text = error_text([&] {
    Executor executor(compile_graph({{x}, {apply(Op::exp, huge)}, {}}, device.target()), context);
  });
  EXPECT_TRUE(text.starts_with(
      "out of memory: the program needs 4503599627370500 bytes on cpu, which has "))
      << text;
  EXPECT_NE(text.find("4096.0 TiB outputs"), std::string::npos) << text;
}

// Compiles as a device does whose kernels are not yet on disk.
class CompilingBackend : public test::FakeBackend {
 public:
  CompilingBackend() : FakeBackend(1 << 20) {}
  std::unique_ptr<Executable> compile(const KernelCall& call) override {
    note_compilation("a card");
    return FakeBackend::compile(call);
  }
};

// In a process of its own: a notice is given once in the life of one.
TEST(Executor, ItsKernelsAreCountedInTheNotice) {
  const auto work = [] {
    ::setenv("TESSERA_CACHE_DIR", "", 1);
    std::string said;
    set_log_sink([&](LogLevel, std::string_view text) { said += text; });
    CompilingBackend device;
    ExecContext context(device);
    const Executor executor(compile_graph(example(), backend("cpu").target()), context);
    return said == "compiling up to 2 kernels for a card" ? 0 : 1;
  };
  EXPECT_EQ(wait_for_child(start_child(work)), 0);
}

}  // namespace
}  // namespace tessera
