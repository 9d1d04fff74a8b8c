#include "tessera/base/error.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "tessera/base/dtype.h"
#include "tessera/base/shape.h"

namespace tessera {
namespace {

TEST(Error, CatJoinsStreamableAndNamedValues) {
  EXPECT_EQ(cat("a", 1, ' ', 2.5, std::string("b")), "a1 2.5b");
  EXPECT_EQ(cat(DType::bf16, " ", Shape{2, 3}), "bf16 (2, 3)");
}

TEST(Error, FailThrowsTheJoinedText) {
  EXPECT_EQ(error_text([] { fail("op: expected ", 2, ", got ", Shape{5}); }),
            "op: expected 2, got (5,)");
}

TEST(Error, IsARuntimeError) { EXPECT_THROW(fail("x"), std::runtime_error); }

TEST(ErrorDeathTest, AssertionNamesExpressionAndPlace) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(TESSERA_ASSERT(1 + 1 == 3),
               "tessera: assertion failed: 1 \\+ 1 == 3 \\(.*error_test\\.cpp:[0-9]+\\)");
}

TEST(Error, AssertionEvaluatesOnceAndPasses) {
  int calls = 0;
  TESSERA_ASSERT(++calls == 1);
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace tessera
