#include "tessera/conformance/check_device.h"

#include <gtest/gtest.h>

#include <cstring>

#include "runtime/fake_backend.h"
#include "tessera/runtime/registry.h"

namespace tessera {
namespace {

constexpr int64_t kBytes = 1000003;  // whole words do not fill it

// Its memory works, but for one byte on the way down.
class FaultyBackend : public test::FakeBackend {
 public:
  explicit FaultyBackend(int64_t wrong) : FakeBackend(1 << 24), wrong_(wrong) {}

  void upload(BufferRef to, const void* from, int64_t bytes, Stream) override {
    std::memcpy(to.handle, from, size_t(bytes));
  }
  void copy(BufferRef to, BufferRef from, int64_t bytes, Stream) override {
    std::memcpy(to.handle, from.handle, size_t(bytes));
  }
  void download(void* to, BufferRef from, int64_t bytes, Stream) override {
    std::memcpy(to, from.handle, size_t(bytes));
    if (wrong_ >= 0) static_cast<unsigned char*>(to)[wrong_] ^= 1;
  }

 private:
  int64_t wrong_;
};

TEST(CheckMemory, PassesWhereEveryByteComesBack) {
  const MemoryCheck check = check_memory(backend(DeviceKind::cpu), kBytes);
  EXPECT_TRUE(check.passed());
  EXPECT_EQ(check.bytes, kBytes);
  EXPECT_GT(check.upload_seconds, 0);
  EXPECT_GT(check.copy_seconds, 0);
  EXPECT_GT(check.download_seconds, 0);
  FaultyBackend sound(-1);
  EXPECT_TRUE(check_memory(sound, kBytes).passed());
  EXPECT_EQ(sound.used, 0) << "what was allocated is released";
}

TEST(CheckMemory, FindsOneWrongBit) {
  for (const int64_t wrong : {int64_t(0), int64_t(500001), kBytes - 1}) {
    FaultyBackend faulty(wrong);
    const MemoryCheck check = check_memory(faulty, kBytes);
    EXPECT_FALSE(check.passed());
    EXPECT_EQ(check.first_difference, wrong);
  }
}

TEST(CheckMemory, SeesADeviceThatDoesNothing) {
  test::FakeBackend idle(1 << 24);
  EXPECT_FALSE(check_memory(idle, kBytes).passed());
}

TEST(FreeMemory, IsPartOfAllMemory) {
  const Target& cpu = backend(DeviceKind::cpu).target();
  const std::optional<int64_t> free = free_memory(cpu);
  ASSERT_TRUE(free);
  EXPECT_GT(*free, 0);
  EXPECT_LE(*free, cpu.memory_bytes);
  Target other = cpu;
  other.device = "cuda:0";
  EXPECT_FALSE(free_memory(other));
}

TEST(CheckProduct, SmallOneIsExact) {
  SmallProduct check = check_small_product();
  EXPECT_TRUE(check.passed());
  EXPECT_EQ(check.actual, (std::vector<float>{19, 22, 43, 50}));
  check.actual[0] += 1;
  EXPECT_FALSE(check.passed());
}

TEST(CheckProduct, LargeOneIsWithinItsTolerance) {
  LargeProduct check = check_large_product(96, 3);
  EXPECT_TRUE(check.passed()) << check.max_error << " of " << check.tolerance;
  EXPECT_EQ(check.size, 96);
  EXPECT_GT(check.samples, 0);
  EXPECT_GT(check.max_error, 0) << "f32 cannot be exact here";
  EXPECT_LE(check.mean_error, check.max_error);
  EXPECT_GT(check.seconds, 0);
  EXPECT_DOUBLE_EQ(check.gflops(), 2 * 96.0 * 96 * 96 / check.seconds * 1e-9);
  check.max_error = 2 * check.tolerance;
  EXPECT_FALSE(check.passed());
}

}  // namespace
}  // namespace tessera
