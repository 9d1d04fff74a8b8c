#include "tessera/graph/infer.h"

#include "tessera/graph/attention.h"
#include "tessera/graph/custom.h"

namespace tessera {

namespace {

using Inputs = std::span<const Value>;
using Types = std::vector<Type>;

void expect_same_dtype(Op op, const Value& a, const Value& b) {
  if (a.dtype() != b.dtype()) {
    fail(name(op), ": dtypes differ: ", a.dtype(), " and ", b.dtype());
  }
}

void expect_float(Op op, const Value& x) {
  if (!is_float(x.dtype())) {
    fail(name(op), ": expected a floating-point tensor, got ", x.dtype());
  }
}

void expect_integer_index(Op op, const Value& index) {
  if (!is_integer(index.dtype())) {
    fail(name(op), ": expected integer indices, got ", index.dtype());
  }
}

void expect_scalar(Op op, const char* what, const Value& x) {
  if (!x.shape().empty()) fail(name(op), ": expected a 0-d ", what, ", got ", x.shape());
}

// Nodes hold normalized axes; the tensor layer counts negative ones from the end.
void expect_axis(Op op, int64_t axis, const Shape& shape) {
  if (axis < 0 || axis >= shape.rank()) {
    fail(name(op), ": axis ", axis, " is out of range for ", shape.rank(), " dimensions");
  }
}

// extent += more, refusing what cannot be counted.
void grow(Op op, int64_t& extent, int64_t more) {
  if (__builtin_add_overflow(extent, more, &extent)) fail(name(op), ": the result is too large");
}

Types scalar_types(Op op, Inputs in) {
  const ScalarOp fn = scalar_op(op);
  const size_t first = op == Op::where ? 1 : 0;
  if (op == Op::where && in[0].dtype() != DType::boolean) {
    fail("where: expected a bool condition, got ", in[0].dtype());
  }
  for (const Value& x : in) {
    if (x.shape() != in[0].shape()) {
      fail(name(op), ": shapes differ: ", in[0].shape(), " and ", x.shape());
    }
  }
  for (size_t i = first; i < in.size(); ++i) expect_same_dtype(op, in[first], in[i]);
  const DType dtype = in[first].dtype();
  if (!accepts(fn, dtype)) fail(name(op), ": not defined for ", dtype);
  return {{info(fn).out == ScalarOut::logical ? DType::boolean : dtype, in[0].shape()}};
}

void expect_total(Op op, const Value& x) {
  if (x.dtype() == DType::boolean) fail(name(op), ": not defined for bool, cast it first");
}

Types reduce_types(Op op, const Value& x, const Attrs& attrs) {
  const bool folds_none = op == Op::sum || op == Op::prod;  // has a value for no elements
  if (folds_none) expect_total(op, x);
  Shape shape = x.shape();
  int64_t previous = -1;
  for (const int64_t axis : attrs.a) {
    expect_axis(op, axis, x.shape());
    TESSERA_ASSERT(axis > previous);
    previous = axis;
    if (shape[int(axis)] == 0 && !folds_none) {
      fail(name(op), ": axis ", axis, " of ", x.shape(), " is empty");
    }
    shape[int(axis)] = 1;
  }
  TESSERA_ASSERT(op != Op::argmax || attrs.a.rank() == 1);
  return {{op == Op::argmax ? DType::i64 : x.dtype(), shape}};
}

Types reshape_types(const Value& x, const Shape& shape) {
  for (const int64_t extent : shape) {
    if (extent < 0) fail("reshape: expected extents of at least 0, got ", shape);
  }
  if (numel(shape) != numel(x.shape())) {
    fail("reshape: cannot turn ", x.shape(), " into ", shape, ": ", numel(x.shape()), " and ",
         numel(shape), " elements");
  }
  return {{x.dtype(), shape}};
}

Types permute_types(const Value& x, const Dims& permutation) {
  Shape shape;
  Dims seen;
  for (const int64_t axis : permutation) {
    if (axis < 0 || axis >= x.shape().rank() || seen.contains(axis)) break;
    seen.push_back(axis);
    shape.push_back(x.shape()[int(axis)]);
  }
  if (seen.rank() != x.shape().rank() || seen.rank() != permutation.rank()) {
    fail("permute: expected a permutation of ", x.shape().rank(), " axes, got ", permutation);
  }
  return {{x.dtype(), shape}};
}

Types expand_types(const Value& x, const Shape& shape) {
  bool fits = x.shape().rank() == shape.rank();
  for (int i = 0; fits && i < shape.rank(); ++i) {
    fits = x.shape()[i] == shape[i] || (x.shape()[i] == 1 && shape[i] >= 0);
  }
  if (!fits) fail("expand: cannot expand ", x.shape(), " to ", shape);
  numel(shape);
  return {{x.dtype(), shape}};
}

Types slice_types(const Value& x, const Attrs& attrs) {
  const int rank = x.shape().rank();
  if (attrs.a.rank() != rank || attrs.b.rank() != rank || attrs.c.rank() != rank) {
    fail("slice: expected ", rank, " starts, sizes and steps for ", x.shape(), ", got ",
         attrs.a.rank(), ", ", attrs.b.rank(), " and ", attrs.c.rank());
  }
  for (int i = 0; i < rank; ++i) {
    const int64_t start = attrs.a[i], size = attrs.b[i], step = attrs.c[i];
    if (step == 0) fail("slice: step of axis ", i, " is 0");
    const int64_t extent = x.shape()[i];
    int64_t last = 0;
    const bool overflow = size > 0 && (__builtin_mul_overflow(size - 1, step, &last) ||
                                       __builtin_add_overflow(last, start, &last));
    const bool outside = start < 0 || start >= extent || last < 0 || last >= extent;
    if (size < 0 || overflow || (size > 0 && outside)) {
      fail("slice: start ", start, ", size ", size, ", step ", step, " leave axis ", i, " of ",
           x.shape());
    }
  }
  return {{x.dtype(), attrs.b}};
}

Types window_types(const Value& x, const Attrs& attrs) {
  expect_axis(Op::window, attrs.axis, x.shape());
  const int64_t size = attrs.a[0], step = attrs.a[1], extent = x.shape()[int(attrs.axis)];
  if (size < 1 || step < 1) {
    fail("window: expected a size and a step of at least 1, got ", size, " and ", step);
  }
  if (size > extent) {
    fail("window: size ", size, " does not fit axis ", attrs.axis, " of ", x.shape());
  }
  Shape shape = x.shape();
  shape[int(attrs.axis)] = (extent - size) / step + 1;
  shape.push_back(size);
  numel(shape);
  return {{x.dtype(), shape}};
}

Types pad_types(const Value& x, const Attrs& attrs) {
  const int rank = x.shape().rank();
  if (attrs.a.rank() != rank || attrs.b.rank() != rank) {
    fail("pad: expected ", rank, " amounts before and after for ", x.shape(), ", got ", attrs.a,
         " and ", attrs.b);
  }
  Shape shape = x.shape();
  for (int i = 0; i < rank; ++i) {
    if (attrs.a[i] < 0 || attrs.b[i] < 0) {
      fail("pad: expected amounts of at least 0, got ", attrs.a, " and ", attrs.b);
    }
    grow(Op::pad, shape[i], attrs.a[i]);
    grow(Op::pad, shape[i], attrs.b[i]);
  }
  numel(shape);
  return {{x.dtype(), shape}};
}

Types concat_types(Inputs in, const Attrs& attrs) {
  if (in.empty()) fail("concat: expected at least one tensor, got none");
  expect_axis(Op::concat, attrs.axis, in[0].shape());
  Shape shape = in[0].shape();
  for (const Value& x : in.subspan(1)) {
    expect_same_dtype(Op::concat, in[0], x);
    bool fits = x.shape().rank() == shape.rank();
    for (int i = 0; fits && i < shape.rank(); ++i) {
      fits = i == attrs.axis || x.shape()[i] == shape[i];
    }
    if (!fits) {
      fail("concat: shapes differ outside axis ", attrs.axis, ": ", in[0].shape(), " and ",
           x.shape());
    }
    grow(Op::concat, shape[int(attrs.axis)], x.shape()[int(attrs.axis)]);
  }
  numel(shape);
  return {{in[0].dtype(), shape}};
}

// x and index must agree everywhere but along the axis.
void expect_index_shape(Op op, const Value& x, const Value& index, int64_t axis) {
  expect_integer_index(op, index);
  expect_axis(op, axis, x.shape());
  bool fits = x.shape().rank() == index.shape().rank();
  for (int i = 0; fits && i < x.shape().rank(); ++i) {
    fits = i == axis || x.shape()[i] == index.shape()[i];
  }
  if (!fits) {
    fail(name(op), ": shapes differ outside axis ", axis, ": ", x.shape(), " and indices ",
         index.shape());
  }
}

Types scatter_types(Op op, Inputs in, const Attrs& attrs) {
  expect_index_shape(op, in[0], in[1], attrs.axis);
  expect_same_dtype(op, in[0], in[2]);
  const bool is_bool = in[0].dtype() == DType::boolean;
  if (op == Op::scatter_add && is_bool) fail("scatter_add: not defined for bool");
  if (in[1].shape() != in[2].shape()) {
    fail(name(op), ": indices and source differ: ", in[1].shape(), " and ", in[2].shape());
  }
  return {in[0].type()};
}

Types dynamic_slice_types(Inputs in, const Attrs& attrs) {
  const Shape& x = in[0].shape();
  expect_axis(Op::dynamic_slice, attrs.axis, x);
  expect_integer_index(Op::dynamic_slice, in[1]);
  expect_scalar(Op::dynamic_slice, "start", in[1]);
  const int64_t size = attrs.a[0];
  if (size < 0 || size > x[int(attrs.axis)]) {
    fail("dynamic_slice: size ", size, " does not fit axis ", attrs.axis, " of ", x);
  }
  Shape shape = x;
  shape[int(attrs.axis)] = size;
  return {{in[0].dtype(), shape}};
}

Types dynamic_update_slice_types(Inputs in, const Attrs& attrs) {
  const Op op = Op::dynamic_update_slice;
  const Shape &x = in[0].shape(), &u = in[1].shape();
  expect_axis(op, attrs.axis, x);
  expect_same_dtype(op, in[0], in[1]);
  expect_integer_index(op, in[2]);
  expect_scalar(op, "start", in[2]);
  bool fits = x.rank() == u.rank();
  for (int i = 0; fits && i < x.rank(); ++i) fits = i == attrs.axis ? u[i] <= x[i] : u[i] == x[i];
  if (!fits) fail("dynamic_update_slice: an update of ", u, " does not fit ", x);
  return {in[0].type()};
}

Types matmul_types(Inputs in) {
  const Shape &a = in[0].shape(), &b = in[1].shape();
  expect_same_dtype(Op::matmul, in[0], in[1]);
  if (in[0].dtype() == DType::boolean) fail("matmul: not defined for bool");
  if (a.rank() < 2 || b.rank() < 2) {
    fail("matmul: expected at least 2 dimensions, got ", a, " @ ", b);
  }
  const int r = a.rank();
  if (a[r - 1] != b[b.rank() - 2]) fail("matmul: inner dimensions differ: ", a, " @ ", b);
  bool fits = r == b.rank();
  for (int i = 0; fits && i < r - 2; ++i) fits = a[i] == b[i];
  if (!fits) fail("matmul: batch dimensions differ: ", a, " @ ", b);
  Shape shape = a;
  shape[r - 1] = b[r - 1];
  numel(shape);
  return {{in[0].dtype(), shape}};
}

Types layer_norm_types(Op op, Inputs in, const Value& x, std::initializer_list<size_t> vectors) {
  expect_float(op, x);
  if (x.shape().empty()) fail(name(op), ": expected at least 1 dimension, got ()");
  const Shape columns = {x.shape().back()};
  for (const size_t i : vectors) {
    expect_same_dtype(op, x, in[i]);
    if (in[i].shape() != columns) {
      fail(name(op), ": expected scale and shift of ", columns, " for ", x.shape(), ", got ",
           in[i].shape());
    }
  }
  Shape rows = x.shape();
  rows[rows.rank() - 1] = 1;
  const Type statistics = {compute_type(x.dtype()), rows};
  if (op == Op::layer_norm) return {x.type(), statistics, statistics};
  if (in[0].type() != x.type() || in[3].type() != statistics || in[4].type() != statistics) {
    fail(name(op), ": expected gradient, mean and rstd for ", x.type(), ", got ", in[0].type(),
         ", ", in[3].type(), " and ", in[4].type());
  }
  return {x.type(), {x.dtype(), columns}, {x.dtype(), columns}};
}

// Products of matrices with something beside them.
Types linear_types(Op op, Inputs in) {
  expect_float(op, in[0]);
  const std::vector<Value> factors = {in[0], in[1]};
  const Type product = matmul_types(factors)[0];
  const Type row = {product.dtype, {product.shape.back()}};
  if (op == Op::matmul_sums) {
    if (product.shape.rank() == 2) return {product, row};
    fail("matmul_sums: expected matrices, got ", in[0].type(), " and ", in[1].type());
  }
  const Type& expected = op == Op::linear ? row : product;
  if (product.shape.rank() != 2 || in[2].type() != expected) {
    fail(name(op), ": expected matrices and ", expected, ", got ", in[0].type(), ", ", in[1].type(),
         " and ", in[2].type());
  }
  if (op == Op::matmul_add) return {product};
  return {product, op == Op::linear ? product : row};
}

// x (R…, C), targets (R…, 1), g (R…, 1)
Types cross_entropy_types(Inputs in) {
  const Value& x = in[0];
  expect_float(Op::cross_entropy, x);
  if (x.shape().empty() || x.shape().back() == 0) {
    fail("cross_entropy: expected at least 1 class, got ", x.shape());
  }
  expect_integer_index(Op::cross_entropy, in[1]);
  Shape rows = x.shape();
  rows[rows.rank() - 1] = 1;
  const Type loss = {compute_type(x.dtype()), rows};
  if (in[1].shape() != rows || in[2].type() != loss) {
    fail("cross_entropy: expected targets ", rows, " and a gradient ", loss, " for ", x.type(),
         ", got ", in[1].shape(), " and ", in[2].type());
  }
  return {loss, x.type()};
}

// sort and topk: values and where they were, over the last axis.
Types ordered_types(Op op, const Value& x, const Attrs& attrs) {
  if (x.shape().empty()) fail(name(op), ": expected at least 1 dimension, got ()");
  Shape shape = x.shape();
  if (op == Op::topk) {
    const int64_t k = attrs.a[0], extent = shape.back();
    if (k < 0 || k > extent) {
      fail("topk: expected k from 0 to ", extent, " for ", shape, ", got ", k);
    }
    shape[shape.rank() - 1] = k;
  }
  return {{x.dtype(), shape}, {DType::i64, shape}};
}

Types custom_types(Inputs in, const Attrs& attrs) {
  const CustomDefinition& definition = custom_definition(attrs);
  Types inputs;
  for (const Value& x : in) inputs.push_back(x.type());
  Types outputs = definition.types(inputs);
  if (outputs.empty()) fail("custom_op: '", definition.kernel->name, "' names no output");
  for (const Type& type : outputs) {
    for (const int64_t extent : type.shape) {
      if (extent < 0) {
        fail("custom_op: '", definition.kernel->name, "' gives an output the type ", type);
      }
    }
    numel(type.shape);
  }
  return outputs;
}

Types custom_vjp_types(Inputs in, const Attrs& attrs) {
  Types types;
  for (const Value& y : in.subspan(size_t(attrs.axis))) types.push_back(y.type());
  return types;
}

}  // namespace

std::vector<Type> infer_types(Op op, std::span<const Value> in, const Attrs& attrs) {
  TESSERA_ASSERT(info(op).arity < 0 || in.size() == size_t(info(op).arity));
  if (is_scalar_fn(op)) return scalar_types(op, in);
  switch (op) {
    case Op::uniform:
      for (const Value& x : in) {
        expect_scalar(op, "i64", x);
        if (x.dtype() != DType::i64) fail("uniform: expected i64 key and offset, got ", x.dtype());
      }
      numel(attrs.a);
      return {{DType::f32, attrs.a}};
    case Op::constant: return {{attrs.dtype, {}}};
    case Op::iota:
      expect_axis(op, attrs.axis, attrs.a);
      if (attrs.dtype == DType::boolean) fail("iota: not defined for bool");
      numel(attrs.a);
      return {{attrs.dtype, attrs.a}};
    case Op::cast: return {{attrs.dtype, in[0].shape()}};
    case Op::sum:
    case Op::prod:
    case Op::max:
    case Op::min:
    case Op::argmax: return reduce_types(op, in[0], attrs);
    case Op::reshape: return reshape_types(in[0], attrs.a);
    case Op::permute: return permute_types(in[0], attrs.a);
    case Op::expand: return expand_types(in[0], attrs.a);
    case Op::slice: return slice_types(in[0], attrs);
    case Op::window: return window_types(in[0], attrs);
    case Op::pad: return pad_types(in[0], attrs);
    case Op::concat: return concat_types(in, attrs);
    case Op::gather:
      expect_index_shape(op, in[0], in[1], attrs.axis);
      return {{in[0].dtype(), in[1].shape()}};
    case Op::dynamic_slice: return dynamic_slice_types(in, attrs);
    case Op::scatter_add:
    case Op::scatter: return scatter_types(op, in, attrs);
    case Op::dynamic_update_slice: return dynamic_update_slice_types(in, attrs);
    case Op::matmul: return matmul_types(in);
    case Op::stop_gradient:
    case Op::region_enter:
    case Op::region_exit: return {in[0].type()};
    case Op::custom_vjp: return custom_vjp_types(in, attrs);
    case Op::cumsum:
    case Op::cumprod:
      expect_axis(op, attrs.axis, in[0].shape());
      expect_total(op, in[0]);
      return {in[0].type()};
    case Op::sort:
    case Op::topk: return ordered_types(op, in[0], attrs);
    case Op::softmax:
      expect_float(op, in[0]);
      if (in[0].shape().empty()) fail("softmax: expected at least 1 dimension, got ()");
      return {in[0].type()};
    case Op::linear:
    case Op::linear_slope:
    case Op::matmul_add:
    case Op::matmul_sums: return linear_types(op, in);
    case Op::layer_norm: return layer_norm_types(op, in, in[0], {1, 2});
    case Op::layer_norm_backward: return layer_norm_types(op, in, in[1], {2});
    case Op::cross_entropy: return cross_entropy_types(in);
    case Op::attention:
    case Op::attention_backward: return attention_types(op, in, attrs);
    case Op::custom: return custom_types(in, attrs);
    default: break;
  }
  TESSERA_ASSERT(!"an op without a type rule");
  return {};
}

}  // namespace tessera
