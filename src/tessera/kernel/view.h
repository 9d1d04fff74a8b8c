// View: which elements of a buffer an operand reads or writes.
#pragma once

#include <optional>

#include "tessera/base/dtype.h"
#include "tessera/base/shape.h"

namespace tessera {

// Element (i0, i1, …) lies `offset + Σ i_k · strides[k]` elements behind the start of the buffer.
// Strides may be 0 (broadcast) or negative (reversed).
struct View {
  Shape shape;
  Dims strides;
  int64_t offset = 0;

  bool operator==(const View&) const = default;
};

View contiguous_view(const Shape& shape);
bool is_contiguous(const View& view);  // row-major from offset 0; extents of 1 may have any stride

// Elements from the start of a row, the last axis, to that of the next, where all rows are equally
// far apart and their elements side by side. REQUIRES a last axis.
std::optional<int64_t> row_step(const View& view);

// Whether two views of one buffer have the same elements at the same positions.
bool same_elements(const View& a, const View& b);

// The lowest and one past the highest element index the view touches; {0, 0} when it is empty.
struct ViewSpan {
  int64_t begin = 0, end = 0;
};
ViewSpan span_of(const View& view);

}  // namespace tessera
