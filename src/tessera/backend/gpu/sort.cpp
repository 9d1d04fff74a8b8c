// sort: x (R…, C) -> values (R…, C), indices (R…, C); topk: the first K of them.
//
// Every row is merged from runs of 1, 2, 4, … elements. An element's place in the merged run is its
// place in its own run and how many of the other run come before it, which a binary search finds:
// no work item waits for another. Of equal elements those of the left run come first, so the order
// is stable.
#include <utility>

#include "tessera/backend/gpu/named_kernel.h"

namespace tessera::gpu {

namespace {

constexpr std::string_view kText = R"(
DEVICE bool is_less($T a, $T b) { return a < b || (a == a && b != b); }
DEVICE bool comes_before($T a, $T b) { return $falling ? is_less(b, a) : is_less(a, b); }

KERNEL tessera_sort_load(GLOBAL const $S* x, i64 x_start, GLOBAL $S* values,
                                i64 values_start, GLOBAL i32* indices, i64 indices_start,
                                i64 count, i64 columns, i64 step, Axes extents, Axes strides) {
  const i64 point = POINT, column = point % columns;
  if (point >= count) return;
  i64 row = point / columns;
  x += x_start;
  for (i32 d = 7; d >= 0; --d) {
    x += row % extents.at[d] * strides.at[d];
    row /= extents.at[d];
  }
  values[values_start + point] = x[column * step];
  indices[indices_start + point] = (i32)column;
}

KERNEL tessera_sort_merge(GLOBAL const $S* from, i64 from_start,
                                 GLOBAL const i32* from_indices, i64 from_indices_start,
                                 GLOBAL $S* to, i64 to_start, GLOBAL i32* to_indices,
                                 i64 to_indices_start, i64 count, i64 columns, i64 run) {
  const i64 point = POINT, column = point % columns, row = point - column;
  if (point >= count) return;
  from += from_start;
  const bool is_left = column / run % 2 == 0;
  const i64 pair = column / (2 * run) * (2 * run);
  const i64 other = min(is_left ? pair + run : pair, columns);
  const i64 end = min(other + run, columns);
  const $T mine = LOAD(from[point]);
  i64 low = other, high = end;  // how many of the other run come first
  while (low < high) {
    const i64 middle = (low + high) / 2;
    const $T theirs = LOAD(from[row + middle]);
    const bool first = is_left ? comes_before(theirs, mine) : !comes_before(mine, theirs);
    low = first ? middle + 1 : low;
    high = first ? high : middle;
  }
  const i64 place = pair + (column - (is_left ? pair : pair + run)) + (low - other);
  to[to_start + row + place] = from[point];
  to_indices[to_indices_start + row + place] = from_indices[from_indices_start + point];
}

KERNEL tessera_sort_store(GLOBAL const $S* from, i64 from_start,
                                 GLOBAL const i32* from_indices, i64 from_indices_start,
                                 GLOBAL $S* values, i64 values_start, GLOBAL i64* indices,
                                 i64 indices_start, i64 count, i64 columns, i64 kept,
                                 i64 values_step, i64 indices_step, Axes extents,
                                 Axes values_strides, Axes indices_strides, i32 wanted) {
  const i64 point = POINT, column = point % kept;
  if (point >= count) return;
  i64 row = point / kept;
  const i64 source = row * columns + column;
  i64 value_at = column * values_step, index_at = column * indices_step;
  for (i32 d = 7; d >= 0; --d) {
    const i64 at = row % extents.at[d];
    row /= extents.at[d];
    value_at += at * values_strides.at[d];
    index_at += at * indices_strides.at[d];
  }
  if (wanted & 1) values[values_start + value_at] = from[from_start + source];
  if (wanted & 2) indices[indices_start + index_at] = from_indices[from_indices_start + source];
}
)";

Axes leading(const Dims& dims, int64_t otherwise) {
  Dims rows = dims;
  rows.erase(rows.rank() - 1);
  return axes_of(rows, otherwise);
}

class Sort : public GpuExecutable {
 public:
  Sort(Session& session, const KernelCall& call)
      : session_(session),
        call_(call),
        source_(complete_source(session, cat(kAxesText, kText), call.operands[0].dtype,
                                {{"$falling", call.attrs.axis == 1 ? "true" : "false"}})),
        load_(session.build(call.kernel, source_, "tessera_sort_load")),
        merge_(session.build(call.kernel, source_, "tessera_sort_merge")),
        store_(session.build(call.kernel, source_, "tessera_sort_store")),
        group_(group_size(session, 64)) {}

  void launch(std::span<const BufferRef> at, int64_t, Stream stream) const override {
    const View &x = call_.operands[0].view, &values = call_.operands[1].view,
               &indices = call_.operands[2].view;
    const int64_t count = numel(x.shape), columns = x.shape.back(), kept = values.shape.back();
    if (count == 0 || kept == 0) return;
    const int last = x.shape.rank() - 1;
    const int64_t size = size_of(call_.operands[0].dtype);
    // Two halves, each the values and behind them the indices, both aligned.
    const int64_t words = (count * size + 7) / 8 * 8;
    const int64_t half = words + (count * 4 + 7) / 8 * 8;
    void* const room = session_.workspace(stream, 2 * half);
    Operand from = {room, 0}, from_indices = {room, words / 4};
    Operand to = {room, half / size}, to_indices = {room, (half + words) / 4};
    (*load_)(stream, range_of(count, group_), operand(at[0], call_.operands[0]), from, from_indices,
             count, columns, x.strides[last], leading(x.shape, 1), leading(x.strides, 0));
    for (int64_t run = 1; run < columns; run *= 2) {
      (*merge_)(stream, range_of(count, group_), from, from_indices, to, to_indices, count, columns,
                run);
      std::swap(from, to);
      std::swap(from_indices, to_indices);
    }
    const int32_t wanted = (at[1].handle ? 1 : 0) | (at[2].handle ? 2 : 0);
    (*store_)(stream, range_of(numel(values.shape), group_), from, from_indices,
              operand(at[1], call_.operands[1]), operand(at[2], call_.operands[2]),
              numel(values.shape), columns, kept, values.strides[last], indices.strides[last],
              leading(values.shape, 1), leading(values.strides, 0), leading(indices.strides, 0),
              wanted);
  }

 private:
  Session& session_;
  const KernelCall call_;
  const std::string source_;
  std::unique_ptr<Kernel> load_, merge_, store_;
  int64_t group_;
};

}  // namespace

std::unique_ptr<GpuExecutable> make_sort(Session& session, const KernelCall& call) {
  const int64_t columns = call.operands[0].view.shape.back();
  if (columns > int64_t(1) << 31) {
    fail(call.kernel, ": ", session.device().name,
         " takes rows of at most 2147483648 elements, got ", columns);
  }
  return std::make_unique<Sort>(session, call);
}

}  // namespace tessera::gpu
