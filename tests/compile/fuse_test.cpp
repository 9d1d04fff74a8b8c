#include <gtest/gtest.h>

#include "compile/function_builder.h"

namespace tessera {
namespace {

using namespace graph;

std::vector<std::string> labels(const KernelGraph& graph) {
  std::vector<std::string> result;
  for (const KernelNode& k : graph.kernels) result.push_back(k.label);
  return result;
}
using Labels = std::vector<std::string>;

TEST(Fuse, AChainIsOneKernel) {
  const Value x = leaf({6, 7}), bias = leaf({7});
  const GraphFunction f = function({x, bias}, {apply(Op::tanh, apply(Op::exp, x + bias) * 2.0)});
  EXPECT_EQ(labels(kernels_of(f)), (Labels{"add_exp_mul_tanh"}));
  EXPECT_EQ(kernels_of(f, false).kernels.size(), 4u);
  EXPECT_EQ(verify_kernels(kernels_of(f)), "");
  EXPECT_EQ(verify_kernels(kernels_of(f, false)), "");
}

TEST(Fuse, ReductionsTakeWhatSurroundsThem) {
  const Value x = leaf({6, 7});
  const Value e = apply(Op::exp, x - reduce(Op::max, x, {1}));
  const KernelGraph g = kernels_of(function({x}, {e / reduce(Op::sum, e, {1})}));
  ASSERT_EQ(labels(g), (Labels{"max_sub_exp_sum_div"}));
  const KernelIR& ir = *g.kernels[0].call.ir;
  EXPECT_EQ(ir.extents, (Dims{6, 7}));
  EXPECT_EQ(ir.inner, 1);
  // Columns: kept axes come first.
  const KernelGraph columns = kernels_of(function({x}, {reduce(Op::sum, x * x, {0})}));
  ASSERT_EQ(columns.kernels.size(), 1u);
  EXPECT_EQ(columns.kernels[0].call.ir->extents, (Dims{7, 6}));
}

TEST(Fuse, RowResultsGoOnInTheSameKernel) {
  const Value g = leaf({32, 8}), w = leaf({1, 8});
  // The update of a bias from the gradient's column sums.
  const KernelGraph graph = kernels_of(function({g, w}, {w - reduce(Op::sum, g, {0}) * 0.1}));
  EXPECT_EQ(labels(graph), (Labels{"sum_mul_sub"}));
}

// Row-level steps stand between the fold and the elements that read it.
TEST(Fuse, NormsAreOneKernel) {
  const auto normed = [](const Value& x, const Dims& axes) {
    const Value mean = reduce(Op::sum, x * x, axes) * 0.125;
    return x * apply(Op::rsqrt, mean + 1e-6);
  };
  const Value x = leaf({6, 7});
  const KernelGraph rows = kernels_of(function({x}, {normed(x, {1})}));
  EXPECT_EQ(labels(rows), (Labels{"mul_sum_mul_add_rsqrt_mul"}));
  EXPECT_EQ(verify_kernels(rows), "");
  // The last step reads what another kernel makes of the rows: no cycle.
  const Value scale = apply(Op::rsqrt, reduce(Op::sum, x * x, {1}) * 0.125);
  const Value w = leaf({1, 7});
  const KernelGraph apart = kernels_of(function({x, w}, {x * scale + matmul(scale, w)}));
  EXPECT_EQ(verify_kernels(apart), "");
  EXPECT_EQ(apart.kernels.size(), 3u);
  // A long row is better read by many at once.
  const Value line = leaf({2, 40000});
  EXPECT_EQ(kernels_of(function({line}, {normed(line, {1})})).kernels.size(), 2u);
}

TEST(Fuse, DifferentAxesAreDifferentKernels) {
  const Value x = leaf({6, 7});
  const Value y = apply(Op::exp, x);
  const KernelGraph g =
      kernels_of(function({x}, {reduce(Op::sum, y, {0}), reduce(Op::sum, y, {1})}));
  EXPECT_EQ(g.kernels.size(), 2u);
}

TEST(Fuse, ValuesOfTheBackwardPassAreComputedThere) {
  // tanh's gradient factor depends on the forward pass alone, but only the backward pass reads it:
  // the forward kernel must not store it.
  const Value x = leaf({16, 16}), w = leaf({16, 16});
  const Value y = apply(Op::tanh, x);
  const Value z = matmul(y, w);
  const Value factor = -(y * y) + 1.0;
  const KernelGraph g = kernels_of(function({x, w}, {z * factor}));
  EXPECT_EQ(labels(g), (Labels{"tanh", "matmul", "mul_neg_add_mul"}));
}

TEST(Fuse, NeverMakesACycle) {
  // a feeds both b (fusable) and a product that b also needs.
  const Value x = leaf({8, 8});
  const Value a = apply(Op::exp, x);
  const Value p = matmul(a, a);
  const KernelGraph g = kernels_of(function({x}, {a + p}));
  EXPECT_EQ(labels(g), (Labels{"exp", "matmul", "add"}));
}

TEST(Fuse, SiblingsThatAlsoFeedEachOtherStayApart) {
  const Value x = leaf({4, 4}), w = leaf({4, 4});
  const Value i = apply(Op::exp, x);
  const KernelGraph g = kernels_of(function({x, w}, {i * 2.0, matmul(i, w) + i}));
  EXPECT_EQ(verify_kernels(g), "");
  EXPECT_EQ(labels(g), (Labels{"exp_mul", "matmul", "add"}));
}

TEST(Fuse, SiblingsThatShareAnInputMerge) {
  const Value x = leaf({100});
  const Value s = apply(Op::sin, x);
  const KernelGraph g = kernels_of(function({x}, {apply(Op::exp, s), apply(Op::cos, s)}));
  ASSERT_EQ(g.kernels.size(), 1u);
  EXPECT_EQ(g.kernels[0].call.outputs, 2);
}

TEST(Fuse, ViewsOfAnUnfinishedValueWaitForIt) {
  const Value x = leaf({8, 8});
  const Value y = apply(Op::exp, x);
  EXPECT_EQ(kernels_of(function({x}, {y + swap_last(y)})).kernels.size(), 2u);
  EXPECT_EQ(kernels_of(function({x}, {pad(y, {1, 0}, {0, 1}, 0)})).kernels.size(), 2u);
}

TEST(Fuse, DimensionsCollapse) {
  const Value x = leaf({3, 4, 5});
  EXPECT_EQ(kernels_of(function({x}, {apply(Op::exp, x)})).kernels[0].call.ir->extents, (Dims{60}));
  const Value y = permute(x, {0, 2, 1});
  EXPECT_EQ(kernels_of(function({x}, {apply(Op::exp, y)})).kernels[0].call.ir->extents,
            (Dims{3, 5, 4}));
  const Value s = leaf({});
  EXPECT_EQ(kernels_of(function({s}, {apply(Op::exp, s)})).kernels[0].call.ir->extents, (Dims{1}));
  const Value ones_ = leaf({1, 5, 1});
  const KernelGraph g =
      kernels_of(function({ones_}, {reduce(Op::max, apply(Op::exp, ones_), {1})}));
  EXPECT_EQ(verify_kernels(g), "");
  EXPECT_EQ(g.kernels[0].call.ir->extents, (Dims{5}));
}

TEST(Fuse, KernelsStayOfReadableSize) {
  const Value x = leaf({10});
  Value y = x;
  for (int i = 0; i < 500; ++i) y = apply(i % 2 ? Op::sin : Op::exp, y);
  const KernelGraph g = kernels_of(function({x}, {y}));
  EXPECT_EQ(g.kernels.size(), 8u);
  for (const KernelNode& k : g.kernels) EXPECT_LE(k.call.ir->insts.size(), 70u);
}

TEST(Fuse, OutputsThatNobodyReadsHaveNoBuffer) {
  const Value x = leaf({3, 4}), gamma = leaf({4}), beta = leaf({4});
  const KernelGraph g =
      kernels_of(function({x, gamma, beta}, {layer_norm(x, gamma, beta, 1e-5)[0]}));
  ASSERT_EQ(g.kernels.size(), 1u);
  EXPECT_EQ(g.kernels[0].buffers, (std::vector<int>{0, 1, 2, 3, -1, -1}));
}

TEST(Fuse, SharingNeedsTheSameAccess) {
  const Value x = leaf({4, 4}), y = leaf({4, 4}), r = leaf({4, 1});
  auto only = [](const GraphFunction& f) { return kernels_of(f).kernels.at(0); };
  EXPECT_TRUE(may_share(only(function({x, y}, {x + y})), 0, 2));
  EXPECT_FALSE(may_share(only(function({x, y}, {x + swap_last(y)})), 1, 2));
  EXPECT_FALSE(may_share(only(function({x, r}, {x + r})), 1, 2));
  const Value half = leaf({4, 4}, DType::bf16);
  EXPECT_FALSE(may_share(only(function({half}, {cast(half, DType::f32)})), 0, 1));
  // A kernel with rows may load again after it has stored.
  EXPECT_FALSE(may_share(only(function({x}, {x / reduce(Op::sum, x, {1})})), 0, 1));
  const Value u = leaf({1, 4}), start = leaf({}, DType::i64);
  const KernelNode update = only(function({x, u, start}, {dynamic_update_slice(x, u, start, 0)}));
  EXPECT_TRUE(may_share(update, 0, 3));
  EXPECT_FALSE(may_share(update, 1, 3));
}

// Many scalars added up: one kernel where a kernel may have so many operands.
TEST(Fuse, OnePointTakesManyOperandsWhereTheTargetHasParameters) {
  std::vector<Value> scalars = {leaf({})};
  Value total = scalars[0];
  for (int i = 1; i < 148; ++i) {
    scalars.push_back(leaf({}));
    total = total + scalars.back();
  }
  const Instances instances = instances_of(function(scalars, {apply(Op::sqrt, total)}));
  EXPECT_EQ(fuse(instances, true, 504).kernels.size(), 1u);
  EXPECT_GT(fuse(instances, true, 128).kernels.size(), 1u);
  EXPECT_GT(fuse(instances, true).kernels.size(), 1u);
}

}  // namespace
}  // namespace tessera
