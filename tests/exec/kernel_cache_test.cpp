#include "tessera/exec/kernel_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <set>

#include "runtime/fake_backend.h"
#include "support/expect_error.h"
#include "tessera/base/thread_pool.h"
#include "tessera/runtime/registry.h"

namespace tessera {
namespace {

KernelCall copy_of(int64_t n) {
  KernelCall copy;
  copy.kernel = "copy";
  copy.operands = {{DType::f32, contiguous_view({n})}, {DType::f32, contiguous_view({n})}};
  return copy;
}

Program program_of(std::initializer_list<int64_t> copies) {
  Program program;
  for (const int64_t n : copies) {
    Instruction instruction;
    instruction.call = copy_of(n);
    program.instructions.push_back(instruction);
  }
  return program;
}

TEST(KernelCache, IsBoundedAndKeepsTheRecentlyUsed) {
  Backend& device = backend("cpu");
  KernelCache cache(2);
  const auto one = cache.get(device, copy_of(1));
  cache.get(device, copy_of(2));
  EXPECT_EQ(cache.get(device, copy_of(1)), one);
  cache.get(device, copy_of(3));
  EXPECT_EQ(cache.size(), 2u);
  EXPECT_EQ(cache.get(device, copy_of(1)), one);
  EXPECT_NE(kernel_key(copy_of(1)), kernel_key(copy_of(2)));
}

// Notes what is compiled. Kernels of `together` wait until all of them are being compiled;
// `refused` ones fail, each behind those that come after it in the set.
class Compiler : public test::FakeBackend {
 public:
  explicit Compiler(bool at_once) : FakeBackend(1 << 20) { target_.compiles_at_once = at_once; }

  const Target& target() const override { return target_; }

  std::unique_ptr<Executable> compile(const KernelCall& call) override {
    const int64_t n = call.operands[0].view.shape[0];
    std::unique_lock lock(mutex_);
    compiled.push_back(n);
    changed_.notify_all();
    if (together.contains(n)) {
      changed_.wait(lock, [&] {
        return std::ranges::all_of(together,
                                   [&](int64_t m) { return std::ranges::count(compiled, m) > 0; });
      });
    }
    if (!refused.contains(n)) return FakeBackend::compile(call);
    changed_.wait(lock, [&] { return *refused.rbegin() == n; });
    refused.erase(n);
    changed_.notify_all();
    fail("copy of ", n, ": refused");
  }

  std::set<int64_t> together, refused;
  std::vector<int64_t> compiled;

 private:
  Target target_;
  std::mutex mutex_;
  std::condition_variable changed_;
};

TEST(KernelCache, CompilesTheNewKernelsOfProgramsOnceEach) {
  const Program programs[] = {program_of({3, 1, 3}), program_of({2, 1, 4})};
  for (const bool at_once : {false, true}) {
    Compiler device(at_once);
    KernelCache cache;
    cache.get(device, copy_of(4));
    cache.prepare(device, programs);
    EXPECT_EQ(cache.size(), 4u);
    if (at_once) std::ranges::sort(device.compiled.begin() + 1, device.compiled.end());
    const std::vector<int64_t> expected =
        at_once ? std::vector<int64_t>{4, 1, 2, 3} : std::vector<int64_t>{4, 3, 1, 2};
    EXPECT_EQ(device.compiled, expected);
    cache.prepare(device, programs);
    EXPECT_EQ(device.compiled.size(), 4u);
  }
}

TEST(KernelCache, CompilesByThreads) {
  if (thread_pool().workers() == 0) GTEST_SKIP() << "the pool has no workers";
  Compiler device(true);
  device.together = {1, 2};
  KernelCache cache;
  const Program program = program_of({1, 2, 3});
  cache.prepare(device, std::span(&program, 1));
  EXPECT_EQ(cache.size(), 3u);
}

TEST(KernelCache, ThrowsWhatTheFirstKernelOfAProgramThrows) {
  for (const bool at_once : {false, true}) {
    if (at_once && thread_pool().workers() == 0) GTEST_SKIP() << "the pool has no workers";
    Compiler device(at_once);
    device.refused = at_once ? std::set<int64_t>{2, 3} : std::set<int64_t>{2};
    KernelCache cache;
    const Program program = program_of({1, 2, 3, 4});
    EXPECT_EQ(error_text([&] { cache.prepare(device, std::span(&program, 1)); }),
              "copy of 2: refused");
    EXPECT_GE(cache.size(), 1u);
    cache.prepare(device, std::span(&program, 1));
    EXPECT_EQ(cache.size(), 4u);
  }
}

}  // namespace
}  // namespace tessera
