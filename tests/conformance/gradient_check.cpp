#include "conformance/gradient_check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <unordered_map>

#include "tessera/autodiff/backward.h"

namespace tessera {

namespace {

using Values = std::vector<Value>;
using Arrays = std::vector<Array>;

constexpr double kTolerance = 1e-6;
constexpr int kDirections = 2;

// Random arrays. Where the row rounds its values, they are ±1, which every type holds exactly.
class Draw {
 public:
  explicit Draw(const Row& row) : seed_(first_seed(row.op) + 500000), exact_(row.step > 0.1) {}

  Array operator()(const Type& type) {
    Array array{type, uniform_data(numel(type.shape), -1, 1, seed_++), {}};
    for (double& x : array.real) {
      if (exact_) x = x < 0 ? -1 : 1;
    }
    return array;
  }

  Arrays like(const Values& values) {
    Arrays arrays;
    for (const Value& value : values) arrays.push_back((*this)(value.type()));
    return arrays;
  }

 private:
  int64_t seed_;
  bool exact_;
};

Values values_of(const Arrays& arrays, std::vector<Tensor>& keep) {
  Values values;
  for (const Array& array : arrays) {
    keep.push_back(to_tensor(array));
    values.push_back(keep.back().value());
  }
  return values;
}

double dot(const Array& a, const Array& b) {
  double sum = 0;
  for (size_t i = 0; i < a.real.size(); ++i) sum += a.real[i] * b.real[i];
  return sum;
}

// Σ weights · values, with the variables moved by `step` along `direction`.
double moved(const Values& values, const Arrays& weights, const Values& variables,
             const Arrays& direction, double step) {
  std::unordered_map<const Node*, const Array*> moves;
  for (size_t i = 0; i < variables.size(); ++i) moves[variables[i].node.get()] = &direction[i];
  std::unordered_map<const Node*, NodePtr> leaves;
  for (const NodePtr& node : topological_order(values)) leaves.emplace(node.get(), node);
  const Arrays results = interpret(values, [&](const Node& leaf) {
    Array data = read_array(Tensor(Value{leaves.at(&leaf), 0}));
    const auto move = moves.find(&leaf);
    for (size_t i = 0; move != moves.end() && i < data.real.size(); ++i) {
      data.real[i] += step * move->second->real[i];
    }
    return data;
  });
  double sum = 0;
  for (size_t i = 0; i < results.size(); ++i) sum += dot(results[i], weights[i]);
  return sum;
}

// The gradients of Σ weights · values with respect to `variables`, empty ones being 0, against
// differences.
void compare(const Row& row, const Values& values, const Arrays& weights, const Values& variables,
             const Values& gradients, Draw& draw) {
  for (int k = 0; k < kDirections; ++k) {
    const Arrays direction = draw.like(variables);
    double analytic = 0, scale = 1;
    for (size_t i = 0; i < gradients.size(); ++i) {
      if (!gradients[i]) continue;
      const Array gradient = read_array(Tensor(gradients[i]));
      analytic += dot(gradient, direction[i]);
      for (size_t j = 0; j < gradient.real.size(); ++j) {
        scale += std::fabs(gradient.real[j] * direction[i].real[j]);
      }
    }
    const double numeric = (moved(values, weights, variables, direction, row.step) -
                            moved(values, weights, variables, direction, -row.step)) /
                           (2 * row.step);
    EXPECT_NEAR(analytic, row.stops ? 0 : numeric, kTolerance * scale) << "direction " << k;
  }
}

}  // namespace

void check_gradients(const Row& row, const Application& application) {
  Draw draw(row);
  std::vector<Tensor> keep;
  Values variables, outputs;
  for (const Tensor& leaf : application.leaves) {
    if (is_float(leaf.dtype())) variables.push_back(leaf.value());
  }
  for (const Value& output : application.outputs()) {
    if (is_float(output.dtype())) outputs.push_back(output);
  }
  const Arrays w = draw.like(outputs);
  const Values w_values = values_of(w, keep);
  const Values first = backward(outputs, w_values, variables);
  {
    SCOPED_TRACE("first order");
    compare(row, outputs, w, variables, first, draw);
  }
  Values present;
  for (const Value& gradient : first) {
    if (gradient) present.push_back(gradient);
  }
  const Arrays v = draw.like(present);
  variables.insert(variables.end(), w_values.begin(), w_values.end());
  const Values second = backward(present, values_of(v, keep), variables);
  SCOPED_TRACE("second order");
  compare(row, present, v, variables, second, draw);
}

}  // namespace tessera
