// What judges an op must see that it is wrong.
#include "tessera/conformance/check_op.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

namespace tessera {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

const Row& row_of(Op op) {
  for (const Row& row : rows()) {
    if (row.op == op) return row;
  }
  TESSERA_ASSERT(!"an op without a row");
  std::abort();
}

// The device's answer, with one element of each large output changed.
Evaluate disturbed(const std::function<void(Array&)>& disturb) {
  return [disturb](std::span<const Value> outputs) {
    std::vector<Array> result = evaluate_on_device(outputs);
    for (Array& array : result) {
      if (numel(array.type.shape) == 1031) disturb(array);
    }
    return result;
  };
}

TEST(UlpErrors, CountsAndSums) {
  const Array expected{{DType::f32, {3}}, {1, 2, 4}, {}};
  Array actual = expected;
  actual.real[1] += 3 * ulp(DType::f32, 2);
  const UlpErrors errors = ulp_errors(actual, expected, Unit::element);
  EXPECT_EQ(errors.largest, 3);
  EXPECT_EQ(errors.sum, 3);
  EXPECT_EQ(errors.count, 3);
  EXPECT_EQ(ulp_errors(actual, expected, Unit::largest).largest, 1.5);
  actual.real[0] = std::nan("");
  EXPECT_EQ(ulp_errors(actual, expected, Unit::element).largest, kInfinite);
}

TEST(CheckOp, PassesWhatTheDeviceComputes) {
  const OpCheck check = check_op(row_of(Op::exp), {DType::f32, DType::bf16});
  EXPECT_TRUE(check.passed()) << check.failure;
  EXPECT_EQ(check.cases, int64_t(2 * row_of(Op::exp).cases(DType::f32).size()));
  EXPECT_GT(check.max_error, 0);
  EXPECT_LE(check.max_error, check.tolerance);
  EXPECT_GT(check.mean_error(), 0);
  EXPECT_LT(check.mean_error(), check.max_error);
}

TEST(CheckOp, SeesOneWrongElement) {
  const OpCheck check = check_op(row_of(Op::exp), {DType::f32}, disturbed([](Array& array) {
                                   array.real[500] += 100 * ulp(DType::f32, array.real[500]);
                                 }));
  EXPECT_FALSE(check.passed());
  EXPECT_NEAR(check.max_error, 100, 2);
  EXPECT_TRUE(check.failure.starts_with("f32 (1031,): ")) << check.failure;
  EXPECT_NE(check.failure.find(" ulps, expected at most "), std::string::npos);
}

TEST(CheckOp, SeesAWrongInteger) {
  const OpCheck check = check_op(row_of(Op::add), {DType::i32},
                                 disturbed([](Array& array) { array.integer[1030] += 1; }));
  EXPECT_FALSE(check.passed());
  EXPECT_EQ(check.max_error, kInfinite);
}

TEST(CheckOp, FailsWhereTheDeviceThrows) {
  const OpCheck check =
      check_op(row_of(Op::neg), {DType::f32},
               [](std::span<const Value>) -> std::vector<Array> { throw Error("no such kernel"); });
  EXPECT_FALSE(check.passed());
  EXPECT_EQ(check.failure, "f32 (): no such kernel");
  EXPECT_EQ(check.cases, int64_t(row_of(Op::neg).cases(DType::f32).size()));
}

TEST(CheckOp, ShowsTheWorstCase) {
  OpCheck check{};
  check.add({0, 0, 10}, 2, "a");
  EXPECT_EQ(check.tolerance, 2);
  check.add({1.5, 3, 10}, 4, "b");
  EXPECT_EQ(check.max_error, 1.5);
  EXPECT_EQ(check.tolerance, 4);
  EXPECT_EQ(check.mean_error(), 0.15);
  EXPECT_TRUE(check.passed());
  check.add({1, 1, 10}, 0.5, "c");
  EXPECT_EQ(check.max_error, 1) << "smaller than one before, but too large";
  EXPECT_EQ(check.tolerance, 0.5);
  EXPECT_EQ(check.failure, "c: 1 ulps, expected at most 0.5");
  check.add({3, 3, 10}, 4, "d");
  EXPECT_EQ(check.max_error, 1) << "a case that passed";
  check.add({5, 5, 10}, 4, "e");
  EXPECT_EQ(check.max_error, 5);
  EXPECT_EQ(check.failure, "c: 1 ulps, expected at most 0.5") << "the first one";
}

TEST(CheckOp, TakesTheDTypesOfTheRow) {
  EXPECT_EQ(dtypes_taken(row_of(Op::logical_not)), std::vector{DType::boolean});
  EXPECT_EQ(first_dtype(row_of(Op::logical_not)), std::vector{DType::boolean});
  EXPECT_EQ(dtypes_taken(row_of(Op::where)).size(), size_t(kDTypeCount));
  EXPECT_EQ(first_dtype(row_of(Op::where)), std::vector{DType::f32});
}

TEST(Trials, AllAreEveryDTypeCaseAndLayout) {
  const Row& row = row_of(Op::logical_not);
  const std::vector<Trial> trials = all_trials(row);
  EXPECT_EQ(trials.size(), row.cases(DType::boolean).size() * size_t(kLayouts));
  EXPECT_EQ(trials[kLayouts - 1].layout, kLayouts - 1);
  EXPECT_EQ(all_trials(row_of(Op::iota)).size(),
            dtypes_taken(row_of(Op::iota)).size() * row_of(Op::iota).cases(DType::f32).size())
      << "without inputs there is one layout";
}

TEST(Trials, SomeAreTheLargestAndOneThatTurns) {
  const Row& row = row_of(Op::add);
  std::set<DType> dtypes;
  std::set<int> layouts;
  for (int64_t turn = 0; turn < 20; ++turn) {
    const std::vector<Trial> trials = some_trials(row, {}, turn);
    ASSERT_EQ(trials.size(), 2u);
    EXPECT_EQ(trials[0].dtype, DType::f32);
    EXPECT_EQ(trials[0].layout, 0);
    EXPECT_EQ(trials[0].c.name, "(31, 37)");
    dtypes.insert(trials[1].dtype);
    layouts.insert(trials[1].layout);
  }
  EXPECT_EQ(dtypes.size(), dtypes_taken(row).size());
  EXPECT_EQ(layouts.size(), size_t(kLayouts));
}

TEST(Trials, SomeAreSeveralWhereThereIsAKernel) {
  Target target;
  target.named_kernels = {"sort"};
  const size_t with = some_trials(row_of(Op::sort), target, 3).size();
  EXPECT_GT(with, 3u);
  EXPECT_LE(with, 5u);
  EXPECT_EQ(some_trials(row_of(Op::sort), {}, 3).size(), 2u);
}

TEST(Trials, SayWhichLayoutFailed) {
  const Row& row = row_of(Op::neg);
  OpCheck check{};
  check_trial(
      row, {row.cases(DType::f32)[3], DType::f32, 2},
      [](std::span<const Value>) -> std::vector<Array> { throw Error("lost"); }, check);
  EXPECT_EQ(check.failure, "f32 (7,) layout 2: lost");
}

}  // namespace
}  // namespace tessera
