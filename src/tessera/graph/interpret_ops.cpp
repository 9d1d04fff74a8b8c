#include "tessera/graph/interpret_ops.h"

#include <cmath>

#include "tessera/base/philox.h"
#include "tessera/graph/interpret_scalar.h"

namespace tessera {

namespace {

Array zeros(const Type& type) {
  Array array{type, {}, {}};
  const size_t n = static_cast<size_t>(numel(type.shape));
  if (is_float(type.dtype)) {
    array.real.resize(n);
  } else {
    array.integer.resize(n);
  }
  return array;
}

void fill(Array& array, int value) {
  array.real.assign(array.real.size(), value);
  array.integer.assign(array.integer.size(), value);
}

void copy_element(Array& to, int64_t i, const Array& from, int64_t j) {
  if (is_float(to.type.dtype)) {
    to.real[size_t(i)] = from.real[size_t(j)];
  } else {
    to.integer[size_t(i)] = from.integer[size_t(j)];
  }
}

// to[i] = op(to[i], from[j])
void fold_element(ScalarOp op, Array& to, int64_t i, const Array& from, int64_t j) {
  if (is_float(to.type.dtype)) {
    double& target = to.real[size_t(i)];
    target = apply_scalar(op, target, from.real[size_t(j)]);
  } else {
    int64_t& target = to.integer[size_t(i)];
    target = apply_scalar(op, to.type.dtype, target, from.integer[size_t(j)]);
  }
}

// Calls f(coordinates, position) for every element in row-major order.
template <class F>
void for_each_element(const Shape& shape, F f) {
  Dims at = Dims::filled(shape.rank(), 0);
  const int64_t n = numel(shape);
  for (int64_t position = 0; position < n; ++position) {
    f(at, position);
    for (int d = shape.rank() - 1; d >= 0 && ++at[d] == shape[d]; --d) at[d] = 0;
  }
}

int64_t dot(const Dims& a, const Dims& b) {
  int64_t sum = 0;
  for (int i = 0; i < a.rank(); ++i) sum += a[i] * b[i];
  return sum;
}

// An array of `type` whose element at `c` is x[offset + c · strides].
Array strided(const Array& x, const Type& type, int64_t offset, const Dims& strides) {
  Array y = zeros(type);
  for_each_element(type.shape, [&](const Dims& at, int64_t p) {
    copy_element(y, p, x, offset + dot(at, strides));
  });
  return y;
}

// Writes `part` into y, its first element at coordinates `start`.
void place(Array& y, const Array& part, const Dims& start) {
  const Dims strides = row_major_strides(y.type.shape);
  const int64_t offset = dot(start, strides);
  for_each_element(part.type.shape, [&](const Dims& at, int64_t p) {
    copy_element(y, offset + dot(at, strides), part, p);
  });
}

// --- Ops --------------------------------------------------------------------------------------

Array scalar_fn(const Node& node, const Operands& in) {
  const ScalarOp fn = scalar_op(node.op);
  const Array &a = *in[0], &b = *in.back();
  Array y = zeros(node.types[0]);
  const size_t n = static_cast<size_t>(numel(y.type.shape));
  for (size_t i = 0; i < n; ++i) {
    if (!is_float(a.type.dtype)) {
      y.integer[i] = apply_scalar(fn, y.type.dtype, a.integer[i], b.integer[i]);
    } else if (is_float(y.type.dtype)) {
      y.real[i] = apply_scalar(fn, a.real[i], b.real[i]);
    } else {
      y.integer[i] = apply_scalar(fn, a.real[i], b.real[i]) != 0;
    }
  }
  return y;
}

Array where(const Node& node, const Operands& in) {
  Array y = zeros(node.types[0]);
  for (size_t i = 0; i < in[0]->integer.size(); ++i) {
    copy_element(y, int64_t(i), in[0]->integer[i] != 0 ? *in[1] : *in[2], int64_t(i));
  }
  return y;
}

Array uniform(const Node& node, const Operands& in) {
  Array y = zeros(node.types[0]);
  for (size_t i = 0; i < y.real.size(); ++i) {
    y.real[i] = philox_uniform(int64_t(i), in[0]->integer[0], in[1]->integer[0]);
  }
  return y;
}

Array constant(const Node& node) {
  Array y = zeros(node.types[0]);
  const DType dtype = y.type.dtype;
  if (is_float(dtype)) y.real[0] = scalar_as_double(dtype, node.attrs.bits);
  if (!is_float(dtype)) y.integer[0] = scalar_as_int(dtype, node.attrs.bits);
  return y;
}

Array cast(const Array& x, const Type& type) {
  Array y = zeros(type);
  for (size_t i = 0; i < x.real.size(); ++i) {
    if (is_float(type.dtype)) y.real[i] = round_to(type.dtype, x.real[i]);
    if (!is_float(type.dtype)) y.integer[i] = truncate_to(type.dtype, x.real[i]);
  }
  for (size_t i = 0; i < x.integer.size(); ++i) {
    if (is_float(type.dtype)) y.real[i] = round_to(type.dtype, double(x.integer[i]));
    if (!is_float(type.dtype)) y.integer[i] = wrap_to(type.dtype, x.integer[i]);
  }
  return y;
}

Array iota(const Node& node) {
  Array y = zeros({DType::i64, node.types[0].shape});
  for_each_element(y.type.shape, [&](const Dims& at, int64_t p) {
    y.integer[size_t(p)] = at[int(node.attrs.axis)];
  });
  return cast(y, node.types[0]);
}

// Strides that lead from an element of the reduced array to the result it folds into.
Dims folded_strides(const Node& node) {
  Dims strides = row_major_strides(node.types[0].shape);
  for (const int64_t axis : node.attrs.a) strides[int(axis)] = 0;
  return strides;
}

Array reduce(const Node& node, const Array& x, ScalarOp op) {
  Array y = zeros(node.types[0]);
  const Dims strides = folded_strides(node);
  // A sum starts from 0, a product from 1; max and min from the first element they meet.
  const bool has_neutral = op == ScalarOp::add || op == ScalarOp::mul;
  if (op == ScalarOp::mul) fill(y, 1);
  std::vector<bool> started(size_t(numel(y.type.shape)), has_neutral);
  for_each_element(x.type.shape, [&](const Dims& at, int64_t p) {
    const int64_t target = dot(at, strides);
    if (started[size_t(target)]) {
      fold_element(op, y, target, x, p);
    } else {
      copy_element(y, target, x, p);
      started[size_t(target)] = true;
    }
  });
  return y;
}

// NaN counts as greatest.
bool is_greater(const Array& x, int64_t i, int64_t j) {
  if (!is_float(x.type.dtype)) return x.integer[size_t(i)] > x.integer[size_t(j)];
  const double a = x.real[size_t(i)], b = x.real[size_t(j)];
  return a > b || (std::isnan(a) && !std::isnan(b));
}

Array argmax(const Node& node, const Array& x) {
  Array y = zeros(node.types[0]);
  const int axis = int(node.attrs.a[0]);
  const Dims strides = folded_strides(node);
  std::vector<int64_t> best(y.integer.size(), -1);  // positions in x
  for_each_element(x.type.shape, [&](const Dims& at, int64_t p) {
    const size_t target = size_t(dot(at, strides));
    if (best[target] >= 0 && !is_greater(x, p, best[target])) return;
    best[target] = p;
    y.integer[target] = at[axis];
  });
  return y;
}

Array reshape(const Node& node, const Array& x) {
  Array y = x;
  y.type = node.types[0];
  return y;
}

Array permute(const Node& node, const Array& x) {
  const Dims from = row_major_strides(x.type.shape);
  Dims strides;
  for (const int64_t axis : node.attrs.a) strides.push_back(from[int(axis)]);
  return strided(x, node.types[0], 0, strides);
}

Array expand(const Node& node, const Array& x) {
  Dims strides = row_major_strides(x.type.shape);
  for (int i = 0; i < strides.rank(); ++i) {
    if (x.type.shape[i] == 1) strides[i] = 0;
  }
  return strided(x, node.types[0], 0, strides);
}

Array slice(const Node& node, const Array& x) {
  Dims strides = row_major_strides(x.type.shape);
  const int64_t offset = dot(node.attrs.a, strides);
  for (int i = 0; i < strides.rank(); ++i) strides[i] *= node.attrs.c[i];
  return strided(x, node.types[0], offset, strides);
}

Array window(const Node& node, const Array& x) {
  Dims strides = row_major_strides(x.type.shape);
  strides.push_back(strides[int(node.attrs.axis)]);
  strides[int(node.attrs.axis)] *= node.attrs.a[1];
  return strided(x, node.types[0], 0, strides);
}

Array pad(const Node& node, const Array& x) {
  Array y = zeros(node.types[0]);
  const DType dtype = y.type.dtype;
  for (double& v : y.real) v = scalar_as_double(dtype, node.attrs.bits);
  for (int64_t& v : y.integer) v = scalar_as_int(dtype, node.attrs.bits);
  place(y, x, node.attrs.a);
  return y;
}

Array concat(const Node& node, const Operands& in) {
  Array y = zeros(node.types[0]);
  const int axis = int(node.attrs.axis);
  Dims start = Dims::filled(y.type.shape.rank(), 0);
  for (const Array* part : in) {
    place(y, *part, start);
    start[axis] += part->type.shape[axis];
  }
  return y;
}

int64_t checked_index(Op op, const Array& index, int64_t position, int64_t extent) {
  const int64_t value = index.integer[size_t(position)];
  if (value < 0 || value >= extent) {
    fail(name(op), ": index ", value, " is out of range [0, ", extent, ")");
  }
  return value;
}

// Calls f(position in x, position in index) for every index.
template <class F>
void for_each_indexed(const Node& node, const Array& x, const Array& index, F f) {
  const Dims strides = row_major_strides(x.type.shape);
  const int axis = int(node.attrs.axis);
  for_each_element(index.type.shape, [&](Dims at, int64_t p) {
    at[axis] = checked_index(node.op, index, p, x.type.shape[axis]);
    f(dot(at, strides), p);
  });
}

Array gather(const Node& node, const Operands& in) {
  Array y = zeros(node.types[0]);
  for_each_indexed(node, *in[0], *in[1],
                   [&](int64_t from, int64_t p) { copy_element(y, p, *in[0], from); });
  return y;
}

Array scatter_add(const Node& node, const Operands& in) {
  Array y = *in[0];
  for_each_indexed(node, *in[0], *in[1],
                   [&](int64_t to, int64_t p) { fold_element(ScalarOp::add, y, to, *in[2], p); });
  return y;
}

Array scatter(const Node& node, const Operands& in) {
  Array y = *in[0];
  for_each_indexed(node, *in[0], *in[1],
                   [&](int64_t to, int64_t p) { copy_element(y, to, *in[2], p); });
  return y;
}

// The coordinates of a window of `size` along the node's axis of `shape`.
Dims window_start(const Node& node, const Shape& shape, int64_t size, const Array& start) {
  const int axis = int(node.attrs.axis);
  const int64_t value = start.integer[0], limit = shape[axis] - size;
  if (value < 0 || value > limit) {
    fail(name(node.op), ": start ", value, " is out of range [0, ", limit, "]");
  }
  Dims at = Dims::filled(shape.rank(), 0);
  at[axis] = value;
  return at;
}

Array dynamic_slice(const Node& node, const Operands& in) {
  const Shape& shape = in[0]->type.shape;
  const Dims strides = row_major_strides(shape);
  const Dims start = window_start(node, shape, node.attrs.a[0], *in[1]);
  return strided(*in[0], node.types[0], dot(start, strides), strides);
}

Array dynamic_update_slice(const Node& node, const Operands& in) {
  Array y = *in[0];
  const int64_t size = in[1]->type.shape[int(node.attrs.axis)];
  place(y, *in[1], window_start(node, y.type.shape, size, *in[2]));
  return y;
}

Array matmul(const Node& node, const Operands& in) {
  const Array &a = *in[0], &b = *in[1];
  const int row = a.type.shape.rank() - 2, column = row + 1;
  const int64_t inner = a.type.shape[column];
  Dims a_strides = row_major_strides(a.type.shape), b_strides = row_major_strides(b.type.shape);
  const int64_t a_step = a_strides[column], b_step = b_strides[row];
  a_strides[column] = b_strides[row] = 0;
  Array y = zeros(node.types[0]);
  const DType dtype = y.type.dtype;
  for_each_element(y.type.shape, [&](const Dims& at, int64_t p) {
    const int64_t i = dot(at, a_strides), j = dot(at, b_strides);
    for (int64_t k = 0; k < inner; ++k) {
      const size_t from_a = size_t(i + k * a_step), from_b = size_t(j + k * b_step);
      if (is_float(dtype)) {
        y.real[size_t(p)] += a.real[from_a] * b.real[from_b];
      } else {
        int64_t& sum = y.integer[size_t(p)];
        const int64_t term =
            apply_scalar(ScalarOp::mul, dtype, a.integer[from_a], b.integer[from_b]);
        sum = apply_scalar(ScalarOp::add, dtype, sum, term);
      }
    }
  });
  return y;
}

}  // namespace

Array leaf_data(const Node& node, const Array& data) {
  const Type& type = node.types[0];
  const size_t n = static_cast<size_t>(numel(type.shape));
  const size_t count = data.real.size() + data.integer.size();
  const bool stored = is_float(type.dtype) ? data.integer.empty() : data.real.empty();
  if (data.type != type || count != n || !stored) {
    fail("interpret: expected a leaf of ", type, ", got ", data.type, " with ", data.real.size(),
         " real and ", data.integer.size(), " integer elements");
  }
  return cast(data, type);
}

Array evaluate_op(const Node& node, const Operands& in) {
  if (node.op == Op::where) return where(node, in);
  if (is_scalar_fn(node.op)) return scalar_fn(node, in);
  switch (node.op) {
    case Op::uniform: return uniform(node, in);
    case Op::constant: return constant(node);
    case Op::iota: return iota(node);
    case Op::cast: return cast(*in[0], node.types[0]);
    case Op::sum: return reduce(node, *in[0], ScalarOp::add);
    case Op::prod: return reduce(node, *in[0], ScalarOp::mul);
    case Op::max: return reduce(node, *in[0], ScalarOp::maximum);
    case Op::min: return reduce(node, *in[0], ScalarOp::minimum);
    case Op::argmax: return argmax(node, *in[0]);
    case Op::reshape: return reshape(node, *in[0]);
    case Op::permute: return permute(node, *in[0]);
    case Op::expand: return expand(node, *in[0]);
    case Op::slice: return slice(node, *in[0]);
    case Op::window: return window(node, *in[0]);
    case Op::pad: return pad(node, *in[0]);
    case Op::concat: return concat(node, in);
    case Op::gather: return gather(node, in);
    case Op::dynamic_slice: return dynamic_slice(node, in);
    case Op::scatter_add: return scatter_add(node, in);
    case Op::scatter: return scatter(node, in);
    case Op::dynamic_update_slice: return dynamic_update_slice(node, in);
    case Op::matmul: return matmul(node, in);
    case Op::stop_gradient:
    case Op::region_enter:
    case Op::region_exit: return *in[0];
    default: break;
  }
  TESSERA_ASSERT(!"an op that the interpreter does not know");
  return {};
}

}  // namespace tessera
