#include "tessera/tensor/structure.h"

#include <algorithm>

#include "tessera/tensor/creation.h"
#include "tessera/tensor/elementwise.h"
#include "tessera/tensor/op_support.h"

namespace tessera {

namespace {

std::string to_text(const std::vector<int64_t>& numbers) {
  std::string text = "(";
  for (size_t i = 0; i < numbers.size(); ++i) text += cat(i > 0 ? ", " : "", numbers[i]);
  return text + ")";
}

// What lies before, on and behind an axis, as extents.
struct Blocks {
  int64_t outer = 1, extent = 1, inner = 1;
};

Blocks blocks_of(const Tensor& x, int axis) {
  Shape outer, inner;
  for (int i = 0; i < x.rank(); ++i) {
    if (i != axis) (i < axis ? outer : inner).push_back(x.shape()[i]);
  }
  return {numel(outer), x.shape()[axis], numel(inner)};
}

Tensor repeat_axis(const Tensor& x, int axis, int64_t repeats) {
  const Blocks b = blocks_of(x, axis);
  const Tensor wide = broadcast_to(reshape(x, {b.outer, 1, b.extent, b.inner}),
                                   {b.outer, repeats, b.extent, b.inner});
  Shape shape = x.shape();
  shape[axis] *= repeats;
  return reshape(wide, shape);
}

// Column - row at every element of the last two axes: 0 on the diagonal.
Tensor band(const char* op, const Tensor& x) {
  if (x.rank() < 2) fail_here(op, ": expected at least 2 dimensions, got ", x.shape());
  const Shape matrix = {x.size(-2), x.size(-1)};
  return iota(matrix, 1) - iota(matrix, 0);
}

Tensor zero_of(const Tensor& x) { return literal(0, x.dtype()); }

}  // namespace

Tensor reshape(In x, Shape shape) {
  int unknown = -1;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] != -1) continue;
    if (unknown >= 0) fail_here("reshape: expected at most one -1, got ", shape);
    unknown = i;
  }
  if (unknown >= 0) {
    Shape rest = shape;
    rest.erase(unknown);
    const int64_t known = numel(rest);
    if (known == 0 || x.numel() % known != 0)
      fail_here("reshape: cannot turn ", x.shape(), " into ", shape);
    shape[unknown] = x.numel() / known;
  }
  return Tensor(graph::reshape(x.value(), shape));
}

Tensor view(In x, Shape shape) { return reshape(x, shape); }

Tensor flatten(In x, int64_t first, int64_t last) {
  if (x.rank() == 0) return reshape(x, {1});
  const int begin = axis_of("flatten", first, x), end = axis_of("flatten", last, x);
  if (begin > end) fail_here("flatten: axis ", first, " comes behind axis ", last);
  Shape shape, joined;
  for (int i = 0; i < x.rank(); ++i) {
    (i < begin || i > end ? shape : joined).push_back(x.shape()[i]);
    if (i == end) shape.push_back(numel(joined));
  }
  return reshape(x, shape);
}

Tensor permute(In x, const Dims& permutation) {
  Dims normalized;
  for (const int64_t axis : permutation) normalized.push_back(axis_of("permute", axis, x));
  return Tensor(graph::permute(x.value(), normalized));
}

Tensor transpose(In x, int64_t a, int64_t b) {
  Dims permutation;
  for (int i = 0; i < x.rank(); ++i) permutation.push_back(i);
  std::swap(permutation[axis_of("transpose", a, x)], permutation[axis_of("transpose", b, x)]);
  return permute(x, permutation);
}

Tensor broadcast_to(In x, const Shape& shape) {
  if (x.rank() > shape.rank())
    fail_here("broadcast_to: cannot broadcast ", x.shape(), " to ", shape);
  return Tensor(graph::broadcast_to(x.value(), shape));
}

Tensor expand(In x, const Shape& shape) {
  Shape full = shape;
  const int added = shape.rank() - x.rank();
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] != -1) continue;
    if (i < added) fail_here("expand: -1 stands before the axes of ", x.shape(), " in ", shape);
    full[i] = x.shape()[i - added];
  }
  return broadcast_to(x, full);
}

Tensor squeeze(In x) {
  Shape shape;
  for (const int64_t extent : x.shape()) {
    if (extent != 1) shape.push_back(extent);
  }
  return reshape(x, shape);
}

Tensor squeeze(In x, int64_t axis) {
  const int i = axis_of("squeeze", axis, x);
  if (x.shape()[i] != 1)
    fail_here("squeeze: axis ", axis, " of ", x.shape(), " is not of extent 1");
  Shape shape = x.shape();
  shape.erase(i);
  return reshape(x, shape);
}

