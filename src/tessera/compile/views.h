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

// A view of elements that lay as `from` says, once they lie as `to` says; nothing where no strides
// express it: an axis goes on from one row into the next, say, and rows now lie apart. `from` and
// `to` have one shape; nothing, too, where `from` is not all of a buffer, in any order of its axes.
std::optional<View> rearranged(const View& view, const View& from, const View& to);

}  // namespace tessera
