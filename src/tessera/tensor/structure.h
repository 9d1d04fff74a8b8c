// Other arrangements of the same elements. Those that only move axes cost nothing: kernels read
// through strides.
#pragma once

#include <vector>

#include "tessera/tensor/tensor.h"

namespace tessera {

Tensor reshape(In x, Shape shape);                           // one extent may be -1
Tensor view(In x, Shape shape);                              // the same
Tensor flatten(In x, int64_t first = 0, int64_t last = -1);  // axes first … last become one
Tensor permute(In x, const Dims& permutation);
Tensor transpose(In x, int64_t a = -2, int64_t b = -1);
Tensor broadcast_to(In x, const Shape& shape);
Tensor expand(In x, const Shape& shape);  // the same; -1 keeps an extent
Tensor squeeze(In x);                     // drops every axis of extent 1
Tensor squeeze(In x, int64_t axis);
Tensor unsqueeze(In x, int64_t axis);
// Elements start, start + step, … before stop along one axis; negative positions count from the end
// and positions beyond the ends are cut, as in NumPy. tensor/indexing.h has x[{…}].
Tensor slice(In x, int64_t axis, int64_t start, int64_t stop, int64_t step = 1);
Tensor flip(In x, int64_t axis);
Tensor flip(In x, const Dims& axes);
// Elements move up by `shift` along the axis; what leaves at the end comes in at the start.
Tensor roll(In x, int64_t shift, int64_t axis);
Tensor roll(In x, const Dims& shifts, const Dims& axes);

Tensor pad(In x, const Dims& before, const Dims& after, const Scalar& value = 0);
Tensor concat(const std::vector<Tensor>& parts, int64_t axis = 0,
              std::source_location line = std::source_location::current());
Tensor stack(const std::vector<Tensor>& parts, int64_t axis = 0,
             std::source_location line = std::source_location::current());
// Parts of `size` along the axis, the last one smaller where it does not divide; or of these sizes.
std::vector<Tensor> split(In x, int64_t size, int64_t axis = 0);
std::vector<Tensor> split(In x, const std::vector<int64_t>& sizes, int64_t axis = 0);
// At most n parts of equal size, the last one smaller.
std::vector<Tensor> chunk(In x, int64_t n, int64_t axis = 0);

// x side by side with itself, repeats[i] times along axis i; `repeats` may have more axes than x,
// and for tile fewer.
Tensor repeat(In x, const Dims& repeats);
Tensor tile(In x, const Dims& repeats);
Tensor repeat_interleave(In x, int64_t repeats, int64_t axis);  // each element so many times

// Of a vector: the matrix with it on its diagonal. Of a matrix: its diagonal. `offset` counts
// diagonals above the main one.
Tensor diag(In x, int64_t offset = 0);
Tensor tril(In x, int64_t diagonal = 0);  // zero above that diagonal of the last two axes
Tensor triu(In x, int64_t diagonal = 0);  // zero below it

// Every window of `size` along the axis, `step` apart: (…, n, …) -> (…, (n - size) / step + 1, …,
// size). A view: overlapping windows share their elements. The base of convolution and pooling.
Tensor sliding_window(In x, int64_t axis, int64_t size, int64_t step = 1);

}  // namespace tessera
