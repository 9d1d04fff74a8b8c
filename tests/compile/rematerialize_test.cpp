#include <gtest/gtest.h>

#include "compile/function_builder.h"
#include "support/expect_error.h"
#include "tessera/tensor/eval.h"
#include "tessera/tessera.h"

namespace tessera {
namespace {

// A chain of layers whose gradient needs every layer's output.
std::vector<Tensor> tower(const std::vector<Tensor>& x, int layers) {
  Tensor y = x[0];
  for (int i = 0; i < layers; ++i) y = tanh(matmul(y, x[0]) + 0.01 * double(i));
  return {y};
}

struct Trained {
  Report report;
  std::vector<float> gradient;
  double loss;
};

Trained train(bool checkpointed, bool rematerialized, bool dropout = false) {
  CompileOptions options = compile_options();
  options.rematerialize = rematerialized;
  const CompileOptions before = set_compile_options(options);
  const Random random(3);
  auto step = compile([&](const Tensor& x) {
    Tensor y = x;
    for (int block = 0; block < 4; ++block) {
      const TensorFunction fn = [&](const std::vector<Tensor>& in) {
        const std::vector<Tensor> out = tower(in, 8);
        return dropout ? std::vector<Tensor>{random.dropout(out[0], 0.25)} : out;
      };
      y = checkpointed ? checkpoint(fn, {y})[0] : fn({y})[0];
    }
    const Tensor loss = sum(y * y);
    return std::vector<Tensor>{loss, grad(loss, x)};
  });
  std::vector<float> data(64 * 64);
  for (size_t i = 0; i < data.size(); ++i) data[i] = 0.001f * float(i % 97) - 0.04f;
  const std::vector<Tensor> results = step(tensor(data, {64, 64}));
  set_compile_options(before);
  return {step.program().report, results[1].to_vector<float>(), results[0].item()};
}

TEST(Rematerialize, CheckpointLowersThePeakAndKeepsGradientsEqual) {
  const Trained plain = train(false, true), checkpointed = train(true, true),
                ignored = train(true, false);
  EXPECT_EQ(plain.report.rematerialized, 0);
  EXPECT_GT(checkpointed.report.rematerialized, 4 * 7);
  EXPECT_EQ(ignored.report.rematerialized, 0);
  EXPECT_EQ(checkpointed.loss, plain.loss);
  EXPECT_EQ(checkpointed.gradient, plain.gradient);
  EXPECT_EQ(ignored.gradient, plain.gradient);
  EXPECT_EQ(ignored.report.temporary_bytes, plain.report.temporary_bytes);
  EXPECT_LT(2 * checkpointed.report.temporary_bytes, plain.report.temporary_bytes)
      << "checkpointed:\n"
      << to_string(checkpointed.report) << "plain:\n"
      << to_string(plain.report);
}

TEST(Rematerialize, RecomputedDropoutDrawsTheSameNumbers) {
  const Trained plain = train(false, true, true), checkpointed = train(true, true, true);
  EXPECT_EQ(checkpointed.loss, plain.loss);
  EXPECT_EQ(checkpointed.gradient, plain.gradient);
  EXPECT_LT(checkpointed.report.temporary_bytes, plain.report.temporary_bytes);
}

TEST(Rematerialize, NestedRegionsAndCapturedTensors) {
  auto run = [](bool on) {
    const Tensor w = tensor<float>({0.5f, -0.25f, 1});
    auto f = compile([&](const Tensor& x) {
      const Tensor outside = exp(x * 0.5);  // captured by both functions below
      const TensorFunction inner = [&](const std::vector<Tensor>& in) {
        return std::vector<Tensor>{tanh(in[0] * w) * outside};
      };
      const TensorFunction outer = [&](const std::vector<Tensor>& in) {
        const Tensor y = sin(in[0]);
        const Tensor z = on ? checkpoint(inner, {y})[0] : inner({y})[0];
        return std::vector<Tensor>{cos(z) * outside + y};
      };
      const Tensor y = on ? checkpoint(outer, {x * 2})[0] : outer({x * 2})[0];
      const Tensor loss = sum(y * y);
      return std::vector<Tensor>{loss, grad(loss, x)};
    });
    const std::vector<Tensor> results = f(tensor<float>({0.1f, 0.7f, -1.3f}));
    EXPECT_EQ(f.program().report.rematerialized > 0, on);
    return std::make_pair(results[0].to_vector<float>(), results[1].to_vector<float>());
  };
  EXPECT_EQ(run(true), run(false));
}

TEST(Rematerialize, AssignsInsideARegionHappenOnce) {
  const Var count(scalar(0.0f), "count", false);
  auto f = compile([&](const Tensor& x) {
    const Tensor y = checkpoint(
        [&](const std::vector<Tensor>& in) {
          count.assign(count.value() + 1);
          return std::vector<Tensor>{tanh(in[0]) * count.value()};
        },
        {x})[0];
    return grad(sum(y * y), x);
  });
  f(tensor<float>({1, 2}));
  f(tensor<float>({1, 2}));
  EXPECT_EQ(count.value().item(), 2);
}

TEST(Rematerialize, ClonesStandBeforeTheirFirstUserOutside) {
  using namespace graph;
  const Value x = leaf({8});
  Attrs region;
  region.bits = 1;
  const Value in{make_node(Op::region_enter, {x}, region), 0};
  const Value hidden = apply(Op::exp, in);
  const Value out{make_node(Op::region_exit, {apply(Op::sin, hidden)}, region), 0};
  const Value late = matmul(reshape(out, {1, 8}), reshape(out, {8, 1}));
  const Value use = hidden * reshape(late, {1});
  Instances i = layout(function({x}, {use}));
  EXPECT_EQ(count(i, Op::exp), 1);
  rematerialize(i);
  EXPECT_EQ(verify_instances(i), "");
  EXPECT_EQ(count(i, Op::exp), 2);
  EXPECT_EQ(i.rematerialized, 1);
  for (size_t k = 0; k < i.list.size(); ++k) {
    if (i.list[k].late) {
      EXPECT_EQ(i.list[k].op, Op::exp);
      EXPECT_EQ(i.list[k + 1].op, Op::mul);
    }
  }
}

}  // namespace
}  // namespace tessera