Tensor unsqueeze(In x, int64_t axis) {
  Shape shape = x.shape();
  shape.insert(axis_of("unsqueeze", axis, x.rank() + 1), 1);
  return reshape(x, shape);
}

Tensor slice(In x, int64_t axis, int64_t start, int64_t stop, int64_t step) {
  const int i = axis_of("slice", axis, x);
  if (step == 0) fail_here("slice: step of axis ", i, " is 0");
  const int64_t extent = x.shape()[i];
  // As NumPy: bounds count from the end when negative and are then cut to where a step can start.
  const int64_t lowest = step > 0 ? 0 : -1, highest = step > 0 ? extent : extent - 1;
  auto cut = [&](int64_t p) { return std::clamp(p < 0 ? p + extent : p, lowest, highest); };
  start = cut(start);
  stop = cut(stop);
  const int64_t distance = step > 0 ? stop - start : start - stop;
  const int64_t stride = step > 0 ? step : -std::max(step, -INT64_MAX);
  Dims starts = Dims::filled(x.rank(), 0), steps = Dims::filled(x.rank(), 1);
  Shape sizes = x.shape();
  sizes[i] = distance <= 0 ? 0 : 1 + (distance - 1) / stride;
  starts[i] = sizes[i] == 0 ? 0 : start;
  steps[i] = sizes[i] > 1 ? step : 1;  // a step nobody takes may be larger than strides can be
  return Tensor(graph::slice(x.value(), starts, sizes, steps));
}

Tensor pad(In x, const Dims& before, const Dims& after, const Scalar& value) {
  with_origin([&] { value.check_fits(x.dtype()); });
  return Tensor(graph::pad(x.value(), before, after, value.real()));
}

Tensor concat(const std::vector<Tensor>& parts, int64_t axis, std::source_location line) {
  set_line(line);
  if (parts.empty()) fail_here("concat: expected at least one tensor, got none");
  DType dtype = parts[0].dtype();
  for (const Tensor& part : parts) dtype = promote(dtype, part.dtype());
  std::vector<Value> values;
  for (const Tensor& part : parts) values.push_back(graph::cast(part.value(), dtype));
  return Tensor(graph::concat(values, axis_of("concat", axis, parts[0])));
}

Tensor stack(const std::vector<Tensor>& parts, int64_t axis, std::source_location line) {
  set_line(line);
  if (parts.empty()) fail_here("stack: expected at least one tensor, got none");
  const int i = axis_of("stack", axis, parts[0].rank() + 1);
  std::vector<Tensor> lifted;
  for (const Tensor& part : parts) lifted.push_back(unsqueeze(part, i));
  return concat(lifted, i);
}

Tensor flip(In x, const Dims& axes) {
  Dims starts = Dims::filled(x.rank(), 0), steps = Dims::filled(x.rank(), 1);
  for (const int64_t axis : axes_of("flip", axes, x)) {
    starts[int(axis)] = std::max<int64_t>(x.shape()[int(axis)] - 1, 0);
    steps[int(axis)] = -1;
  }
  return Tensor(graph::slice(x.value(), starts, x.shape(), steps));
}

Tensor flip(In x, int64_t axis) { return flip(x, Dims{axis}); }

Tensor roll(In x, int64_t shift, int64_t axis) {
  const int i = axis_of("roll", axis, x);
  const int64_t extent = x.shape()[i];
  if (extent == 0) return x;
  const int64_t by = ((shift % extent) + extent) % extent;
  if (by == 0) return x;
  return concat({slice(x, i, extent - by, extent), slice(x, i, 0, extent - by)}, i);
}

Tensor roll(In x, const Dims& shifts, const Dims& axes) {
  if (shifts.rank() != axes.rank()) {
    fail_here("roll: expected a shift for each axis, got ", shifts, " for ", axes);
  }
  Tensor result = x;
  for (int i = 0; i < axes.rank(); ++i) result = roll(result, shifts[i], axes[i]);
  return result;
}

std::vector<Tensor> split(In x, int64_t size, int64_t axis) {
  const int i = axis_of("split", axis, x);
  if (size < 1) fail_here("split: expected parts of at least 1, got ", size);
  std::vector<Tensor> parts;
  const int64_t extent = x.shape()[i];
  for (int64_t start = 0; start < extent; start += std::min(size, extent - start)) {
    parts.push_back(slice(x, i, start, start + std::min(size, extent - start)));
  }
  if (parts.empty()) parts.push_back(x);
  return parts;
}

