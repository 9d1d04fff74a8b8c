"""Other arrangements of the same elements, and places that data decide."""

import torch
import torch.nn.functional as F

from .registry import apart, case, coarse, constant, distinct, given, integers, real

case("reshape", [real(2, 6)], lambda x: x.reshape(3, 4))
case("reshape_inferred", [real(2, 3, 4)], lambda x: x.reshape(4, -1))
case("view", [real(2, 6)], lambda x: x.view(12))
case("reshape_of_transposed", [real(3, 4)], lambda x: x.T.reshape(2, 6))
case("flatten", [real(2, 3, 4)], torch.flatten)
case("flatten_some", [real(2, 3, 2, 2)], lambda x: torch.flatten(x, 1, 2))
case("permute", [real(2, 3, 4)], lambda x: x.permute(2, 0, 1))
case("transpose", [real(3, 4)], lambda x: x.transpose(-2, -1))
case("transpose_axes", [real(2, 3, 4)], lambda x: x.transpose(0, 2))
case("expand", [real(3, 1)], lambda x: x.expand(2, -1, 4))
case("broadcast_to", [real(4)], lambda x: torch.broadcast_to(x, (3, 4)))
case("squeeze", [real(1, 3, 1, 2)], torch.squeeze)
case("squeeze_axis", [real(1, 3, 1, 2)], lambda x: torch.squeeze(x, -2))
case("unsqueeze", [real(3, 2)], lambda x: [x.unsqueeze(0), x.unsqueeze(1), x.unsqueeze(-1)])

case("slice", [real(4, 6)], lambda x: x[:, 1:5])
case("slice_step", [real(4, 7)], lambda x: x[:, 1:7:3])
case("slice_negative_ends", [real(4, 6)], lambda x: x[-3:-1])
case("slice_beyond_end", [real(4, 6)], lambda x: x[:, 2:100])
case("slice_backwards", [real(4, 7)], lambda x: x[:, [5, 3, 1]])
case("index_position", [real(3, 4)], lambda x: x[1])
case("index_negative", [real(3, 4)], lambda x: x[:, -2])
case("index_mixed", [real(3, 4, 5)], lambda x: x[1, ::2, -3:])
case("index_ellipsis", [real(2, 3, 4)], lambda x: x[..., 1:3])
case("index_new_axis", [real(3, 4)], lambda x: x[:, None, 1:])
case("index_tensor", [real(4, 3), integers(5, below=4)], lambda x, i: x[i])
case("index_tensor_inside", [real(2, 4, 3), integers(2, 2, below=4)], lambda x, i: x[:, i])
case("index_backwards", [real(5)], lambda x: x[[4, 3, 2, 1, 0]])
case("flip", [real(3, 4)], lambda x: torch.flip(x, (1,)))
case("flip_axes", [real(2, 3, 2)], lambda x: torch.flip(x, (0, 2)))
case("roll", [real(3, 5)], lambda x: torch.roll(x, 2, 1))
case("roll_axes", [real(3, 5)], lambda x: torch.roll(x, (1, -7), (0, 1)))
case("pad", [real(2, 3)], lambda x: F.pad(x, (1, 2, 0, 1)))
case("pad_value", [real(2, 3)], lambda x: F.pad(x, (2, 0, 1, 1), value=-1.5))

