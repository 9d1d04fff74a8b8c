// Entries of kernels wait for the kernel in front of them before anything else.
#include <gtest/gtest.h>

#include <string>

#include "cuda_stand_in/stand_in_test.h"
#include "tessera/backend/cuda/early_start.h"
#include "tessera/tensor/creation.h"
#include "tessera/tensor/elementwise.h"

namespace tessera::test {
namespace {

// Without what is put in front.
std::string body(const std::string& source) {
  const std::string text = cuda::with_early_start(source);
  const size_t begin = text.find("#line 1\n");
  EXPECT_NE(begin, std::string::npos);
  return text.substr(begin + 8);
}

TEST(EarlyStart, EveryEntryWaits) {
  EXPECT_EQ(
      body("KERNEL a(int n) { x(); }\nKERNEL_OF(LANES)\nb(int* p,\n  int n) {\n}\n"),
      "KERNEL a(int n) { T_START x(); }\nKERNEL_OF(LANES)\nb(int* p,\n  int n) { T_START\n}\n");
  EXPECT_EQ(body("extern \"C\" __global__ void __launch_bounds__(256, (2)) c() {}"),
            "extern \"C\" __global__ void __launch_bounds__(256, (2)) c() { T_START}");
}

TEST(EarlyStart, NothingElseChanges) {
  for (const std::string source : {
           "#define KERNEL extern \"C\" \\\n  __global__ void\nint f() { return 1; }\n",
           "// KERNEL a() {\n/* KERNEL b() { */ int MY_KERNEL(int) { return 2; }",
           "const char* text = \"KERNEL a() {\\\" }\";",
           "__global__ void declared(int n);\nint g() { return 3; }\n",
           "",
       }) {
    EXPECT_EQ(body(source), source);
  }
}

TEST(EarlyStart, CommentsAmongParametersAreSkipped) {
  EXPECT_EQ(body("KERNEL a(int n  // as in (\n) /* { */ { }"),
            "KERNEL a(int n  // as in (\n) /* { */ { T_START }");
}

class CudaEarlyStart : public OnStandIn<> {};

// The stand-in says that it is a card of compute capability 9.0.
TEST_F(CudaEarlyStart, LaunchesSaySo) {
  const auto early = stand_in<size_t()>(STAND_IN_DRIVER, "stand_in_early");
  const size_t before = early();
  const std::vector<float> y = (arange(2, DType::f32) * 2).to_vector<float>();
  EXPECT_EQ(y, (std::vector<float>{0, 2}));
  EXPECT_GT(early(), before);
}

}  // namespace
}  // namespace tessera::test
