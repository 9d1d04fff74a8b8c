// The hard promises of steps: one compilation, no allocation, nothing stale, nothing lost.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "support/expect_error.h"
#include "tessera/runtime/counters.h"
#include "tessera/tessera.h"

namespace tessera {
namespace {

std::vector<float> ramp(int64_t n, float scale) {
  std::vector<float> values(static_cast<size_t>(n));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = scale * std::sin(1.7f * static_cast<float>(i) + 0.3f);
  }
  return values;
}

// Two layers with dropout between them, trained by gradient descent whose rate is a Var, with
// updates dropped on the device when a gradient is not finite.
struct Net {
  Random random{7};
  Var w1{tensor(ramp(16 * 32, 0.3f), {16, 32}), "w1"};
  Var w2{tensor(ramp(32, 0.3f), {32, 1}), "w2"};
  Var rate{scalar(0.0f), "rate", false};
  Var skipped{scalar(int64_t{0}), "skipped", false};

  Tensor step(const Tensor& x, const Tensor& y) const {
    const Tensor hidden = random.dropout(tanh(matmul(x, w1)), 0.1);
    const Tensor error = matmul(hidden, w2) - y;
    const Tensor loss = mean(error * error);
    const std::vector<Tensor> params = {w1, w2};
    const std::vector<Tensor> grads = grad(loss, params);
    const Tensor finite = isfinite(sum(grads[0] * grads[0]) + sum(grads[1] * grads[1]));
    w1.assign(where(finite, w1.value() - rate.value() * grads[0], w1));
    w2.assign(where(finite, w2.value() - rate.value() * grads[1], w2));
    skipped.assign(skipped.value() + cast(logical_not(finite), DType::i64));
    return loss;
  }
};

double warmup_cosine(int step, int steps, int warmup, double peak) {
  if (step < warmup) return peak * (step + 1) / warmup;
  const double t = double(step - warmup) / (steps - warmup);
  return peak * 0.5 * (1 + std::cos(std::numbers::pi * t));
}

Tensor batch(int step, float poison = 0) {
  std::vector<float> x = ramp(8 * 16, 1.0f + 0.001f * static_cast<float>(step));
  x[5] += poison;
  return tensor(x, {8, 16});
}

TEST(Step, TwoHundredStepsAreOneCompilation) {
  const Net net;
  auto step = compile([&](const Tensor& x, const Tensor& y) { return net.step(x, y); });
  const Tensor y = tensor(ramp(8, 1), {8, 1});
  std::vector<double> losses;
  CounterValues after_two;
  std::vector<float> before;
  for (int i = 0; i < 200; ++i) {
    net.rate.set(warmup_cosine(i, 200, 20, 0.05));
    const bool poisoned = i == 100;
    if (poisoned) before = net.w1.value().to_vector<float>();
    const Tensor loss = step(batch(i, poisoned ? std::numeric_limits<float>::quiet_NaN() : 0), y);
    if (poisoned) {
      EXPECT_FALSE(std::isfinite(loss.item()));
      EXPECT_EQ(net.w1.value().to_vector<float>(), before);
    } else {
      losses.push_back(loss.item());
    }
    if (i == 1) after_two = counters().snapshot();
  }
  EXPECT_EQ(step.stats().compilations, 1);
  EXPECT_EQ(step.stats().replays, 199);
  EXPECT_EQ(counters().snapshot().allocations, after_two.allocations);
  EXPECT_EQ(net.skipped.value().item(), 1);
  EXPECT_EQ(net.random.counter().value().item(), 200 * 8 * 32 / 4);
  EXPECT_LT(losses.back(), 0.5 * losses.front());
  for (const double loss : losses) EXPECT_TRUE(std::isfinite(loss));
}

TEST(Step, MemoryIsFlatOverAThousandSteps) {
  const Net net;
  auto step = compile([&](const Tensor& x, const Tensor& y) { return net.step(x, y); });
  const Tensor y = tensor(ramp(8, 1), {8, 1});
  CounterValues early;
  int64_t early_nodes = 0;
  Tensor loss;
  for (int i = 0; i < 1000; ++i) {
    net.rate.set(0.01);
    loss = step(batch(i), y);
    if (i == 9) {
      early = counters().snapshot();
      early_nodes = live_nodes();
    }
  }
  const CounterValues late = counters().snapshot();
  EXPECT_EQ(late.allocations, early.allocations);
  EXPECT_EQ(late.bytes_in_use, early.bytes_in_use);
  EXPECT_EQ(late.peak_bytes, early.peak_bytes);
  EXPECT_EQ(live_nodes(), early_nodes);
}

TEST(Step, EveryAssignOfAStepIsDonated) {
  const Net net;
  auto step = compile([&](const Tensor& x, const Tensor& y) { return net.step(x, y); });
  step(batch(0), tensor(ramp(8, 1), {8, 1}));
  EXPECT_EQ(step.program().report.donated, 4);  // w1, w2, skipped, the random counter
  EXPECT_EQ(step.program().report.copies, 0);
}

TEST(Step, StaleHandleThrows) {
  const Var w(tensor(ramp(6, 1), {2, 3}), "w");
  const Tensor old = w;
  const Tensor view = transpose(old);
  const Tensor copy = old.detach();
  const std::vector<float> values = copy.to_vector<float>();
  auto step = compile([&] { w.assign(w.value() * 2); });
  step();
  for (const Tensor& stale : {old, view}) {
    const std::string text = error_text([&] { stale.to_vector<float>(); });
    EXPECT_TRUE(text.starts_with("w: value was replaced by step ")) << text;
    EXPECT_TRUE(text.ends_with(", copy it first")) << text;
  }
  EXPECT_EQ(copy.to_vector<float>(), values);
  EXPECT_EQ(w.value().to_vector<float>()[4], 2 * values[4]);
}

TEST(Step, TiedWeightsGetTheSumOfTheirGradients) {
  const Var w(tensor<float>({0.5f, -1.0f}), "w");
  const Var tied = w;
  const Tensor x = tensor<float>({3, 4});
  const auto loss_of = [&] { return sum(w.value() * x) + sum(tied.value() * tied.value()); };
  backward(loss_of());
  EXPECT_EQ(w.grad().to_vector<float>(), (std::vector<float>{3 + 1, 4 - 2}));
  EXPECT_TRUE(w.same_slot(tied));
  w.set_grad({});
  auto step = compile([&] {
    const Tensor loss = loss_of();
    backward(loss);
    tied.assign(tied.value() - 0.5 * w.grad());
    return loss;
  });
  EXPECT_EQ(step().item(), 3 * 0.5 - 4 + 0.25 + 1);
  EXPECT_EQ(w.value().to_vector<float>(), (std::vector<float>{0.5f - 2, -1 - 1}));
}

TEST(Step, AverageOfWeightsFollowsTheNewValue) {
  const Var w(tensor<float>({1, 2, 3}), "w"), average(tensor<float>({1, 2, 3}), "average", false);
  auto step = compile([&](const Tensor& g) {
    w.assign(w.value() - 0.1 * g);
    average.assign(0.9 * average.value() + 0.1 * w.value());
  });
  std::vector<double> expected = {1, 2, 3}, mean = {1, 2, 3};
  for (int i = 0; i < 50; ++i) {
    const std::vector<float> g = ramp(3, float(i % 5));
    step(tensor(g));
    for (size_t k = 0; k < 3; ++k) {
      expected[k] -= 0.1 * g[k];
      mean[k] = 0.9 * mean[k] + 0.1 * expected[k];
    }
  }
  for (size_t k = 0; k < 3; ++k) {
    EXPECT_NEAR(w.value().to_vector<float>()[k], expected[k], 1e-5);
    EXPECT_NEAR(average.value().to_vector<float>()[k], mean[k], 1e-5);
  }
}

TEST(Step, LongSumOfLossesNeedsNoStack) {
  const Var w(scalar(1.0f), "w");
  auto step = compile([&](const Tensor& x) {
    w.assign(w.value() + 1);
    return w.value() * x;
  });
  const Tensor x = scalar(0.5f);
  Tensor total = scalar(0.0f);
  for (int i = 0; i < 100000; ++i) {
    const Tensor loss = step(x);
    total = total + loss;
  }
  // The f32 sum of 0.5 · (2 … 100001), added in order.
  float in_order = 0;
  for (int i = 0; i < 100000; ++i) in_order += 0.5f * float(i + 2);
  EXPECT_EQ(float(total.item()), in_order);
}

TEST(Step, ResultsStayValidWhileHeld) {
  const Var w(scalar(0.0f), "w");
  auto step = compile([&] {
    w.assign(w.value() + 1);
    return w.value() * 10;
  });
  std::vector<Tensor> held;
  for (int i = 0; i < 10; ++i) held.push_back(step());
  for (int i = 0; i < 10; ++i) EXPECT_EQ(held[size_t(i)].item(), 10.0 * (i + 1));
  Tensor last;
  last = step();
  last = step();
  const int64_t allocations = counters().snapshot().allocations;
  for (int i = 0; i < 100; ++i) last = step();
  EXPECT_EQ(counters().snapshot().allocations, allocations);
}

TEST(Step, AssignsSeeOldValuesUntilTheEnd) {
  const Var a(tensor<float>({1, 2}), "a"), b(tensor<float>({3, 4}), "b");
  auto swap = compile([&] {
    const Tensor old_a = a;
    a.assign(b);
    b.assign(old_a);
  });
  swap();
  EXPECT_EQ(a.value().to_vector<float>(), (std::vector<float>{3, 4}));
  EXPECT_EQ(b.value().to_vector<float>(), (std::vector<float>{1, 2}));
  EXPECT_GE(swap.program().report.copies, 1);
  swap();
  EXPECT_EQ(a.value().to_vector<float>(), (std::vector<float>{1, 2}));
}

TEST(Step, WritesComeAfterReadersOfViews) {
  const Var w(tensor(ramp(12, 1), {3, 4}), "w");
  auto step = compile([&] {
    const Tensor old = w;
    w.assign(old * 2);
    // Both read the old value although the assign stands before them.
    return std::vector<Tensor>{sum(slice(transpose(old), 0, 1, 4, 2)), matmul(old, transpose(old)),
                               w.value()};
  });
  const std::vector<float> v = w.value().to_vector<float>();
  const std::vector<Tensor> results = step();
  double expected = 0;
  for (size_t r = 0; r < 3; ++r) expected += double(v[r * 4 + 1]) + double(v[r * 4 + 3]);
  EXPECT_NEAR(results[0].item(), expected, 1e-5);
  double corner = 0;
  for (size_t k = 0; k < 4; ++k) corner += double(v[k]) * double(v[k]);
  EXPECT_NEAR(results[1].to_vector<float>()[0], corner, 1e-5);
  EXPECT_EQ(results[2].to_vector<float>(), w.value().to_vector<float>());
  EXPECT_EQ(results[2].to_vector<float>()[7], 2 * v[7]);
}

// A transposed read of what is being replaced cannot share its memory.
TEST(Step, TransposedAssignIsNotInPlace) {
  const Var w(tensor(ramp(25, 1), {5, 5}), "w");
  auto step = compile([&] { w.assign(transpose(w) + 1); });
  std::vector<float> v = w.value().to_vector<float>();
  for (int i = 0; i < 3; ++i) {
    step();
    std::vector<float> next(25);
    for (size_t r = 0; r < 5; ++r) {
      for (size_t c = 0; c < 5; ++c) next[r * 5 + c] = v[c * 5 + r] + 1;
    }
    v = next;
  }
  EXPECT_EQ(w.value().to_vector<float>(), v);
}

TEST(Step, PlainStyleTrainsWithOneCompilation) {
  const Var w(tensor<float>({2, -3}), "w");
  EvalStats before;
  double loss_value = 0;
  std::vector<double> expected = {2, -3};
  for (int i = 0; i < 20; ++i) {
    if (i == 1) before = eval_stats();
    const Tensor x = tensor<float>({1, float(i % 3)});
    const Tensor loss = sum(w.value() * w.value() * x);
    backward(loss);
    EXPECT_TRUE(w.grad().defined());
    w.assign(w.value() - 0.1 * w.grad());
    w.set_grad({});
    flush();
    const double lost = expected[0] * expected[0] + expected[1] * expected[1] * (i % 3);
    loss_value = loss.item();  // after the step that replaced what it was computed from
    EXPECT_NEAR(loss_value, lost, 1e-4 * (1 + lost));
    expected[0] -= 0.1 * 2 * expected[0];
    expected[1] -= 0.1 * 2 * expected[1] * (i % 3);
  }
  EXPECT_EQ(eval_stats().compilations, before.compilations);
  EXPECT_EQ(eval_stats().replays, before.replays + 19);
  EXPECT_NEAR(w.value().to_vector<float>()[0], expected[0], 1e-4);
}

TEST(Step, GradientsAccumulateOverBackwards) {
  const Var w(tensor<float>({1, 2}), "w");
  backward(sum(w.value() * 3));
  backward(sum(w.value() * w.value()));
  EXPECT_EQ(w.grad().to_vector<float>(), (std::vector<float>{5, 7}));
}

TEST(Step, GradientsAreOfTheValueThatWasAssigned) {
  const Var v(scalar(1.0f), "v");
  v.assign(v.value() * 3);
  backward(v.value() * v.value());
  EXPECT_EQ(v.grad().item(), 6);
  // Two updates of one compiled step.
  const Var w(scalar(1.0f), "w");
  auto step = compile([&] {
    for (int i = 0; i < 2; ++i) {
      backward(w.value() * w.value());
      w.assign(w.value() - 0.1 * w.grad());
      w.set_grad({});
    }
  });
  step();
  EXPECT_NEAR(w.value().item(), 0.64, 1e-6);
}

// One decode step of attention over a cache of fixed capacity: the position is data.
TEST(Step, GrowingCacheIsOneCompilation) {
  constexpr int64_t kCapacity = 64, kWidth = 8;
  const Var keys(zeros({kCapacity, kWidth}), "keys", false);
  const Var values(zeros({kCapacity, kWidth}), "values", false);
  const Var position(scalar(int64_t{0}), "position", false);
  auto decode = compile([&](const Tensor& q, const Tensor& k, const Tensor& v) {
    keys.assign(dynamic_update_slice(keys, k, position, 0));
    values.assign(dynamic_update_slice(values, v, position, 0));
    const Tensor scores = matmul(q, transpose(keys)) * (1 / std::sqrt(double(kWidth)));
    const Tensor visible = iota({1, kCapacity}, 1) <= position.value();
    const Tensor weights = softmax(where(visible, scores, -1e30));
    const Tensor out = matmul(weights, values);
    position.assign(position.value() + 1);
    return out;
  });
  std::vector<std::vector<float>> ks, vs;
  for (int t = 0; t < kCapacity; ++t) {
    const std::vector<float> q = ramp(kWidth, 1 + 0.1f * float(t));
    ks.push_back(ramp(kWidth, 0.5f + 0.05f * float(t)));
    vs.push_back(ramp(kWidth, float(t)));
    const std::vector<float> out = decode(tensor(q, {1, kWidth}), tensor(ks.back(), {1, kWidth}),
                                          tensor(vs.back(), {1, kWidth}))
                                       .to_vector<float>();
    std::vector<double> score(ks.size()), expected(kWidth, 0);
    double total = 0;
    for (size_t s = 0; s < ks.size(); ++s) {
      double dot = 0;
      for (size_t c = 0; c < size_t(kWidth); ++c) dot += double(q[c]) * double(ks[s][c]);
      score[s] = std::exp(dot / std::sqrt(double(kWidth)));
      total += score[s];
    }
    for (size_t s = 0; s < ks.size(); ++s) {
      for (size_t c = 0; c < size_t(kWidth); ++c)
        expected[c] += score[s] / total * double(vs[s][c]);
    }
    for (size_t c = 0; c < size_t(kWidth); ++c) {
      ASSERT_NEAR(out[c], expected[c], 1e-4 * (1 + std::abs(expected[c]))) << "position " << t;
    }
  }
  EXPECT_EQ(decode.stats().compilations, 1);
  EXPECT_EQ(decode.stats().replays, kCapacity - 1);
  // The caches are written in place: no copy of what does not change.
  EXPECT_EQ(decode.program().report.donated, 3);
  EXPECT_EQ(decode.program().report.copies, 0);
  const std::string text = error_text([&] {
    decode(zeros({1, kWidth}), zeros({1, kWidth}), zeros({1, kWidth}));
  });
  EXPECT_TRUE(text.starts_with("update_slice: start 64 is out of range [0, 63]")) << text;
}

}  // namespace
}  // namespace tessera
