// Joined kernels, run on the host: each part gives bit for bit what its kernel gives alone.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "codegen/host_kernel.h"
#include "codegen/zoo.h"

namespace tessera {
namespace {

class RenderedParts : public testing::TestWithParam<RenderOptions> {
 protected:
  void SetUp() override {
    const std::string reason = host_compiler_missing();
    if (!reason.empty()) GTEST_SKIP() << reason;
  }

  RenderOptions joined(int parts) const {
    RenderOptions options = GetParam();
    options.parts = parts;
    return options;
  }
};

INSTANTIATE_TEST_SUITE_P(Promises, RenderedParts, testing::ValuesIn(promised_options()),
                         promise_name);

using Floats = std::vector<float>;

Floats waves(int64_t n, float phase) {
  Floats values;
  for (int64_t i = 0; i < n; ++i) values.push_back(3 * std::sin(float(i) * 1.7f + phase));
  return values;
}

constexpr int64_t kExtents[] = {1, 1000, 3, 64, 517}, kRows[] = {1, 40, 3, 8, 21};

TEST_P(RenderedParts, EveryPartHasItsOwnOperandsAndLength) {
  const KernelIR ir = softmax_kernel(DType::f32, 1, 20);  // rows of 20, as many as extent0 says
  const HostKernel together(ir, joined(8)), alone(ir, GetParam());
  std::vector<KernelPart> parts;
  std::vector<Floats> x, y, m, expected_y, expected_m;
  for (const int64_t rows : kRows) {
    x.push_back(waves(20 * rows, float(rows)));
    y.emplace_back(size_t(20 * rows));
    m.emplace_back(size_t(rows));
  }
  expected_y = y, expected_m = m;
  for (size_t p = 0; p < x.size(); ++p) {
    parts.push_back({.operands = {x[p].data(), y[p].data(), m[p].data()}, .extent0 = kRows[p]});
    alone.run({x[p].data(), expected_y[p].data(), expected_m[p].data()}, kRows[p]);
  }
  together.run_parts(parts, 8);
  for (size_t p = 0; p < x.size(); ++p) {
    EXPECT_EQ(y[p], expected_y[p]) << p;
    EXPECT_EQ(m[p], expected_m[p]) << p;
  }
}

TEST_P(RenderedParts, MapsOfAnyLength) {
  const KernelIR ir = all_casts_kernel(DType::f32);
  const size_t outputs = ir.operands.size() - 1;
  const HostKernel together(ir, joined(21)), alone(ir, GetParam());
  std::vector<Floats> x;
  for (const int64_t n : kExtents) x.push_back(waves(n, float(n)));
  std::vector<std::vector<double>> made(x.size() * outputs), expected;
  for (size_t p = 0; p < x.size(); ++p) {
    for (size_t i = 0; i < outputs; ++i) made[p * outputs + i].resize(size_t(kExtents[p]));
  }
  expected = made;
  std::vector<KernelPart> parts;
  for (size_t p = 0; p < x.size(); ++p) {
    KernelPart part{.operands = {x[p].data()}, .extent0 = kExtents[p]};
    std::vector<void*> operands = {x[p].data()};
    for (size_t i = 0; i < outputs; ++i) {
      part.operands.push_back(made[p * outputs + i].data());
      operands.push_back(expected[p * outputs + i].data());
    }
    parts.push_back(part);
    alone.run(operands, kExtents[p]);
  }
  together.run_parts(parts, 21);
  for (size_t i = 0; i < made.size(); ++i) {
    const size_t bytes = made[i].size() * sizeof(double);
    EXPECT_EQ(std::memcmp(made[i].data(), expected[i].data(), bytes), 0) << i;
  }
}

TEST_P(RenderedParts, SplitRowsOfEachPart) {
  const KernelIR ir = norm_kernel(DType::f32);
  RenderOptions options = joined(8), split = GetParam();
  options.split = split.split = true;
  const HostKernel together(ir, options), alone(ir, split);
  std::vector<Floats> x;
  for (const int64_t n : kExtents) x.push_back(waves(n, float(n)));
  std::vector<Floats> made(x.size(), Floats(1)), expected = made;
  std::vector<KernelPart> parts;
  for (size_t p = 0; p < x.size(); ++p) {
    const auto splits = int64_t(1 + p);
    parts.push_back(
        {.operands = {x[p].data(), made[p].data()}, .extent0 = kExtents[p], .splits = splits});
    alone.run_split({x[p].data(), expected[p].data()}, kExtents[p], splits);
  }
  together.run_parts(parts, 8);
  EXPECT_EQ(made, expected);
  EXPECT_GT(made[0][0], 0);
}

TEST(PartTable, SaysWhereEachPartBegins) {
  int x = 0, y = 0;
  const KernelPart parts[] = {{.operands = {&x}, .extent0 = 7, .groups = 2},
                              {.operands = {&y}, .extent0 = 9, .groups = 3}};
  const std::vector<uint64_t> table = part_table(parts, 4, false);
  ASSERT_EQ(table.size(), 4u * 2 + 3);  // an operand and extent0 for each; 5 beginnings
  EXPECT_EQ(table[1], 7u);
  EXPECT_EQ(table[3], 9u);
  const uint64_t high = uint64_t{1} << 32;
  EXPECT_EQ(table[8], 0 + 2 * high);
  EXPECT_EQ(table[9], 5 + 5 * high);  // none begins behind the last
  EXPECT_EQ(table[10], 5 + 5 * high);
}

}  // namespace
}  // namespace tessera
