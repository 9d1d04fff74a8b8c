#include "tessera/nn/init.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "tessera/tensor/ops.h"

namespace tessera {

namespace {

constexpr double kLeastShare = 0.01;  // of a distribution that is drawn from until it fits

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

double kaiming_deviation(const char* op, const Shape& shape, double negative_slope, Fan fan) {
  const Fans f = fans(op, shape);
  return std::sqrt(2 / (1 + negative_slope * negative_slope) / (fan == Fan::in ? f.in : f.out));
}

double xavier_deviation(const char* op, const Shape& shape, double gain) {
  const Fans f = fans(op, shape);
  return gain * std::sqrt(2 / (f.in + f.out));
}

Tensor uniform_of(const Random& random, const Shape& shape, double deviation) {
  const double bound = std::numbers::sqrt3 * deviation;
  return random.uniform(shape, -bound, bound);
}

using Vector = std::vector<double>;

double dot_of(const Vector& a, const Vector& b) {
  double total = 0;
  for (size_t i = 0; i < a.size(); ++i) total += a[i] * b[i];
  return total;
}

// Gram and Schmidt's way, twice: once leaves what rounding makes of nearly parallel vectors.
void make_orthonormal(std::vector<Vector>& vectors) {
  for (size_t i = 0; i < vectors.size(); ++i) {
    Vector& v = vectors[i];
    for (int pass = 0; pass < 2; ++pass) {
      for (size_t j = 0; j < i; ++j) {
        const double share = dot_of(v, vectors[j]);
        for (size_t k = 0; k < v.size(); ++k) v[k] -= share * vectors[j][k];
      }
    }
    const double length = std::sqrt(dot_of(v, v));
    for (double& x : v) x /= length;
  }
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

Init kaiming_uniform(double negative_slope, Fan fan) {
  return [=](const Random& random, const Shape& shape) {
    const double d = kaiming_deviation("kaiming_uniform", shape, negative_slope, fan);
    return uniform_of(random, shape, d);
  };
}

Init kaiming_normal(double negative_slope, Fan fan) {
  return [=](const Random& random, const Shape& shape) {
    const double d = kaiming_deviation("kaiming_normal", shape, negative_slope, fan);
    return random.normal(shape, 0, d);
  };
}

Init xavier_uniform(double gain) {
  return [=](const Random& random, const Shape& shape) {
    return uniform_of(random, shape, xavier_deviation("xavier_uniform", shape, gain));
  };
}

Init xavier_normal(double gain) {
  return [=](const Random& random, const Shape& shape) {
    return random.normal(shape, 0, xavier_deviation("xavier_normal", shape, gain));
  };
}

Init truncated_normal(double mean, double deviation, double low, double high) {
  const auto below = [&](double x) {
    return 0.5 * std::erfc((mean - x) / (deviation * std::numbers::sqrt2));
  };
  if (!(deviation > 0 && below(high) - below(low) >= kLeastShare)) {
    fail("truncated_normal: expected a deviation above 0 and an interval with at least 1 % of the ",
         "distribution, got ", deviation, " and ", low, " … ", high, " around ", mean);
  }
  return [=](const Random& random, const Shape& shape) {
    std::vector<float> values(size_t(numel(shape)));
    std::vector<size_t> open(values.size());
    for (size_t i = 0; i < open.size(); ++i) open[i] = i;
    while (!open.empty()) {
      const Tensor drawn = random.normal({int64_t(open.size())}, mean, deviation);
      const std::vector<float> next = drawn.to_vector<float>();
      for (size_t k = 0; k < open.size(); ++k) values[open[k]] = next[k];
      std::erase_if(open, [&](size_t i) { return values[i] >= low && values[i] <= high; });
    }
    return tensor(values, shape);
  };
}

Init orthogonal_init(double gain) {
  return [=](const Random& random, const Shape& shape) {
    fans("orthogonal_init", shape);  // checks the shape
    const size_t rows = size_t(shape[0]), columns = size_t(numel(shape)) / rows;
    const size_t count = std::min(rows, columns), length = std::max(rows, columns);
    const std::vector<float> drawn =
        random.normal({int64_t(count), int64_t(length)}).to_vector<float>();
    std::vector<Vector> vectors;
    for (size_t i = 0; i < count; ++i) {
      const auto first = drawn.begin() + std::ptrdiff_t(i * length);
      vectors.emplace_back(first, first + std::ptrdiff_t(length));
    }
    make_orthonormal(vectors);
    std::vector<float> values(rows * columns);
    for (size_t r = 0; r < rows; ++r) {
      for (size_t c = 0; c < columns; ++c) {
        const double x = rows <= columns ? vectors[r][c] : vectors[c][r];
        values[r * columns + c] = float(gain * x);
      }
    }
    return tensor(values, shape);
  };
}

}  // namespace tessera
