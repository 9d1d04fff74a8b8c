// Eager mode, and the places that errors name.
#include "tessera/tensor/eager.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "tessera/conformance/reference.h"
#include "tessera/nn/nn.h"
#include "tessera/optim/optim.h"
#include "tessera/tensor/autograd.h"
#include "tessera/tensor/compiled.h"
#include "tessera/tensor/eval.h"
#include "tessera/tensor/ops.h"
#include "tessera/tensor/random.h"

namespace tessera {
namespace {

// The line of this file that the call stands on, as errors end.
std::string here(int line) { return cat(" (eager_test.cpp:", line, ")"); }

TEST(Eager, ComputesEveryOperationWhenItsLineRuns) {
  const Tensor x = random_tensor({5, 7}, 1);
  const EagerGuard eager(true);
  const Tensor y = exp(x);
  EXPECT_NE(value_slot(y.value()), nullptr);
  const Tensor z = softmax(y * 2 + 1);
  EXPECT_NE(value_slot(z.value()), nullptr);
  const EagerGuard lazy(false);
  EXPECT_EQ(value_slot(cos(x).value()), nullptr);
}

TEST(Eager, AnIndexOutOfRangeIsFoundOnItsLine) {
  const EagerGuard eager(true);
  const Tensor table = random_tensor({3, 2}, 1), bad = tensor(std::vector<int64_t>{0, 3});
  Tensor rows;
  const int line = __LINE__ + 1;
  const std::string text = full_error_text([&] { rows = take(table, bad) * 2; });
  EXPECT_EQ(text, "index 3 is out of range [0, 3) in kernel gather" + here(line));
  EXPECT_FALSE(rows.defined());
}

// Loss and parameters of some steps of a network with dropout.
std::vector<double> train(int steps) {
  const Random random(3);
  const Linear first("first", 8, 16, random), second("second", 16, 4, random);
  std::vector<Var> parameters = first.parameters();
  for (const Var& p : second.parameters()) parameters.push_back(p);
  AdamW optimizer(parameters);
  const Tensor x = random_tensor({32, 8}, 5);
  const Tensor y = tensor(std::vector<int64_t>(32, 2));
  const auto step = compile([&](const Tensor& input, const Tensor& target) {
    const Tensor hidden = random.dropout(gelu(first(input)), 0.1);
    const Tensor loss = cross_entropy(second(hidden), target);
    backward(loss);
    optimizer.step();
    return loss;
  });
  std::vector<double> numbers;
  for (int i = 0; i < steps; ++i) numbers.push_back(step(x, y).item());
  for (const Var& p : parameters) {
    for (const double v : to_doubles(p.value())) numbers.push_back(v);
  }
  return numbers;
}

TEST(Eager, ACompiledStepGivesTheSameNumbers) {
  const std::vector<double> compiled = train(5);
  const EagerGuard eager(true);
  const std::vector<double> plain = train(5);
  ASSERT_EQ(plain.size(), compiled.size());
  for (size_t i = 0; i < plain.size(); ++i) EXPECT_NEAR(plain[i], compiled[i], 1e-5) << i;
}

TEST(Eager, AStepMayReadTheOldValueBesideTheNew) {
  const EagerGuard eager(true);
  const Var v(tensor(std::vector<float>{1, 2}), "v");
  const auto step = compile([&] {
    const Tensor before = v.value();
    v.assign(before * 3);
    return v.value() - before;
  });
  EXPECT_EQ(to_doubles(step()), (std::vector<double>{2, 4}));
  EXPECT_EQ(to_doubles(v.value()), (std::vector<double>{3, 6}));
  EXPECT_EQ(to_doubles(step()), (std::vector<double>{6, 12}));
}

// A step that fails, one that returns what it replaces, and gradients from outside: as compiled.
TEST(Eager, ACallIsOneStep) {
  for (const bool mode : {false, true}) {
    const EagerGuard eager(mode);
    const Var w(tensor(std::vector<float>{1, 2}), "w");
    const auto swap = compile([&](const Tensor& a) {
      const Tensor old = w.value();
      w.assign(old + a);
      return old;
    });
    EXPECT_EQ(to_doubles(swap(scalar(1.f))), (std::vector<double>{1, 2}));
    EXPECT_EQ(to_doubles(w.value()), (std::vector<double>{2, 3}));
    const auto fails = compile([&](const Tensor& a) {
      w.assign(w + 1);
      return take(a, tensor(std::vector<int64_t>{7}));
    });
    EXPECT_NE(error_text([&] { fails(tensor(std::vector<float>{1})); }), "");
    EXPECT_EQ(to_doubles(w.value()), (std::vector<double>{2, 3})) << mode;
    backward(sum(w * 5));
    const auto inside = compile([&](const Tensor& a) {
      backward(sum(w * a));
      return w.grad();
    });
    EXPECT_EQ(to_doubles(inside(scalar(3.f))), (std::vector<double>{3, 3}));
    EXPECT_EQ(to_doubles(w.grad()), (std::vector<double>{5, 5}));
  }
}

TEST(Eager, LiteralsWaitForTheirNeighbours) {
  const EagerGuard eager(true);
  EXPECT_EQ(value_slot((zeros({2}) + 1).value()), nullptr);
  EXPECT_NE(value_slot((zeros({2}) + tensor(std::vector<float>{1, 2})).value()), nullptr);
}

TEST(Eager, GradientsOfSecondOrder) {
  const Tensor x = random_tensor({4, 3}, 2);
  auto penalty = [&] { return grad(sum(square(grad(sum(tanh(x) * exp(x)), x))), x); };
  const std::vector<double> lazy = to_doubles(penalty());
  const EagerGuard eager(true);
  const std::vector<double> plain = to_doubles(penalty());
  for (size_t i = 0; i < lazy.size(); ++i) EXPECT_NEAR(plain[i], lazy[i], 1e-4);
}

// Places
// --------------------------------------------------------------------------------------------

TEST(Place, ErrorsOfShapesNameTheLine) {
  const Tensor a = ones({2, 3}), b = ones({4, 5});
  int line = __LINE__ + 1;
  EXPECT_EQ(full_error_text([&] { matmul(a, b); }),
            "matmul: inner dimensions differ: (2, 3) @ (4, 5)" + here(line));
  line = __LINE__ + 1;
  EXPECT_EQ(full_error_text([&] { a + b; }),
            "add: shapes do not broadcast: (2, 3) and (4, 5)" + here(line));
  line = __LINE__ + 1;
  EXPECT_EQ(full_error_text([&] { sum(a, {2}); }),
            "sum: axis 2 is out of range for 2 dimensions" + here(line));
  line = __LINE__ + 1;
  EXPECT_EQ(full_error_text([&] {
              concat({a, b});
            }),
            "concat: shapes differ outside axis 0: (2, 3) and (4, 5)" + here(line));
}

TEST(Place, FunctionsMadeOfOthersNameTheLineOfTheCaller) {
  const Tensor x = ones({2, 3});
  const int line = __LINE__ + 1;
  const std::string text = full_error_text([&] { group_norm(x, 1, ones({4}), ones({4})); });
  EXPECT_NE(text.find(here(line)), std::string::npos) << text;
}

TEST(Place, TheScopeComesFirst) {
  const Scope outer("model"), inner("head");
  const int line = __LINE__ + 1;
  EXPECT_EQ(full_error_text([&] {
              matmul(ones({2, 3}), ones({2, 3}));
            }),
            cat("matmul: inner dimensions differ: (2, 3) @ (2, 3) (in model/head, "
                "eager_test.cpp:",
                line, ")"));
}

// The expression is compiled and run far from where it was written, and fused with others.
TEST(Place, ErrorsOfDataNameTheLineThatBuiltTheOp) {
  const Tensor table = random_tensor({3, 2}, 1), bad = tensor(std::vector<int64_t>{0, -7});
  const int line = __LINE__ + 1;
  const Tensor rows = take(table, bad);
  const Tensor y = exp(rows * 2 + 1);
  const std::string text = full_error_text([&] { sum(y).item(); });
  EXPECT_NE(text.find("index -7 is out of range [0, 3)"), std::string::npos) << text;
  EXPECT_NE(text.find(here(line)), std::string::npos) << text;
}

TEST(Place, TheSameExpressionOnAnotherLineNamesThatLine) {
  const Tensor table = random_tensor({3, 2}, 1), bad = tensor(std::vector<int64_t>{0, 9});
  std::string text = full_error_text([&] { take(table, bad).eval(); });
  EXPECT_NE(text.find(here(__LINE__ - 1)), std::string::npos) << text;
  text = full_error_text([&] { take(table + 0, bad).eval(); });
  EXPECT_NE(text.find(here(__LINE__ - 1)), std::string::npos) << text;
}

TEST(Place, GradientsBelongToTheLineOfTheirOp) {
  const Var w(random_tensor({3, 2}, 1), "w");
  const int line = __LINE__ + 1;
  const Tensor y = tanh(w);
  const Tensor loss = sum(y);
  const Tensor g = grad(loss, w);
  bool found = false;
  for (const NodePtr& node : topological_order(std::span(&g.value(), 1))) {
    found |= node->op == Op::mul && node->line.line == uint32_t(line);
  }
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace tessera
