#include <gtest/gtest.h>

#include "compile/function_builder.h"
#include "tessera/tensor/eval.h"
#include "tessera/tessera.h"

namespace tessera {
namespace {

using namespace graph;

KernelGraph kernels_with_recompute(const GraphFunction& f) {
  Instances instances = instances_of(f);
  recompute(instances);
  EXPECT_EQ(verify_instances(instances), "");
  return fuse(instances, true);
}

// Values that kernels store, beside the function's own outputs.
int temporaries(const KernelGraph& graph) {
  int n = 0;
  for (const PlannedBuffer& buffer : graph.buffers) n += buffer.kind == BufferKind::temporary;
  return n;
}

// y, and a late user of several functions of x that y's kernel has at hand.
GraphFunction forward_and_backward(Op inner) {
  const Value x = leaf({64, 64}), w = leaf({64, 64});
  const Value a = x * 2.0, b = a + 1.0, t = apply(inner, b);
  const Value product = matmul(t, w);
  return function({x, w}, {product * a * b * t});
}

TEST(Recompute, SimpleFunctionsOfWhatIsInMemoryAreNotStored) {
  const GraphFunction f = forward_and_backward(Op::abs);
  EXPECT_EQ(temporaries(kernels_of(f)), 4);              // a, b, t and the product
  EXPECT_EQ(temporaries(kernels_with_recompute(f)), 2);  // t for the product, and the product
}

TEST(Recompute, WhatCostsMoreThanItsBytesIsStored) {
  // t is stored for the product anyway: reading it is cheaper than another power.
  const Value x = leaf({64, 64}), w = leaf({64, 64}), p = leaf({});
  const Value t = apply(Op::pow, x, expand(reshape(p, {1, 1}), {64, 64}));
  const KernelGraph g = kernels_with_recompute(function({x, w, p}, {matmul(t, w) + t}));
  int powers = 0;
  for (const KernelNode& k : g.kernels) powers += k.label.find("pow") != std::string::npos;
  EXPECT_EQ(powers, 1);
}

TEST(Recompute, NothingIsReadThatIsLargerThanTheValue) {
  // One byte an element instead of eight: the comparison stays.
  const Value x = leaf({64, 64}), y = leaf({64, 64}), w = leaf({64, 64});
  const Value mask = apply(Op::gt, x, y), picked = where(mask, x, y);
  const Value z = where(mask, matmul(picked, w), w);
  const KernelGraph g = kernels_with_recompute(function({x, y, w}, {z}));
  EXPECT_EQ(temporaries(g), 3);  // mask, picked, product
}

TEST(Recompute, ValuesReadAcrossAViewStayStored) {
  const Value x = leaf({64, 64});
  const Value a = x * 2.0;
  const KernelGraph g = kernels_with_recompute(function({x}, {a + swap_last(a)}));
  EXPECT_EQ(g.kernels.size(), 2u);
}

TEST(Recompute, IndicesAreMadeWhereTheyAreUsed) {
  const Value x = leaf({64, 64}), w = leaf({64, 64});
  const Value row = iota(DType::i64, {64, 64}, 0), column = iota(DType::i64, {64, 64}, 1);
  const Value a = where(apply(Op::le, column, row), x, w);
  const Value b = where(apply(Op::lt, column, row), matmul(a, w), x);
  EXPECT_EQ(temporaries(kernels_with_recompute(function({x, w}, {b}))), 2);  // a, the product
}

struct Step {
  Report report;
  std::vector<float> values;
};

// Spelled out: the function of that name is one op.
Tensor gelu_of(const Tensor& y) {
  return 0.5 * y * (1.0 + tanh(0.79788456 * (y + 0.044715 * y * y * y)));
}

Step gelu_step(bool recompute) {
  CompileOptions options = compile_options();
  options.recompute = recompute;
  const CompileOptions before = set_compile_options(options);
  const Random random(5);
  const Var w1(random.normal({32, 128}), "w1"), w2(random.normal({128, 32}), "w2");
  const auto step = compile([&](const Tensor& x) {
    const Tensor loss = sum(square(matmul(gelu_of(matmul(x, w1)), w2)));
    const std::vector<Tensor> grads = grad(loss, {w1.value(), w2.value()});
    return std::vector<Tensor>{loss, grads[0], grads[1]};
  });
  const std::vector<Tensor> results = step(random.normal({64, 32}));
  set_compile_options(before);
  Step done{step.program().report, {}};
  for (const Tensor& result : results) {
    for (const float v : result.to_vector<float>()) done.values.push_back(v);
  }
  return done;
}

TEST(Recompute, GeluKeepsOneTensorForItsGradientAndGivesEqualBits) {
  init();
  const Step stored = gelu_step(false), again = gelu_step(true);
  EXPECT_EQ(stored.values, again.values);
  EXPECT_GT(again.report.recomputed, 0);
  EXPECT_EQ(again.report.kernels, stored.report.kernels);
  EXPECT_LT(again.report.temporary_bytes * 2, stored.report.temporary_bytes);
  EXPECT_LT(again.report.bytes_moved, stored.report.bytes_moved);
}

}  // namespace
}  // namespace tessera
