#include "tessera/bench/check.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>

namespace tessera::bench {
namespace {

TEST(Check, CountsUlpsOfTheElement) {
  const Expected expected{{1, 2}, {}, 1, Unit::element};
  const float next = std::nextafter(1.f, 2.f);
  const Check check = compare("cpu", {{next, 2}}, {expected});
  EXPECT_EQ(check.column, "cpu");
  EXPECT_DOUBLE_EQ(check.error, 1);
  EXPECT_EQ(check.tolerance, 1);
  EXPECT_EQ(check.elements, 2);
  EXPECT_TRUE(check.passed());
  EXPECT_FALSE(compare("cpu", {{std::nextafter(next, 2.f), 2}}, {expected}).passed());
}

TEST(Check, LooksAtThePositionsGiven) {
  Expected expected{{5, 7}, {1, 3}};
  EXPECT_TRUE(compare("cpu", {{0, 5, 0, 7}}, {expected}).passed());
  EXPECT_FALSE(compare("cpu", {{0, 5, 0, 8}}, {expected}).passed());
  expected.positions[1] = 4;
  EXPECT_FALSE(compare("cpu", {{0, 5, 0, 7}}, {expected}).passed()) << "beyond the output";
}

TEST(Check, ReportsTheOutputNearestToFailing) {
  const Expected loose{{1}, {}, 1000, Unit::element}, exact{{1}, {}, 0, Unit::element};
  const float off = 1 + 10 * std::numeric_limits<float>::epsilon();
  EXPECT_DOUBLE_EQ(compare("cpu", {{off}, {1}}, {loose, exact}).error, 10);
  const Check check = compare("cpu", {{1}, {off}}, {loose, exact});
  EXPECT_EQ(check.tolerance, 0);
  EXPECT_FALSE(check.passed());
}

TEST(Check, RefusesWhatIsNoNumberOrNotThere) {
  const Expected expected{{1, 2}, {}, 1e9};
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(compare("cpu", {{1, nan}}, {expected}).passed());
  EXPECT_FALSE(compare("cpu", {{1}}, {expected}).passed()) << "too short";
  EXPECT_FALSE(compare("cpu", {}, {expected}).passed()) << "no output";
}

TEST(Check, SamplesAreSpreadOverAllColumns) {
  EXPECT_EQ(sample_positions(3, 10), (std::vector<int64_t>{0, 1, 2}));
  const int64_t n = 1 << 20, columns = 1 << 10;
  const std::vector<int64_t> some = sample_positions(n, n / 8);
  EXPECT_NEAR(double(some.size()), double(n) / 8, double(n) / 40);
  std::set<int64_t> met;
  for (const int64_t at : some) {
    EXPECT_LT(at, n);
    met.insert(at % columns);
  }
  EXPECT_EQ(int64_t(met.size()), columns);
}

TEST(Check, TolerancesAreTheOpTables) {
  EXPECT_EQ(tolerance_of(Op::exp), info(Op::exp).ulp);
  EXPECT_EQ(tolerance_of(Op::matmul, 256), 16 * info(Op::matmul).ulp);
}

}  // namespace
}  // namespace tessera::bench
