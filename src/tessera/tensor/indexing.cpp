#include "tessera/tensor/indexing.h"

#include <algorithm>

#include "tessera/tensor/creation.h"
#include "tessera/tensor/elementwise.h"
#include "tessera/tensor/op_support.h"
#include "tessera/tensor/structure.h"

namespace tessera {

namespace {

// x cut to the extents of `index` outside the axis.
Tensor cut_to(const char* op, const Tensor& x, const Shape& index, int axis) {
  bool fits = x.rank() == index.rank();
  for (int i = 0; fits && i < x.rank(); ++i) fits = i == axis || index[i] <= x.shape()[i];
  if (!fits) {
    fail_here(op, ": indices ", index, " do not fit ", x.shape(), " outside axis ", axis);
  }
  Shape sizes = x.shape();
  for (int i = 0; i < x.rank(); ++i) sizes[i] = i == axis ? x.shape()[i] : index[i];
  return Tensor(
      graph::slice(x.value(), Dims::filled(x.rank(), 0), sizes, Dims::filled(x.rank(), 1)));
}

// Where a scatter writes: all of x, or the corner that the indices cover.
using Scatter = Value (*)(const Value&, const Value&, const Value&, int);
Tensor scatter_into(const char* op, Scatter write, const Tensor& x, const Tensor& index,
                    const Tensor& source, int axis) {
  const Tensor values = cast(source, x.dtype());
  const Tensor corner = cut_to(op, x, index.shape(), axis);
  const Tensor part =
      source.shape() == index.shape() ? values : cut_to(op, values, index.shape(), -1);
  const Tensor written(write(corner.value(), index.value(), part.value(), axis));
  if (corner.shape() == x.shape()) return written;
  Tensor result = written;
  // Puts back what the corner left out, an axis at a time.
  for (int i = x.rank() - 1; i >= 0; --i) {
    const int64_t covered = result.shape()[i];
    if (covered == x.shape()[i]) continue;
    Dims starts = Dims::filled(x.rank(), 0);
    Shape sizes = result.shape();
    starts[i] = covered;
    sizes[i] = x.shape()[i] - covered;
    const Tensor rest(graph::slice(x.value(), starts, sizes, Dims::filled(x.rank(), 1)));
    result = concat({result, rest}, i);
  }
  return result;
}

// `axis`: of the tensor that is indexed.
int64_t checked_position(int64_t position, int64_t extent, int axis) {
  const int64_t p = position < 0 ? position + extent : position;
  if (p < 0 || p >= extent) {
    fail_here("index: position ", position, " is out of range for axis ", axis, " of extent ",
              extent);
  }
  return p;
}

Tensor is_inside(const Tensor& index, int64_t extent) {
  return logical_and(index >= 0, index < extent);
}

// Axes of x that an entry stands for.
int consumed(const Index& index) {
  const auto& entry = index.entry();
  return std::holds_alternative<Ellipsis>(entry) || std::holds_alternative<NewAxis>(entry) ? 0 : 1;
}

Tensor apply_slice(const Tensor& x, int axis, const Slice& s) {
  const int64_t ends[] = {0, x.shape()[axis]};
  const bool up = s.step > 0;
  const int64_t start = s.start.value_or(up ? ends[0] : ends[1] - 1);
  // Downwards, an open end lies before position 0, which no number can say.
  const int64_t stop = s.stop.value_or(up ? ends[1] : -ends[1] - 1);
  return slice(x, axis, start, stop, s.step);
}

Tensor apply_indices(const Tensor& x, const std::vector<Index>& indices) {
  int named = 0, ellipses = 0, tensors = 0;
  for (const Index& index : indices) {
    named += consumed(index);
    ellipses += std::holds_alternative<Ellipsis>(index.entry());
    tensors += std::holds_alternative<Tensor>(index.entry());
  }
  if (ellipses > 1) fail_here("index: expected at most one ellipsis, got ", ellipses);
  if (tensors > 1) fail_here("index: expected at most one tensor of indices, got ", tensors);
  if (named > x.rank()) {
    fail_here("index: ", named, " entries are too many for ", x.shape());
  }
  Tensor result = x;
  int axis = 0, of_x = 0;  // the next axis of the result so far, and of x
  for (const Index& index : indices) {
    const auto& entry = index.entry();
    if (const auto* position = std::get_if<int64_t>(&entry)) {
      const int64_t p = checked_position(*position, result.shape()[axis], of_x);
      result = squeeze(slice(result, axis, p, p + 1), axis);
    } else if (const auto* range = std::get_if<Slice>(&entry)) {
      result = apply_slice(result, axis++, *range);
    } else if (std::holds_alternative<Ellipsis>(entry)) {
      axis += x.rank() - named;
      of_x += x.rank() - named;
    } else if (std::holds_alternative<NewAxis>(entry)) {
      result = unsqueeze(result, axis++);
    } else {
      const Tensor& at = std::get<Tensor>(entry);
      result = take(result, at, axis);
      axis += at.rank();
    }
    of_x += consumed(index);
  }
  return result;
}

}  // namespace

Index::Index(Entry entry, Line line) : entry_(std::move(entry)) { set_line(line); }

const Tensor Tensor::operator[](std::initializer_list<Index> indices) const {
  return apply_indices(*this, indices);
}
const Tensor Tensor::operator[](const Index& index) const { return apply_indices(*this, {index}); }

Tensor gather(In x, In index, int64_t axis) {
  const int i = axis_of("gather", axis, x);
  return Tensor(graph::gather(cut_to("gather", x, index.shape(), i).value(), index.value(), i));
}

Tensor scatter(In x, In index, In source, int64_t axis) {
  return scatter_into("scatter", graph::scatter, x, index, source, axis_of("scatter", axis, x));
}

Tensor scatter_add(In x, In index, In source, int64_t axis) {
  return scatter_into("scatter_add", graph::scatter_add, x, index, source,
                      axis_of("scatter_add", axis, x));
}

Tensor take(In x, In indices, int64_t axis) {
  const int i = axis_of("take", axis, x);
  const int64_t n = indices.numel();
  Shape along = Dims::filled(x.rank(), 1), wide = x.shape();
  along[i] = wide[i] = n;
  const Tensor flat = gather(x, broadcast_to(reshape(indices, along), wide), i);
  Shape shape;
  for (int k = 0; k < x.rank(); ++k) {
    if (k != i) shape.push_back(x.shape()[k]);
    if (k != i) continue;
    for (const int64_t extent : indices.shape()) shape.push_back(extent);
  }
  return reshape(flat, shape);
}

Tensor index_select(In x, In indices, int64_t axis) {
  if (indices.rank() != 1) {
    fail_here("index_select: expected a vector of indices, got ", indices.shape());
  }
  return take(x, indices, axis);
}

Tensor index_put(In x, const std::vector<Tensor>& indices, In values, bool accumulate) {
  const int count = int(indices.size());
  if (count == 0 || count > x.rank()) {
    fail_here("index_put: expected 1 to ", x.rank(), " tensors of indices for ", x.shape(),
              ", got ", count);
  }
  Shape places;
  for (const Tensor& index : indices) {
    if (!is_integer(index.dtype())) {
      fail_here("index_put: expected integer indices, got ", index.dtype());
    }
    places = broadcast_shapes("index_put", places, index.shape());
  }
  // The indexed axes as one, and the others as one behind it.
  int64_t extent = 1, width = 1;
  Tensor flat, inside;
  Shape target = places;
  for (int i = 0; i < x.rank(); ++i) {
    if (i >= count) {
      width *= x.shape()[i];
      target.push_back(x.shape()[i]);
      continue;
    }
    extent *= x.shape()[i];
    const Tensor index = cast(indices[size_t(i)], DType::i64);
    const Tensor fits = is_inside(index, x.shape()[i]);
    inside = i == 0 ? fits : logical_and(inside, fits);
    flat = i == 0 ? index : flat * x.shape()[i] + index;
  }
  if (count > 1) flat = where(inside, flat, -1);  // one axis must not make up for another
  const int64_t n = numel(places);
  const Tensor table = reshape(x, {extent, width});
  const Tensor rows = broadcast_to(reshape(broadcast_to(flat, places), {n, 1}), {n, width});
  const Tensor source = reshape(broadcast_to(cast(values, x.dtype()), target), {n, width});
  const Tensor result =
      accumulate ? scatter_add(table, rows, source, 0) : scatter(table, rows, source, 0);
  return reshape(result, x.shape());
}

Tensor one_hot(In indices, int64_t classes, DType dtype) {
  if (!is_integer(indices.dtype())) {
    fail_here("one_hot: expected integer indices, got ", indices.dtype());
  }
  if (classes < 1) fail_here("one_hot: expected at least 1 class, got ", classes);
  Shape shape = indices.shape();
  shape.push_back(classes);
  return cast(unsqueeze(cast(indices, DType::i64), -1) == iota(shape, -1), dtype);
}

Tensor nonzero(In x) {
  const std::vector<bool> hits =
      (x.dtype() == DType::boolean ? Tensor(x) : x != 0).to_vector<bool>();
  const Dims strides = row_major_strides(x.shape());
  std::vector<int64_t> coordinates;
  int64_t found = 0;
  for (size_t p = 0; p < hits.size(); ++p) {
    if (!hits[p]) continue;
    ++found;
    for (int i = 0; i < x.rank(); ++i) {
      coordinates.push_back(int64_t(p) / strides[i] % x.shape()[i]);
    }
  }
  return tensor(coordinates, {found, x.rank()});
}

Tensor dynamic_slice(In x, In start, int64_t axis, int64_t size) {
  return Tensor(
      graph::dynamic_slice(x.value(), start.value(), axis_of("dynamic_slice", axis, x), size));
}

Tensor dynamic_update_slice(In x, In update, In start, int64_t axis) {
  return Tensor(graph::dynamic_update_slice(x.value(), update.value(), start.value(),
                                            axis_of("dynamic_update_slice", axis, x)));
}

}  // namespace tessera