std::vector<Tensor> split(In x, const std::vector<int64_t>& sizes, int64_t axis) {
  const int i = axis_of("split", axis, x);
  std::vector<Tensor> parts;
  int64_t start = 0;
  for (const int64_t size : sizes) {
    if (size < 0 || size > x.shape()[i] - start) {
      fail_here("split: sizes ", to_text(sizes), " do not make up axis ", axis, " of ", x.shape());
    }
    parts.push_back(slice(x, i, start, start + size));
    start += size;
  }
  if (start != x.shape()[i]) {
    fail_here("split: sizes ", to_text(sizes), " do not make up axis ", axis, " of ", x.shape());
  }
  return parts;
}

std::vector<Tensor> chunk(In x, int64_t n, int64_t axis) {
  if (n < 1) fail_here("chunk: expected at least 1 part, got ", n);
  const int64_t extent = x.shape()[axis_of("chunk", axis, x)];
  return split(x, std::max<int64_t>(1, extent / n + (extent % n != 0)), axis);
}

Tensor repeat(In x, const Dims& repeats) {
  const int added = repeats.rank() - x.rank();
  if (added < 0) {
    fail_here("repeat: expected at least ", x.rank(), " repeats for ", x.shape(), ", got ",
              repeats);
  }
  Tensor result = x;
  for (int i = 0; i < added; ++i) result = unsqueeze(result, 0);
  for (int i = 0; i < repeats.rank(); ++i) {
    if (repeats[i] < 0) fail_here("repeat: expected repeats of at least 0, got ", repeats);
    // An axis at a time: a repeat beside each axis could need more axes than a tensor may have.
    if (repeats[i] != 1) result = repeat_axis(result, i, repeats[i]);
  }
  return result;
}

Tensor tile(In x, const Dims& repeats) {
  Dims full = repeats;
  while (full.rank() < x.rank()) full.insert(0, 1);
  return repeat(x, full);
}

Tensor repeat_interleave(In x, int64_t repeats, int64_t axis) {
  const int i = axis_of("repeat_interleave", axis, x);
  if (repeats < 0) fail_here("repeat_interleave: expected repeats of at least 0, got ", repeats);
  // (…, n, m…) as (outer, n, 1, m) -> (outer, n, repeats, m)
  const Blocks b = blocks_of(x, i);
  const Tensor wide = broadcast_to(reshape(x, {b.outer, b.extent, 1, b.inner}),
                                   {b.outer, b.extent, repeats, b.inner});
  Shape shape = x.shape();
  shape[i] *= repeats;
  return reshape(wide, shape);
}

Tensor diag(In x, int64_t offset) {
  constexpr int64_t kFarthest = int64_t{1} << 40;
  if (offset < -kFarthest || offset > kFarthest) fail_here("diag: offset ", offset, " is too far");
  if (x.rank() == 1) {
    const int64_t n = x.size(0) + std::abs(offset);
    const int64_t before = std::max<int64_t>(-offset, 0), after = n - before - x.size(0);
    // Row r holds x[r - before] in column r + offset.
    const Tensor column = unsqueeze(pad(x, {before}, {after}), 1);
    const Tensor hit = iota({n, n}, 1) - iota({n, n}, 0) == offset;
    return where(hit, column, zero_of(x));
  }
  if (x.rank() != 2) fail_here("diag: expected 1 or 2 dimensions, got ", x.shape());
  const int64_t rows = x.size(0), columns = x.size(1);
  const int64_t first_row = std::max<int64_t>(-offset, 0);
  const int64_t first_column = std::max<int64_t>(offset, 0);
  const int64_t n = std::max<int64_t>(std::min(rows - first_row, columns - first_column), 0);
  if (n == 0) return reshape(slice(slice(x, 0, 0, 0), 1, 0, 1), {0});
  // Element (r, r) of an n × n part, flattened, is n + 1 behind the one before.
  const Tensor part =
      slice(slice(x, 0, first_row, first_row + n), 1, first_column, first_column + n);
  return slice(reshape(part, {n * n}), 0, 0, n * n, n + 1);
}

Tensor tril(In x, int64_t diagonal) { return where(band("tril", x) <= diagonal, x, zero_of(x)); }
Tensor triu(In x, int64_t diagonal) { return where(band("triu", x) >= diagonal, x, zero_of(x)); }

Tensor sliding_window(In x, int64_t axis, int64_t size, int64_t step) {
  return Tensor(graph::window(x.value(), axis_of("sliding_window", axis, x), size, step));
}

}  // namespace tessera
