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

}  // namespace tessera