case("concat", [real(2, 3), real(1, 3), real(3, 3)], lambda *x: torch.cat(x, 0))
case("concat_last", [real(2, 3), real(2, 1)], lambda *x: torch.cat(x, -1))
case("concat_twice_the_same", [real(2, 3)], lambda x: torch.cat([x, x], 1))
case("stack", [real(2, 3), real(2, 3)], lambda *x: torch.stack(x))
case("stack_last", [real(2, 3), real(2, 3), real(2, 3)], lambda *x: torch.stack(x, -1))
case("split", [real(7, 2)], lambda x: torch.split(x, 3))
case("split_sizes", [real(2, 6)], lambda x: torch.split(x, [1, 2, 3], 1))
case("chunk", [real(7, 2)], lambda x: torch.chunk(x, 3))
case("chunk_last", [real(2, 6)], lambda x: torch.chunk(x, 4, -1))
case("repeat", [real(2, 3)], lambda x: x.repeat(2, 1, 2))
case("tile", [real(2, 3)], lambda x: torch.tile(x, (2,)))
case("tile_more_axes", [real(3)], lambda x: torch.tile(x, (2, 2)))
case("repeat_interleave", [real(2, 3)], lambda x: torch.repeat_interleave(x, 2, 1))
case("diag_of_vector", [real(4)], torch.diag)
case("diag_of_vector_below", [real(3)], lambda x: torch.diag(x, -1))
case("diag_of_matrix", [real(4, 3)], torch.diag)
case("diag_of_matrix_above", [real(3, 5)], lambda x: torch.diag(x, 2))
case("tril", [real(4, 4)], torch.tril)
case("tril_above", [real(2, 3, 4)], lambda x: torch.tril(x, 1))
case("triu", [real(4, 4)], torch.triu)
case("triu_below", [real(2, 4, 3)], lambda x: torch.triu(x, -1))
case("sliding_window", [real(2, 7)], lambda x: x.unfold(1, 3, 1))
case("sliding_window_step", [real(8, 2)], lambda x: x.unfold(0, 3, 2))
case("sliding_window_apart", [real(2, 9)], lambda x: x.unfold(-1, 2, 3))
case("sliding_window_plane", [real(2, 4, 5)], lambda x: x.unfold(1, 2, 1).unfold(2, 3, 2))
case("convolution", [real(2, 3, 7), real(4, 3, 3), real(4)],
     lambda x, w, b: F.conv1d(x, w, b, stride=2))
case("convolution_plane", [real(1, 2, 4, 5), real(3, 2, 2, 3)], lambda x, w: F.conv2d(x, w))
case("max_pooling", [apart(2, 3, 8)], lambda x: F.max_pool1d(x, 2))

case("gather", [real(3, 4), integers(3, 5, below=4)], lambda x, i: torch.gather(x, 1, i))
case("gather_smaller", [real(4, 5), integers(2, 3, below=4)], lambda x, i: torch.gather(x, 0, i))
case("take", [real(5, 3), integers(4, below=5)], lambda x, i: x[i])
case("take_plane", [real(5, 3), integers(2, 3, below=5)], lambda x, i: F.embedding(i, x))
case("take_last", [real(3, 5), integers(2, 2, below=5)], lambda x, i: x[:, i])
case("index_select", [real(3, 5), integers(4, below=5)], lambda x, i: torch.index_select(x, 1, i))
case("scatter", [real(3, 5), distinct(3, 2, below=5), real(3, 2)],
     lambda x, i, s: torch.scatter(x, 1, i, s))
case("scatter_add", [real(4, 3), integers(6, 3, below=4), real(6, 3)],
     lambda x, i, s: torch.scatter_add(x, 0, i, s))
case("scatter_add_last", [real(2, 4), integers(2, 7, below=4), real(2, 7)],
     lambda x, i, s: torch.scatter_add(x, -1, i, s))
case("index_put", [real(4, 3), distinct(2, below=4), real(2, 3)],
     lambda x, i, v: torch.index_put(x, (i,), v))
case("index_put_pairs", [real(3, 4), distinct(3, below=3), integers(3, below=4), real(3)],
     lambda x, i, j, v: torch.index_put(x, (i, j), v))
case("index_put_accumulate", [real(3, 4), integers(6, below=3), real(6, 4)],
     lambda x, i, v: torch.index_put(x, (i,), v, accumulate=True))
case("index_put_broadcast", [real(3, 4, 2), given([0, 2], "i64", (2, 1)),
                             given([1, 3], "i64"), real(2)],
     lambda x, i, j, v: torch.index_put(x, (i, j), v))
case("dynamic_slice", [real(6, 3), given([2], "i64", ())],
     lambda x, start: torch.narrow(x, 0, int(start), 3))
case("dynamic_update_slice", [real(3, 6), real(3, 2), given([3], "i64", ())],
     lambda x, u, start: torch.slice_scatter(x, u, 1, int(start), int(start) + 2))
case("nonzero", [constant(coarse(3, 4))], torch.nonzero)
