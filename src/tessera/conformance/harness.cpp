#include "tessera/conformance/harness.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tessera/graph/build.h"
#include "tessera/tensor/compiled.h"
#include "tessera/tensor/eval.h"

namespace tessera {

namespace {

using Values = std::vector<Value>;

enum class Arrangement : uint8_t { plain, transposed, stepped, flipped, repeated };

Arrangement arrangement_of(int layout, size_t input) {
  return layout == 0 ? Arrangement::plain : Arrangement(1 + (size_t(layout) - 1 + input) % 4);
}

Dims reversed(const Dims& dims) {
  Dims result = dims;
  std::reverse(result.begin(), result.end());
  return result;
}

// The axis along which a repeated view has stride 0: the innermost one, or the outermost.
int repeated_axis(const Shape& shape, size_t input) {
  return input % 2 == 0 ? shape.rank() - 1 : 0;
}

// The shape of the leaf whose `view` has `shape`.
Shape leaf_shape(const Shape& shape, Arrangement view, size_t input) {
  Shape result = shape;
  if (shape.empty()) return result;
  switch (view) {
    case Arrangement::transposed: return reversed(shape);
    case Arrangement::stepped:
      for (int64_t& extent : result) extent = 2 * extent + 1;
      return result;
    case Arrangement::repeated: result[repeated_axis(shape, input)] = 1; return result;
    default: return result;
  }
}

Value take_view(const Value& leaf, const Shape& shape, Arrangement view) {
  const int rank = shape.rank();
  Dims starts = Dims::filled(rank, 0), axes;
  for (int i = 0; i < rank; ++i) {
    starts[i] = view == Arrangement::stepped ? 1 : std::max<int64_t>(shape[i] - 1, 0);
    axes.push_back(i);
  }
  switch (view) {
    case Arrangement::transposed: return graph::permute(leaf, reversed(axes));
    case Arrangement::stepped: return graph::slice(leaf, starts, shape, Dims::filled(rank, 2));
    case Arrangement::flipped: return graph::slice(leaf, starts, shape, Dims::filled(rank, -1));
    case Arrangement::repeated: return graph::expand(leaf, shape);
    default: return leaf;
  }
}

double pick_real(const Domain& d, double u) {
  const double value = d.low + (d.high - d.low) * u;
  if (d.pick == Pick::coarse) return std::round(2 * value) / 2;
  if (d.pick == Pick::between) return std::round(2 * value) / 2 + 0.25;
  if (d.pick == Pick::apart) return value + std::copysign(0.25, value);
  return value;
}

int64_t pick_integer(const Domain& d, DType dtype, double u) {
  if (d.pick == Pick::index) return int64_t(d.low + (d.high - d.low) * u);
  if (dtype == DType::boolean) return u < 0.5;
  const bool is_signed = info(dtype).is_signed;
  if (d.pick == Pick::coarse) return int64_t(u * 5) - (is_signed ? 2 : 0);
  return int64_t(u * 200) - (is_signed ? 100 : 0);
}

// Coarse data are scaled by a power of two: rounding in the neighbour must not make operands equal,
// or carry one over a jump.
double neighbour_factor(const Domain& d) { return d.pick == Pick::smooth ? 1.5 : 2; }

// With neighbours, what gives the picked numbers once the neighbour has been applied.
Array pick(const Type& type, const Domain& domain, int64_t seed, bool neighbours) {
  Array array{type, {}, {}};
  for (const double u : uniform_data(numel(type.shape), 0, 1, seed)) {
    if (is_float(type.dtype)) {
      array.real.push_back(pick_real(domain, u) / (neighbours ? neighbour_factor(domain) : 1));
    } else {
      const bool shifted = neighbours && type.dtype != DType::boolean;
      array.integer.push_back(pick_integer(domain, type.dtype, u) - (shifted ? 1 : 0));
    }
  }
  return array;
}

Value before(const Value& x, const Domain& domain) {
  using namespace graph;
  if (is_float(x.dtype())) return x * neighbour_factor(domain);
  if (x.dtype() == DType::boolean) return apply(Op::logical_not, x);
  return x + 1.0;
}

Values after(const Values& outputs) {
  using namespace graph;
  Values result;
  for (const Value& output : outputs) {
    const Value number = output.dtype() == DType::boolean ? cast(output, DType::f32) : output;
    const Value shifted = number + (is_float(number.dtype()) ? 0.25 : 1.0);
    result.push_back(shifted);
    const int rank = shifted.shape().rank();
    if (rank > 0) result.push_back(reduce(Op::sum, shifted, {rank - 1}));
  }
  return result;
}

}  // namespace

std::vector<Value> Application::outputs() const {
  Values values;
  for (const Tensor& leaf : leaves) values.push_back(leaf.value());
  return apply(values);
}

Application apply_row(const Row& row, const Case& c, DType dtype, int layout) {
  Application result;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    const Input& input = c.inputs[i];
    const Type type{dtype_of_element(input.element, dtype),
                    leaf_shape(input.shape, arrangement_of(layout, i), i)};
    const int64_t seed = first_seed(row.op) + 10 * layout + int64_t(i);
    result.leaves.push_back(to_tensor(pick(type, input.domain, seed, false)));
  }
  result.apply = [c, layout](const Values& leaves) {
    Values in;
    for (size_t i = 0; i < leaves.size(); ++i) {
      const Shape& shape = c.inputs[i].shape;
      in.push_back(take_view(leaves[i], shape,
                             shape.empty() ? Arrangement::plain : arrangement_of(layout, i)));
    }
    return c.build(in);
  };
  return result;
}

