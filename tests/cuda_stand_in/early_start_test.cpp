// Entries of kernels wait for the kernel in front of them before anything else.
#include <gtest/gtest.h>

#include <string>

#include "tessera/backend/cuda/early_start.h"

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

}  // namespace
}  // namespace tessera::test
