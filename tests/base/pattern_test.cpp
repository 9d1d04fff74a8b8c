#include "tessera/base/pattern.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

TEST(Patterns, WithoutAStarAreTheTextItself) {
  EXPECT_TRUE(matches_pattern("fc.bias", "fc.bias"));
  EXPECT_FALSE(matches_pattern("fc.bias", "fc.bias2"));
  EXPECT_FALSE(matches_pattern("fc.bias", "a.fc.bias"));
  EXPECT_FALSE(matches_pattern("fc.bias", "fc-bias"));
  EXPECT_TRUE(matches_pattern("", ""));
  EXPECT_FALSE(matches_pattern("", "a"));
}

TEST(Patterns, AStarIsAnyCharacters) {
  EXPECT_TRUE(matches_pattern("*", ""));
  EXPECT_TRUE(matches_pattern("*", "a.b"));
  EXPECT_TRUE(matches_pattern("*.bias", "block.fc.bias"));
  EXPECT_TRUE(matches_pattern("*.bias", ".bias"));
  EXPECT_FALSE(matches_pattern("*.bias", "bias"));
  EXPECT_FALSE(matches_pattern("*.bias", "fc.bias.m"));
  EXPECT_TRUE(matches_pattern("block.*", "block.0.fc"));
  EXPECT_FALSE(matches_pattern("block.*", "blocks.0"));
}

TEST(Patterns, PartsMustNotShareCharacters) {
  EXPECT_TRUE(matches_pattern("a*a", "aa"));
  EXPECT_FALSE(matches_pattern("a*a", "a"));
  EXPECT_TRUE(matches_pattern("h.*.norm*.weight", "h.3.norm1.weight"));
  EXPECT_FALSE(matches_pattern("h.*.norm*.weight", "h.norm1.weight"));
  EXPECT_TRUE(matches_pattern("*ab*ab", "abab"));
  EXPECT_FALSE(matches_pattern("*ab*ab", "ab"));
  EXPECT_TRUE(matches_pattern("**x**", "axb"));
  EXPECT_TRUE(matches_pattern("*ab*b", "abcab"));
}

}  // namespace
}  // namespace tessera
