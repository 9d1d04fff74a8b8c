// Training steps, their parts, and what the host pays to replay a program.
#include <cmath>

#include "tessera/bench/op_case.h"
#include "tessera/bench/plain_mlp.h"
#include "tessera/bench/suites.h"
#include "tessera/bench/training.h"
#include "tessera/nn/nn.h"
#include "tessera/optim/optim.h"
#include "tessera/tensor/compiled.h"
#include "tessera/tensor/ops.h"

namespace tessera::bench {

namespace {

using plain::Mlp;
using Tensors = std::vector<Tensor>;

// The losses of five steps have gone through five updates of every parameter.
constexpr double kStepTolerance = 256;  // ulps

constexpr double kForwardFlops =
    2.0 * Mlp::kBatch * (Mlp::kIn * Mlp::kHidden + Mlp::kHidden * Mlp::kOut);
// Gradients of both weights, and of the hidden layer; nobody asks for the input's.
constexpr double kBackwardFlops = kForwardFlops + 2.0 * Mlp::kBatch * Mlp::kHidden * Mlp::kOut;

const Shape kShapes[] = {
    {Mlp::kHidden, Mlp::kIn}, {Mlp::kHidden}, {Mlp::kOut, Mlp::kHidden}, {Mlp::kOut}};

std::vector<float> batch_x() { return make_data(Mlp::kBatch * Mlp::kIn, 0, 1, 1); }
std::vector<float> batch_targets() {
  std::vector<float> targets = make_data(Mlp::kBatch, 0, Mlp::kOut, 2);
  for (float& target : targets) target = std::floor(target);
  return targets;
}

std::vector<std::vector<float>> start_values() {
  std::vector<std::vector<float>> values;
  for (size_t i = 0; i < Mlp::kSizes.size(); ++i) {
    const double bound = 1 / std::sqrt(double(i < 2 ? Mlp::kIn : Mlp::kHidden));
    values.push_back(make_data(Mlp::kSizes[i], -bound, bound, 3 + i));
  }
  return values;
}

// x, targets, and the four parameters.
Operands mlp_operands() {
  Operands operands = {{{Mlp::kBatch, Mlp::kIn}, batch_x()},
                       {{Mlp::kBatch}, batch_targets(), DType::i64}};
  const std::vector<std::vector<float>> values = start_values();
  for (size_t i = 0; i < values.size(); ++i) operands.push_back({kShapes[i], values[i]});
  return operands;
}

Tensor mlp_loss(const Tensors& in) {
  const Tensor hidden = relu(matmul(in[0], transpose(in[2])) + in[3]);
  return cross_entropy(matmul(hidden, transpose(in[4])) + in[5], in[1]);
}

plain::MlpParameters<float> parameters_of(const Operands& in) {
  return {in[2].values.data(), in[3].values.data(), in[4].values.data(), in[5].values.data()};
}

Case samples(OpCase op, double flops) {
  op.suite = "step";
  op.operands = mlp_operands;
  op.flops = flops;
  Case one = to_case(std::move(op));
  one.unit = "samples/s";
  one.amount = Mlp::kBatch;
  return one;
}

Case forward_case() {
  OpCase op;
  op.name = "mlp 784-256-10, forward";
  op.apply = [](const Tensors& in) { return Tensors{mlp_loss(in)}; };
  op.loop = loop_of([](const Operands& in, auto& out) {
    using T = typename std::remove_reference_t<decltype(out[0])>::value_type;
    static thread_local plain::MlpPass<T> pass;
    out[0][0] = pass.forward(in[0].values.data(), in[1].values.data(), parameters_of(in));
  });
  op.outputs = {{1, tolerance_of(Op::matmul, Mlp::kIn)}};
  return samples(std::move(op), kForwardFlops);
}

Case both_case() {
  OpCase op;
  op.name = "mlp 784-256-10, forward + backward";
  op.apply = [](const Tensors& in) {
    const Tensor loss = mlp_loss(in);
    Tensors results = grad(loss, {in[2], in[3], in[4], in[5]});
    results.insert(results.begin(), loss);
    return results;
  };
  op.loop = loop_of([](const Operands& in, auto& out) {
    using T = typename std::remove_reference_t<decltype(out[0])>::value_type;
    static thread_local plain::MlpPass<T> pass;
    const float *x = in[0].values.data(), *targets = in[1].values.data();
    out[0][0] = pass.forward(x, targets, parameters_of(in));
    pass.backward(x, targets, parameters_of(in),
                  {out[1].data(), out[2].data(), out[3].data(), out[4].data()});
  });
  op.outputs = {{1, tolerance_of(Op::matmul, Mlp::kIn)}};
  for (const int64_t size : Mlp::kSizes) {
    op.outputs.push_back({size, tolerance_of(Op::matmul, Mlp::kIn)});
  }
  return samples(std::move(op), kForwardFlops + kBackwardFlops);
}

// The model of nn/ with a compiled step.
struct MlpModel {
  explicit MlpModel(bool adamw) {
    const Random random(1);
    model.add<Linear>("fc1", Mlp::kIn, Mlp::kHidden, random);
    model.add("relu", [](const Tensor& h) { return relu(h); });
    model.add<Linear>("fc2", Mlp::kHidden, Mlp::kOut, random);
    const std::vector<Var> parameters = model.parameters();
    const std::vector<std::vector<float>> values = start_values();
    for (size_t i = 0; i < values.size(); ++i) {
      parameters[i].set_bytes(DType::f32, values[i].data());
    }
    if (adamw) {
      optimizer = std::make_unique<AdamW>(parameters);
    } else {
      optimizer = std::make_unique<SGD>(parameters, SGDOptions{});
    }
    send();
  }

