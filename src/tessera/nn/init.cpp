#include "tessera/nn/init.h"

#include <cmath>

#include "tessera/tensor/ops.h"

namespace tessera {

namespace {

struct Fans {
  double in, out;
};

Fans fans(const char* op, const Shape& shape) {
  if (shape.rank() < 2 || numel(shape) == 0) {
    fail(op, ": expected the shape (out, in, …) of a weight, got ", shape);
  }
  const double field = double(numel(shape)) / double(shape[0] * shape[1]);
  return {.in = double(shape[1]) * field, .out = double(shape[0]) * field};
}

}  // namespace

Init constant_init(double value) {
  return [=](const Random&, const Shape& shape) { return full(shape, value); };
}

Init uniform_init(double low, double high) {
  return [=](const Random& random, const Shape& shape) { return random.uniform(shape, low, high); };
}

Init normal_init(double mean, double deviation) {
  return [=](const Random& random, const Shape& shape) {
    return random.normal(shape, mean, deviation);
  };
}

Init kaiming_uniform(double negative_slope) {
  return [=](const Random& random, const Shape& shape) {
    const double gain = std::sqrt(2 / (1 + negative_slope * negative_slope));
    const double bound = gain * std::sqrt(3 / fans("kaiming_uniform", shape).in);
    return random.uniform(shape, -bound, bound);
  };
}

Init xavier_uniform(double gain) {
  return [=](const Random& random, const Shape& shape) {
    const Fans f = fans("xavier_uniform", shape);
    const double bound = gain * std::sqrt(6 / (f.in + f.out));
    return random.uniform(shape, -bound, bound);
  };
}

}  // namespace tessera