Application apply_between_neighbours(const Row& row, const Case& c, DType dtype) {
  Application result;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    const Input& input = c.inputs[i];
    const int64_t seed = first_seed(row.op) + 500 + int64_t(i);
    const Type type{dtype_of_element(input.element, dtype), input.shape};
    result.leaves.push_back(to_tensor(pick(type, input.domain, seed, true)));
  }
  result.apply = [c](const Values& leaves) {
    Values in;
    for (size_t i = 0; i < leaves.size(); ++i) in.push_back(before(leaves[i], c.inputs[i].domain));
    return after(c.build(in));
  };
  return result;
}

CompiledRun run_compiled(const Application& application, const CompileOptions& options) {
  const Compiled compiled([&](std::span<const Tensor> inputs, std::span<const int64_t>) {
    Values values;
    for (const Tensor& input : inputs) values.push_back(input.value());
    std::vector<Tensor> outputs;
    for (const Value& output : application.apply(values)) outputs.emplace_back(output);
    return outputs;
  });
  const CompileOptions previous = set_compile_options(options);
  const std::vector<Tensor> outputs = compiled(application.leaves);
  set_compile_options(previous);
  CompiledRun run;
  for (const Tensor& output : outputs) run.outputs.push_back(read_array(output));
  run.kernels = compiled.program().report.kernels;
  return run;
}

UlpErrors ulp_errors(const Array& actual, const Array& expected, Unit unit) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  UlpErrors errors;
  errors.count = int64_t(expected.real.size() + expected.integer.size());
  if (actual.type != expected.type || actual.integer != expected.integer) {
    return {kInfinite, kInfinite, errors.count};
  }
  const DType dtype = actual.type.dtype;
  double magnitude = 0;
  for (const double e : expected.real) {
    if (std::isfinite(e)) magnitude = std::max(magnitude, std::fabs(e));
  }
  for (size_t i = 0; i < expected.real.size(); ++i) {
    const double a = actual.real[i], e = expected.real[i];
    const double stored = scalar_as_double(dtype, scalar_bits(dtype, e));
    if (std::isnan(a) && std::isnan(e)) continue;
    if (std::isinf(stored) || !std::isfinite(a) || std::isnan(e)) {
      if (a != stored) return {kInfinite, kInfinite, errors.count};
      continue;
    }
    const double place = ulp(dtype, unit == Unit::largest ? magnitude : std::fabs(e));
    const double error = std::fabs(a - e) / place;
    errors.largest = std::max(errors.largest, error);
    errors.sum += error;
  }
  return errors;
}

double error_in_ulps(const Array& actual, const Array& expected, Unit unit) {
  return ulp_errors(actual, expected, unit).largest;
}

int64_t first_seed(Op op) {
  uint64_t hash = 14695981039346656037u;  // FNV-1a
  for (const char letter : name(op)) hash = (hash ^ uint64_t(letter)) * 1099511628211u;
  return int64_t(hash % 1000000007u) * 1000000;
}

double tolerance(const Row& row, const Case& c, DType result) {
  const double own = info(row.op).ulp * c.growth;
  if (!is_half(result) || own == 0) return own;
  // Half types compute in f32, so only the last rounding is theirs; the composite of a kernel op,
  // which is its reference, ends with such a rounding too.
  const double rounding = info(row.op).kind == OpKind::kernel ? 1 : 0.5;
  return rounding + own * std::ldexp(1.0, digits(result) - digits(DType::f32));
}

}  // namespace tessera
