#include "tessera/runtime/registry.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/fake_backend.h"
#include "tessera/runtime/counters.h"
#include "tessera/runtime/shared_library.h"

namespace tessera::test {
namespace {

TEST(Registry, MakesABackendAtFirstUseAndOnce) {
  int made = 0;
  register_backend("fake", [&made] {
    ++made;
    return std::make_unique<FakeBackend>(100);
  });
  register_backend("fake", []() -> std::unique_ptr<Backend> {
    ADD_FAILURE() << "the second registration must be ignored";
    return nullptr;
  });
  EXPECT_EQ(made, 0);
  Backend& first = backend("fake");
  EXPECT_EQ(&backend("fake"), &first);
  EXPECT_EQ(made, 1);
  const std::vector<std::string> names = backend_names();
  EXPECT_EQ(std::count(names.begin(), names.end(), "fake"), 1);
}

TEST(Registry, SaysWhichBackendsThereAre) {
  register_backend("fake", [] { return std::make_unique<FakeBackend>(100); });
  try {
    backend("abacus");
    FAIL() << "expected an Error";
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_EQ(text.find("backend: expected one of ["), 0u) << text;
    EXPECT_NE(text.find("fake"), std::string::npos) << text;
    EXPECT_NE(text.find("], got 'abacus'"), std::string::npos) << text;
  }
}

TEST(CallKernel, PassesOperandsAndTheFirstExtent) {
  FakeBackend fake(100);
  KernelCall call;
  call.ir = std::make_shared<KernelIR>(KernelIR{"k", {7, 3}, 1, {}, {}});
  call.operands.resize(2, {DType::f32, {}});
  call_kernel(fake, call, std::vector<Buffer>(2));
  EXPECT_EQ(fake.last_operands, 2);
  EXPECT_EQ(fake.last_extent, 7);
}

TEST(Counters, PeakFollowsTheGreatestUse) {
  Counters c;
  c.add_allocation(100);
  c.add_allocation(50);
  c.add_release(100);
  c.add_allocation(20);
  const CounterValues v = c.snapshot();
  EXPECT_EQ(v.allocations, 3);
  EXPECT_EQ(v.bytes_in_use, 70);
  EXPECT_EQ(v.peak_bytes, 150);
}

TEST(SharedLibrary, FindsFunctionsAndReportsAbsence) {
  constexpr const char* kAbsent[] = {"libtessera-does-not-exist.so.1"};
  EXPECT_FALSE(SharedLibrary::open(kAbsent).has_value());
  constexpr const char* kMath[] = {"libtessera-does-not-exist.so.1", "libm.so.6"};
  const auto math = SharedLibrary::open(kMath);
  ASSERT_TRUE(math.has_value());
  EXPECT_EQ(math->name(), "libm.so.6");
  auto* cosine = math->function<double(double)>("cos");
  ASSERT_NE(cosine, nullptr);
  EXPECT_EQ(cosine(0), 1);
  EXPECT_EQ(math->function<double(double)>("no_such_function"), nullptr);
}

}  // namespace
}  // namespace tessera::test
