#include "tessera/cli/suggest.h"

#include <gtest/gtest.h>

namespace tessera::cli {
namespace {

TEST(Suggest, DistanceCountsEdits) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("explain", "explain"), 0);
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("abc", ""), 3);
  EXPECT_EQ(edit_distance("explan", "explain"), 1);
  EXPECT_EQ(edit_distance("explaain", "explain"), 1);
  EXPECT_EQ(edit_distance("explein", "explain"), 1);
  EXPECT_EQ(edit_distance("explian", "explain"), 1) << "two neighbours swapped";
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
}

std::string suggested(std::string_view word) {
  return did_you_mean(word, {"explain", "selftest", "--no-fuse", "--kernels", "-o"});
}

TEST(Suggest, NamesTheNearest) {
  EXPECT_EQ(suggested("explian"), "; did you mean 'explain'?");
  EXPECT_EQ(suggested("self-test"), "; did you mean 'selftest'?");
  EXPECT_EQ(suggested("--nofuse"), "; did you mean '--no-fuse'?");
  EXPECT_EQ(suggested("kernels"), "; did you mean '--kernels'?");
}

TEST(Suggest, CompletesABeginning) {
  EXPECT_EQ(suggested("exp"), "; did you mean 'explain'?");
  EXPECT_EQ(suggested("--ker"), "; did you mean '--kernels'?");
  EXPECT_EQ(suggested("--k"), "") << "too little to guess from";
}

TEST(Suggest, IsSilentWhereNothingIsNear) {
  for (const char* word : {"", "-", "x", "-x", "train", "--frobnicate", "--"}) {
    EXPECT_EQ(suggested(word), "") << word;
  }
  EXPECT_EQ(did_you_mean("explain", {}), "");
}

}  // namespace
}  // namespace tessera::cli
