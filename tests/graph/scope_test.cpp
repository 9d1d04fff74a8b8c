#include "tessera/graph/scope.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "tessera/graph/build.h"

namespace tessera {
namespace {

using namespace graph;

TEST(Scope, PathsJoinAndEnd) {
  EXPECT_EQ(current_scope(), 0u);
  EXPECT_EQ(scope_path(0), "");
  EXPECT_EQ(scope_location(0), "");
  {
    const Scope outer("block3");
    EXPECT_EQ(scope_path(current_scope()), "block3");
    {
      const Scope inner("attention/query");
      EXPECT_EQ(scope_path(current_scope()), "block3/attention/query");
    }
    EXPECT_EQ(scope_path(current_scope()), "block3");
  }
  EXPECT_EQ(current_scope(), 0u);
}

TEST(Scope, KnowsItsLine) {
  const Scope scope("here");
  const std::string expected = "scope_test.cpp:" + std::to_string(__LINE__ - 1);
  EXPECT_EQ(scope_location(current_scope()), expected);
}

TEST(Scope, SamePlaceSameNumber) {
  uint32_t first = 0;
  for (int i = 0; i < 3; ++i) {
    const Scope scope("loop");
    if (i == 0) first = current_scope();
    EXPECT_EQ(current_scope(), first);
  }
}

TEST(Scope, NodesRememberWhereTheyWereFirstBuilt) {
  const Value x = make_leaf({DType::f32, {2}});
  EXPECT_EQ(x.node->scope, 0u);
  Value y;
  {
    const Scope scope("first");
    y = apply(Op::exp, x);
  }
  const Scope scope("second");
  EXPECT_EQ(scope_path(apply(Op::exp, x).node->scope), "first");
}

TEST(Scope, ErrorsNameIt) {
  const Value a = make_leaf({DType::f32, {2, 3}}), b = make_leaf({DType::f32, {2, 3}});
  EXPECT_EQ(error_text([&] { matmul(a, b); }), "matmul: inner dimensions differ: (2, 3) @ (2, 3)");
  const Scope outer("mlp");
  const Scope inner("fc1");
  const std::string line = std::to_string(__LINE__ - 1);
  std::string expected =
      "matmul: inner dimensions differ: (2, 3) @ (2, 3) (in mlp/fc1, scope_test.cpp:LINE)";
  expected.replace(expected.find("LINE"), 4, line);
  EXPECT_EQ(error_text([&] { matmul(a, b); }), expected);
}

TEST(Scope, EndsWhenAnErrorPasses) {
  EXPECT_THROW(
      {
        const Scope scope("doomed");
        reshape(make_leaf({DType::f32, {2}}), {3});
      },
      Error);
  EXPECT_EQ(current_scope(), 0u);
}

}  // namespace
}  // namespace tessera
