#include "tessera/runtime/caching_allocator.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "runtime/fake_backend.h"

namespace tessera::test {
namespace {

TEST(SizeClass, RoundsUpByAtMostAnEighth) {
  EXPECT_EQ(size_class(0), 64);
  EXPECT_EQ(size_class(64), 64);
  EXPECT_EQ(size_class(65), 128);
  EXPECT_EQ(size_class(512), 512);
  for (int64_t bytes = 513; bytes < (int64_t(1) << 50); bytes = bytes * 3 / 2) {
    const int64_t size = size_class(bytes);
    EXPECT_GE(size, bytes);
    EXPECT_LE(size, bytes + bytes / 8 + 64);
    EXPECT_LT(size, bytes + (int64_t(64) << 20));
    EXPECT_EQ(size % 64, 0);
    EXPECT_EQ(size_class(size), size);
  }
  EXPECT_EQ(size_class(INT64_MAX), INT64_MAX);
}

TEST(CachingAllocator, ReusesWhatWasReleased) {
  FakeBackend backend(1 << 20);
  CachingAllocator allocator(backend);
  void* first = nullptr;
  {
    const Buffer a = allocator.allocate(1000);
    const Buffer copy = a;
    first = a.memory->handle;
    EXPECT_EQ(a.bytes, 1000);
    EXPECT_EQ(allocator.stats().in_use, 1024);
  }
  EXPECT_EQ(allocator.stats().in_use, 0);
  EXPECT_EQ(allocator.stats().cached, 1024);
  const Buffer again = allocator.allocate(1024), other = allocator.allocate(1024);
  EXPECT_EQ(again.memory->handle, first);
  EXPECT_NE(other.memory->handle, first);
  EXPECT_EQ(backend.allocations, 2);
  EXPECT_EQ(allocator.stats().peak, 2048);
}

TEST(CachingAllocator, ReleasesTheCacheBeforeItGivesUp) {
  FakeBackend backend(4096);
  CachingAllocator allocator(backend);
  allocator.allocate(2048);  // cached at once
  const Buffer held = allocator.allocate(1024);
  const Buffer large = allocator.allocate(3072);  // fits only without what is cached
  EXPECT_EQ(allocator.stats().cached, 0);
  EXPECT_EQ(backend.used, 4096);
  try {
    allocator.allocate(64);
    FAIL() << "expected an Error";
  } catch (const Error& error) {
    EXPECT_STREQ(
        error.what(),
        "fake: out of memory: asked for 64 bytes; 4096 bytes are in use, nothing is cached");
  }
}

TEST(CachingAllocator, ReleaseCachedGivesBack) {
  FakeBackend backend(1 << 20);
  CachingAllocator allocator(backend);
  const Buffer held = allocator.allocate(100);
  allocator.allocate(5000);
  EXPECT_GT(backend.used, 5000);
  allocator.release_cached();
  EXPECT_EQ(backend.used, 128);
  EXPECT_EQ(allocator.stats().cached, 0);
}

TEST(CachingAllocator, AllGiveBackAtOnce) {
  FakeBackend backend(1 << 20);
  CachingAllocator a(backend), b(backend);
  { const Buffer kept = a.allocate(1000), also = b.allocate(2000); }
  EXPECT_GT(a.stats().cached, 0);
  release_cached_memory();
  EXPECT_EQ(a.stats().cached + b.stats().cached, 0);
}

TEST(CachingAllocator, BuffersMayOutliveIt) {
  FakeBackend backend(1 << 20);
  {
    Buffer survivor;
    {
      CachingAllocator allocator(backend);
      survivor = allocator.allocate(100);
      allocator.allocate(100);
    }
    EXPECT_EQ(survivor.memory->bytes, 128);
  }
  EXPECT_EQ(backend.used, 0);
}

class LockedBackend : public FakeBackend {
 public:
  using FakeBackend::FakeBackend;
  std::shared_ptr<Memory> allocate(int64_t bytes) override {
    const std::lock_guard lock(mutex_);
    return FakeBackend::allocate(bytes);
  }
  void release(Memory& memory) override {
    const std::lock_guard lock(mutex_);
    FakeBackend::release(memory);
  }

 private:
  std::mutex mutex_;
};

TEST(CachingAllocator, ManyThreads) {
  LockedBackend backend(int64_t(1) << 30);
  CachingAllocator allocator(backend);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&allocator, t] {
      std::vector<Buffer> held;
      for (int i = 0; i < 2000; ++i) {
        held.push_back(allocator.allocate(64 * (1 + (i * 7 + t) % 11)));
        *static_cast<char*>(held.back().memory->handle) = char(t);
        if (held.size() > 20) held.erase(held.begin(), held.begin() + 15);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(allocator.stats().in_use, 0);
  EXPECT_EQ(allocator.stats().cached, backend.used);
}

TEST(Memory, ForeignIsNotReleased) {
  FakeBackend backend(1000);
  float values[4] = {};
  { const Memory foreign(&backend, values, sizeof values, true); }
  EXPECT_EQ(backend.used, 0);
}

}  // namespace
}  // namespace tessera::test
