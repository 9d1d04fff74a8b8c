#include "golden/golden.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <span>

#include "tessera/tensor/autograd.h"
#include "tessera/tensor/ops.h"

namespace tessera::golden {
namespace {

constexpr DType kFloatingTypes[] = {DType::f64, DType::f32, DType::bf16};

// A row and the type to run it in.
template <class R>
struct Run {
  const R* row;
  DType dtype;
};

// The test's name, not the address, is what a failure should show.
template <class R>
void PrintTo(const Run<R>& run, std::ostream* out) {
  *out << run.row->name << " in " << name(run.dtype);
}

template <class R>
std::vector<Run<R>> runs(const std::vector<R>& rows, std::span<const DType> types) {
  std::vector<Run<R>> result;
  for (const R& row : rows) {
    for (const DType dtype : types) result.push_back({&row, dtype});
  }
  return result;
}

template <class R>
std::string run_name(const testing::TestParamInfo<Run<R>>& info) {
  return cat(info.param.row->name, "_", info.param.dtype);
}

// First order -----------------------------------------------------------------------------------

class Golden : public testing::TestWithParam<Run<Row>> {};

TEST_P(Golden, AsPyTorch) {
  const auto [row, dtype] = GetParam();
  if (const std::string why = skipped(row->name, dtype); !why.empty()) GTEST_SKIP() << why;
  EXPECT_EQ(differences(*row, dtype), "");
}
INSTANTIATE_TEST_SUITE_P(Cases, Golden, testing::ValuesIn(runs(floating_rows(), kFloatingTypes)),
                         run_name<Row>);

class GoldenExact : public testing::TestWithParam<Run<Row>> {};

TEST_P(GoldenExact, AsPyTorch) { EXPECT_EQ(exact_differences(*GetParam().row), ""); }
INSTANTIATE_TEST_SUITE_P(Cases, GoldenExact,
                         testing::ValuesIn(runs(exact_rows(), std::span(kFloatingTypes, 1))),
                         [](const auto& run) { return std::string(run.param.row->name); });

// Second order ----------------------------------------------------------------------------------

class GoldenSecondOrder : public testing::TestWithParam<Run<SecondOrderRow>> {};

TEST_P(GoldenSecondOrder, AsPyTorch) {
  const auto [row, dtype] = GetParam();
  EXPECT_EQ(second_order_differences(*row, dtype), "");
}
INSTANTIATE_TEST_SUITE_P(Composites, GoldenSecondOrder,
                         testing::ValuesIn(runs(second_order_rows(), std::span(kFloatingTypes, 2))),
                         run_name<SecondOrderRow>);

// The files and the rows ------------------------------------------------------------------------

using Names = std::multiset<std::string>;

template <class R>
void add_names(Names& names, const std::vector<R>& rows) {
  for (const R& row : rows) names.emplace(row.name);
}

Names as_names(const std::vector<std::string>& cases) { return {cases.begin(), cases.end()}; }

TEST(GoldenFile, EveryCaseHasARowAndEveryRowACase) {
  Names floating, exact;
  for (const std::string& name : first_order_file().cases()) {
    const bool is_exact = first_order_file().facts(name).find("exact") != nullptr;
    (is_exact ? exact : floating).insert(name);
  }
  Names floating_names, exact_names;
  add_names(floating_names, floating_rows());
  add_names(exact_names, exact_rows());
  EXPECT_EQ(floating_names, floating);
  EXPECT_EQ(exact_names, exact);
}

TEST(GoldenFile, EveryCompositeHasARow) {
  Names names;
  add_names(names, second_order_rows());
  EXPECT_EQ(names, as_names(second_order_file().cases()));
}

TEST(GoldenFile, IsLargeEnough) {
  const auto has_gradient = [](const Row& row) {
    return first_order_file().find(row.name, "cotangent", 0).defined();
  };
  EXPECT_GE(floating_rows().size(), 150u);
  EXPECT_GE(std::ranges::count_if(floating_rows(), has_gradient), 150);
  EXPECT_GE(second_order_rows().size(), 20u);
}

TEST(GoldenFile, IsOfTheVersionItSays) {
  EXPECT_TRUE(first_order_file().torch_version().starts_with("2.11"));
  EXPECT_TRUE(second_order_file().torch_version().starts_with("2.11"));
}

TEST(GoldenFile, NearlyAllCasesRunInEveryType) {
  size_t complete = 0;
  for (const Row& row : floating_rows()) {
    complete += std::ranges::all_of(kFloatingTypes,
                                    [&](DType dtype) { return skipped(row.name, dtype).empty(); });
  }
  EXPECT_GE(double(complete), 0.95 * double(floating_rows().size()));
}

// The comparison itself -------------------------------------------------------------------------

TEST(GoldenComparison, AllowsTwiceTheirErrorAndTwoUnits) {
  EXPECT_EQ(ulp_at(DType::f32, 1), 0x1p-23);
  EXPECT_EQ(ulp_at(DType::f32, -1.9), 0x1p-23);
  EXPECT_EQ(ulp_at(DType::bf16, 6), 0x1p-5);
  EXPECT_EQ(ulp_at(DType::f32, 0), 0x1p-149);
  EXPECT_EQ(tolerance(DType::f64, 3, 0), 3e-12);
  EXPECT_EQ(tolerance(DType::f32, 1, 0.25), 0.5 + 0x1p-22);

  const Tensor reference = tensor<double>({1, 2, 0.5});
  const auto with_error = [](double error) { return tensor<double>({1, 2, 0.5 + error}); };
  EXPECT_EQ(compare(with_error(0x1p-21), reference, DType::f32, 0), "");
  EXPECT_NE(compare(with_error(0x1p-20), reference, DType::f32, 0), "");
  EXPECT_EQ(compare(with_error(0x1p-20), reference, DType::f32, 0x1p-21), "");
  EXPECT_NE(compare(with_error(3e-12), reference, DType::f64, 0), "");
}

TEST(GoldenComparison, SeesShapesIntegersAndWhatIsNotFinite) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  const Tensor reference = tensor<double>({inf, nan, 1});
  EXPECT_EQ(compare(tensor<double>({inf, nan, 1}), reference, DType::bf16, 0), "");
  EXPECT_NE(compare(tensor<double>({-inf, nan, 1}), reference, DType::bf16, 0), "");
  EXPECT_NE(compare(tensor<double>({inf, 1, 1}), reference, DType::bf16, 0), "");
  EXPECT_NE(compare(tensor<double>({inf, nan, nan}), reference, DType::bf16, 0), "");
  EXPECT_EQ(compare(tensor<double>({1}), tensor<double>({1, 1}), DType::f64, 0),
            "expected (2,), got (1,)");
  EXPECT_NE(compare(tensor<int64_t>({100}), tensor<int64_t>({101}), DType::bf16, 10), "");
}

TEST(GoldenComparison, RefusesAnotherFunction) {
  for (const DType dtype : kFloatingTypes) {
    EXPECT_NE(differences({"sinh", tan}, dtype), "");
    EXPECT_NE(differences({"exp", [](X x) { return cast(exp(x[0]), DType::f16); }}, dtype), "");
    EXPECT_NE(differences({"split", [](X x) { return Outputs{x[0]}; }}, dtype), "");
  }
}

TEST(GoldenComparison, RefusesAnotherGradient) {
  const auto right = [](X x) { return exp(x[0]); };
  const auto stopped = [](X x) { return stop_gradient(exp(x[0])); };
  const auto off = [](X x) { return exp(x[0]) + x[0] - stop_gradient(x[0]); };
  for (const DType dtype : kFloatingTypes) {
    EXPECT_EQ(differences({"exp", right}, dtype), "");
    EXPECT_TRUE(differences({"exp", stopped}, dtype).starts_with("grad 0: element"));
    EXPECT_NE(differences({"exp", off}, dtype), "");
  }
}

TEST(GoldenComparison, RefusesAnotherSecondOrder) {
  const SecondOrderRow half = {"softmax", [](X x) { return sum(softmax(x[0]) * x[1]) * 0.5; }};
  EXPECT_TRUE(second_order_differences(half, DType::f64).starts_with("value 0: element 0"));
  // d² is 0 with its gradient, but not with its second order.
  const SecondOrderRow flat = {"softmax", [](X x) {
                                 const Tensor y = softmax(x[0]);
                                 const Tensor d = y - stop_gradient(y);
                                 return sum((y + d * d) * x[1]);
                               }};
  EXPECT_TRUE(second_order_differences(flat, DType::f64).starts_with("second 0: element"));
}

}  // namespace
}  // namespace tessera::golden
