#include "tessera/bench/suites.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tessera/bench/claims.h"
#include "tessera/bench/op_case.h"
#include "tessera/bench/run.h"
#include "tessera/bench/text.h"

namespace tessera::bench {
namespace {

TEST(Suites, LinesHaveNamesOfTheirOwn) {
  std::set<std::string> names;
  for (const Case& one : all_cases()) {
    EXPECT_TRUE(names.insert(one.suite + " " + one.name).second) << one.name;
    EXPECT_TRUE(std::ranges::any_of(suites(), [&](const Suite& s) { return s.name == one.suite; }));
    EXPECT_GT(one.amount, 0) << one.name;
    EXPECT_LE(one.name.size(), 42u) << "too long for the table: " << one.name;
  }
}

TEST(Suites, EveryOneButClaimsHasLines) {
  for (const Suite& suite : suites()) {
    const std::vector<std::string> asked = {std::string(suite.name)};
    const std::vector<Case> cases = chosen_cases(all_cases(), asked);
    EXPECT_FALSE(cases.empty()) << suite.name;
    for (const Case& one : cases) {
      if (suite.name == "claims") EXPECT_TRUE(is_claimed(one.suite, one.name)) << one.name;
      if (suite.name != "claims") EXPECT_EQ(one.suite, suite.name);
    }
  }
  EXPECT_EQ(chosen_cases(all_cases(), {}).size(), all_cases().size());
}

// A few small lines of every suite, by their own references.
TEST(Suites, SmallLinesAreRight) {
  const std::set<std::string> small = {"f32 128",
                                       "one row: 1 x 768 x 768, b transposed",
                                       "add 262,144",
                                       "gelu 262,144",
                                       "softmax forward + backward 64 x 1024",
                                       "layer_norm forward + backward 64 x 1024",
                                       "sort 64 x 1024",
                                       "attention T = 256, forward + backward",
                                       "device to device 64 KiB",
                                       "mlp 784-256-10, forward + backward",
                                       "mlp 784-256-10, B = 64, step with AdamW",
                                       "replay of 1,000 nodes on 2 x 2 matrices"};
  size_t met = 0;
  for (const Case& one : all_cases()) {
    if (!small.contains(one.name)) continue;
    ++met;
    // The library's threads are no business of a sanitizer.
    const Contest contest = one.make({{Device()}, true});
    for (const Contender& contender : contest.contenders) {
      if (!contender.outputs || contender.column == kLibrary) continue;
      const Check check = compare(contender.column, contender.outputs(), contest.expected);
      EXPECT_TRUE(check.passed()) << one.name << ", " << check.column << ": " << check.error
                                  << " ulps, allowed " << check.tolerance;
      EXPECT_GT(check.elements, 0);
    }
  }
  EXPECT_EQ(met, small.size());
}

TEST(Suites, DataIsTheSameInEveryRun) {
  const std::vector<float> data = make_data(100'000, -1, 3, 7);
  EXPECT_EQ(data, make_data(100'000, -1, 3, 7));
  EXPECT_NE(data, make_data(100'000, -1, 3, 8));
  const auto [least, greatest] = std::ranges::minmax_element(data);
  EXPECT_NEAR(*least, -1, 1e-2);
  EXPECT_NEAR(*greatest, 3, 1e-2);
  EXPECT_GE(*least, -1);
  EXPECT_LT(*greatest, 3);
}

}  // namespace
}  // namespace tessera::bench
