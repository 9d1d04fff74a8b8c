#include "tessera/tensor/structure.h"

#include "golden/golden.h"
#include "tessera/tensor/indexing.h"
#include "tessera/tensor/linalg.h"
#include "tessera/tensor/ops.h"

namespace tessera::golden {

// clang-format off
std::vector<Row> structure_rows() {
  return {
    {"reshape", [](X x) { return reshape(x[0], {3, 4}); }},
    {"reshape_inferred", [](X x) { return reshape(x[0], {4, -1}); }},
    {"view", [](X x) { return view(x[0], {12}); }},
    {"reshape_of_transposed", [](X x) { return reshape(transpose(x[0]), {2, 6}); }},
    {"flatten", [](X x) { return flatten(x[0]); }},
    {"flatten_some", [](X x) { return flatten(x[0], 1, 2); }},
    {"permute", [](X x) { return permute(x[0], {2, 0, 1}); }},
    {"transpose", [](X x) { return transpose(x[0]); }},
    {"transpose_axes", [](X x) { return transpose(x[0], 0, 2); }},
    {"expand", [](X x) { return expand(x[0], {2, -1, 4}); }},
    {"broadcast_to", [](X x) { return broadcast_to(x[0], {3, 4}); }},
    {"squeeze", [](X x) { return squeeze(x[0]); }},
    {"squeeze_axis", [](X x) { return squeeze(x[0], -2); }},
    {"unsqueeze", [](X x) {
       return Outputs{unsqueeze(x[0], 0), unsqueeze(x[0], 1), unsqueeze(x[0], -1)}; }},

    {"slice", [](X x) { return slice(x[0], 1, 1, 5); }},
    {"slice_step", [](X x) { return slice(x[0], 1, 1, 7, 3); }},
    {"slice_negative_ends", [](X x) { return slice(x[0], 0, -3, -1); }},
    {"slice_beyond_end", [](X x) { return slice(x[0], 1, 2, 100); }},
    {"slice_backwards", [](X x) { return slice(x[0], 1, 5, 0, -2); }},
    {"index_position", [](X x) { return x[0][{1}]; }},
    {"index_negative", [](X x) { return x[0][{kAll, -2}]; }},
    {"index_mixed", [](X x) { return x[0][{1, Slice{{}, {}, 2}, Slice{-3}}]; }},
    {"index_ellipsis", [](X x) { return x[0][{kEllipsis, Slice{1, 3}}]; }},
    {"index_new_axis", [](X x) { return x[0][{kAll, kNewAxis, Slice{1}}]; }},
    {"index_tensor", [](X x) { return x[0][{x[1]}]; }},
    {"index_tensor_inside", [](X x) { return x[0][{kAll, x[1]}]; }},
    {"index_backwards", [](X x) { return x[0][{Slice{{}, {}, -1}}]; }},
    {"flip", [](X x) { return flip(x[0], 1); }},
    {"flip_axes", [](X x) { return flip(x[0], {0, 2}); }},
    {"roll", [](X x) { return roll(x[0], 2, 1); }},
    {"roll_axes", [](X x) { return roll(x[0], {1, -7}, {0, 1}); }},
    {"pad", [](X x) { return pad(x[0], {0, 1}, {1, 2}); }},
    {"pad_value", [](X x) { return pad(x[0], {1, 2}, {1, 0}, -1.5); }},

    {"concat", [](X x) { return concat(x.tensors); }},
    {"concat_last", [](X x) { return concat(x.tensors, -1); }},
    {"concat_twice_the_same", [](X x) { return concat({x[0], x[0]}, 1); }},
    {"stack", [](X x) { return stack(x.tensors); }},
    {"stack_last", [](X x) { return stack(x.tensors, -1); }},
    {"split", [](X x) { return split(x[0], 3); }},
    {"split_sizes", [](X x) { return split(x[0], std::vector<int64_t>{1, 2, 3}, 1); }},
    {"chunk", [](X x) { return chunk(x[0], 3); }},
    {"chunk_last", [](X x) { return chunk(x[0], 4, -1); }},
    {"repeat", [](X x) { return repeat(x[0], {2, 1, 2}); }},
    {"tile", [](X x) { return tile(x[0], {2}); }},
    {"tile_more_axes", [](X x) { return tile(x[0], {2, 2}); }},
    {"repeat_interleave", [](X x) { return repeat_interleave(x[0], 2, 1); }},
    {"diag_of_vector", [](X x) { return diag(x[0]); }},
    {"diag_of_vector_below", [](X x) { return diag(x[0], -1); }},
    {"diag_of_matrix", [](X x) { return diag(x[0]); }},
    {"diag_of_matrix_above", [](X x) { return diag(x[0], 2); }},
    {"tril", [](X x) { return tril(x[0]); }},
    {"tril_above", [](X x) { return tril(x[0], 1); }},
    {"triu", [](X x) { return triu(x[0]); }},
    {"triu_below", [](X x) { return triu(x[0], -1); }},
    {"sliding_window", [](X x) { return sliding_window(x[0], 1, 3); }},
    {"sliding_window_step", [](X x) { return sliding_window(x[0], 0, 3, 2); }},
    {"sliding_window_apart", [](X x) { return sliding_window(x[0], -1, 2, 3); }},
    {"sliding_window_plane", [](X x) {
       return sliding_window(sliding_window(x[0], 1, 2), 2, 3, 2); }},
    {"convolution", [](X x) {
       const Tensor windows = sliding_window(x[0], 2, 3, 2);  // (N, C, T, K)
       return einsum("nctk,ock->not", {windows, x[1]}) + unsqueeze(x[2], -1); }},
    {"convolution_plane", [](X x) {
       // (N, C, H, W, I, J)
       const Tensor windows = sliding_window(sliding_window(x[0], 2, 2), 3, 3);
       return einsum("nchwij,ocij->nohw", {windows, x[1]}); }},
    {"max_pooling", [](X x) { return max(sliding_window(x[0], 2, 2, 2), {-1}); }},

    {"gather", [](X x) { return gather(x[0], x[1], 1); }},
    {"gather_smaller", [](X x) { return gather(x[0], x[1], 0); }},
    {"take", [](X x) { return take(x[0], x[1]); }},
    {"take_plane", [](X x) { return take(x[0], x[1]); }},
    {"take_last", [](X x) { return take(x[0], x[1], -1); }},
    {"index_select", [](X x) { return index_select(x[0], x[1], 1); }},
    {"scatter", [](X x) { return scatter(x[0], x[1], x[2], 1); }},
    {"scatter_add", [](X x) { return scatter_add(x[0], x[1], x[2], 0); }},
    {"scatter_add_last", [](X x) { return scatter_add(x[0], x[1], x[2], -1); }},
    {"index_put", [](X x) { return index_put(x[0], {x[1]}, x[2]); }},
    {"index_put_pairs", [](X x) { return index_put(x[0], {x[1], x[2]}, x[3]); }},
    {"index_put_accumulate", [](X x) { return index_put(x[0], {x[1]}, x[2], true); }},
    {"index_put_broadcast", [](X x) { return index_put(x[0], {x[1], x[2]}, x[3]); }},
    {"dynamic_slice", [](X x) { return dynamic_slice(x[0], x[1], 0, 3); }},
    {"dynamic_update_slice", [](X x) { return dynamic_update_slice(x[0], x[1], x[2], 1); }},
    {"nonzero", [](X x) { return nonzero(x[0]); }},
  };
}
// clang-format on

}  // namespace tessera::golden