  void send() {
    x = tensor(host_x, {Mlp::kBatch, Mlp::kIn});
    targets = tensor(host_targets, {Mlp::kBatch});
  }

  Sequential model{"mlp"};
  std::unique_ptr<Optimizer> optimizer;
  const std::vector<float> host_x = batch_x();
  const std::vector<int64_t> host_targets = [] {
    const std::vector<float> values = batch_targets();
    return std::vector<int64_t>(values.begin(), values.end());
  }();
  Tensor x, targets;
  const CompiledFunction<Tensor, const Tensor&, const Tensor&> step =
      compile([this](const Tensor& in, const Tensor& wanted) {
        const Tensor loss = cross_entropy(model(in), wanted);
        backward(loss);
        optimizer->step();
        return loss;
      });
};

Case training_case(bool adamw) {
  TrainingLine line;
  line.name = cat("mlp 784-256-10, B = 64, step with ", adamw ? "AdamW" : "SGD");
  line.unit = "samples/s";
  line.amount = Mlp::kBatch;
  line.flops = kForwardFlops + kBackwardFlops;
  line.tolerance = kStepTolerance;
  line.make = [adamw]() -> Training {
    const auto model = std::make_shared<MlpModel>(adamw);
    return {[model](bool from_host) {
      if (from_host) model->send();
      return model->step(model->x, model->targets);
    }};
  };
  line.losses = [adamw] {
    const std::vector<float> x = batch_x(), targets = batch_targets();
    plain::MlpTraining<double> training(start_values(), adamw);
    std::vector<double> losses;
    for (int i = 0; i < kCheckedSteps; ++i) {
      losses.push_back(training.step(x.data(), targets.data()));
    }
    return losses;
  };
  line.plain = [adamw] {
    const auto training = std::make_shared<plain::MlpTraining<float>>(start_values(), adamw);
    return [training, x = batch_x(), targets = batch_targets()] {
      return double(training->step(x.data(), targets.data()));
    };
  };
  return to_case(std::move(line));
}

// Matrices so small that nearly all the time is the host's; every other node is a product, which
// keeps the kernels apart.
Case replay_case() {
  constexpr int kNodes = 1000;
  OpCase op;
  op.suite = "step";
  op.name = "replay of 1,000 nodes on 2 x 2 matrices";
  op.operands = [] { return Operands{{{2, 2}, {1, 1, 1, 1}}, {{2, 2}, {0.5f, 0.5f, 0.5f, 0.5f}}}; };
  op.apply = [](const Tensors& in) {
    Tensor y = in[0];
    for (int i = 0; i < kNodes; ++i) y = i % 2 == 1 ? matmul(y, in[1]) : tanh(y);
    return Tensors{y};
  };
  op.loop = loop_of([](const Operands& in, auto& out) {
    using T = typename std::remove_reference_t<decltype(out[0])>::value_type;
    T y[4], x[4];
    std::copy_n(in[0].values.begin(), 4, y);
    std::copy_n(in[1].values.begin(), 4, x);
    for (int i = 0; i < kNodes / 2; ++i) {
      for (T& value : y) value = std::tanh(value);
      const T next[4] = {y[0] * x[0] + y[1] * x[2], y[0] * x[1] + y[1] * x[3],
                         y[2] * x[0] + y[3] * x[2], y[2] * x[1] + y[3] * x[3]};
      std::copy_n(next, 4, y);
    }
    std::copy_n(y, 4, out[0].begin());
  });
  op.outputs = {{4, tolerance_of(Op::tanh, kNodes)}};
  return to_case(std::move(op));
}

}  // namespace

std::vector<Case> step_cases() {
  return {forward_case(), both_case(), training_case(false), training_case(true), replay_case()};
}

}  // namespace tessera::bench
