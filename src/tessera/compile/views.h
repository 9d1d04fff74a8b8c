// Moves as arithmetic on views.
#pragma once

#include <optional>

#include "tessera/graph/node.h"
#include "tessera/kernel/view.h"

namespace tessera {

// The view of a move op (reshape, permute, expand, slice, window) applied to a view; nothing when
// no strides express it, which only a reshape can cause.
std::optional<View> move_view(Op op, const Attrs& attrs, const View& view);

// Row-major at any offset.
bool is_packed(const View& view);

// Row-major, with `step` elements from the start of a row, the last axis, to that of the next.
View row_view(const Shape& shape, int64_t step);

// A view of packed rows of `columns` elements, once the rows begin `step` elements apart; nothing
// when an axis of it goes on from one row into the next.
std::optional<View> with_row_step(const View& view, int64_t columns, int64_t step);

}  // namespace tessera
