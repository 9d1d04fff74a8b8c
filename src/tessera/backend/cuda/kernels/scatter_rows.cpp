// Positions are sorted by their index, stably, eight bits at a time; then every row of y adds up
// its sources in the order of their positions, in f32, and is written once. So results repeat bit
// by bit, whatever order the card works in.
//
// A warp takes a row's next columns. Rows with many sources would keep it busy for long: of every
// 64 neighbours in sorted order that go to one row, a kernel before makes one partial sum.
#include "tessera/backend/cuda/kernels/scatter_rows.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "tessera/backend/gpu/named_kernel.h"
#include "tessera/codegen/text.h"

namespace tessera::cuda {

namespace {

constexpr std::string_view kSort = R"(
#define WARP 32
#define LANES 256
#define DIGITS 256
#define ITEMS 8
#define WARPS (LANES / WARP)
#define TILE (LANES * ITEMS)
#define ALL 0xffffffffu

// How often each digit occurs in each tile: counts (tiles, DIGITS). The first turn reads the index
// itself, and clears the bounds; an index out of range is sorted behind all others.
KERNEL_OF(LANES)
tessera_rows_count(const $I* index, i64 step, u32* keys, u32* counts, i32* bounds, i64 count,
                   i64 limit, i32 shift, i32* error) {
  SHARED u32 seen[DIGITS];
  seen[LANE] = 0;
  BARRIER;
  const i64 begin = (i64)GROUP * TILE, end = min(begin + TILE, count);
  for (i64 p = begin + LANE; p < end; p += LANES) {
    if (shift == 0) {
      const i64 at = (i64)index[p * step];
      const bool fits = at >= 0 && at < limit;
      if (!fits) *error = 1;
      keys[p] = (u32)(fits ? at : limit);
    }
    atomicAdd(&seen[keys[p] >> shift & (DIGITS - 1)], 1u);
  }
  if (shift == 0) {
    for (i64 i = POINT; i < 2 * (limit + 1); i += (i64)gridDim.x * LANES) bounds[i] = 0;
  }
  BARRIER;
  counts[(i64)GROUP * DIGITS + LANE] = seen[LANE];
}

// A key's place: behind all of smaller digits, behind those of its digit in tiles before, in warps
// before, and in its own warp before.
KERNEL_OF(LANES)
tessera_rows_place(const u32* keys, const i32* positions, const u32* counts, u32* new_keys,
                   i32* new_positions, i64 count, i32 shift) {
  SHARED u32 seen[WARPS][DIGITS];
  SHARED u32 sums[DIGITS];
  const i32 lane = LANE % WARP, warp = LANE / WARP;
  for (i32 w = 0; w < WARPS; ++w) seen[w][LANE] = 0;
  u32 total = 0, before = 0;
  for (i64 tile = 0; tile < gridDim.x; ++tile) {
    const u32 here = counts[tile * DIGITS + LANE];
    before += tile < GROUP ? here : 0;
    total += here;
  }
  sums[LANE] = total;
  BARRIER;
  for (i32 reach = 1; reach < DIGITS; reach *= 2) {
    const u32 left = LANE >= reach ? sums[LANE - reach] : 0;
    BARRIER;
    sums[LANE] += left;
    BARRIER;
  }
  const u32 first = sums[LANE] - total + before;  // of the digit LANE in this tile

  const i64 begin = (i64)GROUP * TILE + warp * WARP * ITEMS;
  u32 key[ITEMS], rank[ITEMS];
#pragma unroll
  for (i32 i = 0; i < ITEMS; ++i) {
    const i64 p = begin + i * WARP + lane;
    const bool is_one = p < count;
    key[i] = is_one ? keys[p] : 0;
    const u32 digit = is_one ? key[i] >> shift & (DIGITS - 1) : DIGITS;
    const u32 equals = __match_any_sync(ALL, digit);
    const u32 left = __popc(equals & ((1u << lane) - 1));
    rank[i] = is_one ? seen[warp][digit] + left : 0;
    __syncwarp();
    if (is_one && left == 0) seen[warp][digit] += __popc(equals);
    __syncwarp();
  }
  BARRIER;
  u32 next = first;
  for (i32 w = 0; w < WARPS; ++w) {
    const u32 here = seen[w][LANE];
    seen[w][LANE] = next;
    next += here;
  }
  BARRIER;
#pragma unroll
  for (i32 i = 0; i < ITEMS; ++i) {
    const i64 p = begin + i * WARP + lane;
    if (p >= count) continue;
    const u32 to = seen[warp][key[i] >> shift & (DIGITS - 1)] + rank[i];
    new_keys[to] = key[i];
    new_positions[to] = positions == nullptr ? (i32)p : positions[p];
  }
}

// Where each row's sources begin and end: bounds (limit + 1, 2); both 0 where it has none.
KERNEL_OF(LANES) tessera_rows_bounds(const u32* keys, i32* bounds, i64 count) {
  const i64 p = POINT;
  if (p >= count) return;
  const u32 key = keys[p];
  if (p == 0 || keys[p - 1] != key) bounds[2 * (i64)key] = (i32)p;
  if (p == count - 1 || keys[p + 1] != key) bounds[2 * (i64)key + 1] = (i32)(p + 1);
}
)";

constexpr std::string_view kSums = R"(
#define VECTOR $vector
#define CHUNK $chunk
#define AHEAD 4
struct alignas(VECTOR * sizeof($S)) Part { $S v[VECTOR]; };
struct Sum { $T v[VECTOR]; };

// Adds the sources from `begin` to `end`, in their order.
DEVICE void add_sources(Sum& sum, const $S* src, i64 step, const i32* positions, i64 begin,
                        i64 end) {
  i64 p = begin;
  for (; p + AHEAD <= end; p += AHEAD) {
    Part ahead[AHEAD];
#pragma unroll
    for (i32 k = 0; k < AHEAD; ++k) {
      ahead[k] = *reinterpret_cast<const Part*>(src + positions[p + k] * step);
    }
#pragma unroll
    for (i32 k = 0; k < AHEAD; ++k) {
#pragma unroll
      for (i32 i = 0; i < VECTOR; ++i) sum.v[i] += LOAD(ahead[k].v[i]);
    }
  }
  for (; p < end; ++p) {
    const Part part = *reinterpret_cast<const Part*>(src + positions[p] * step);
#pragma unroll
    for (i32 i = 0; i < VECTOR; ++i) sum.v[i] += LOAD(part.v[i]);
  }
}

// partial (chunks, columns); those that go to several rows are left alone.
KERNEL_OF(LANES)
tessera_rows_chunks(const $S* src, i64 step, const u32* keys, const i32* positions, $T* partial,
                    i64 chunks, i64 columns) {
  const i64 blocks = (columns + WARP * VECTOR - 1) / (WARP * VECTOR), unit = POINT / WARP;
  const i64 chunk = unit / blocks, column = (unit % blocks * WARP + LANE % WARP) * VECTOR;
  if (chunk >= chunks || column >= columns) return;
  const i64 begin = chunk * CHUNK;
  if (keys[begin] != keys[begin + CHUNK - 1]) return;
  Sum sum = {};
  add_sources(sum, src + column, step, positions, begin, begin + CHUNK);
#pragma unroll
  for (i32 i = 0; i < VECTOR; ++i) partial[chunk * columns + column + i] = sum.v[i];
}

KERNEL_OF(LANES)
tessera_rows_sum(const $S* x, i64 x_step, i64 x_inner, const $S* src, i64 step,
                 const i32* positions, const i32* bounds, const $T* partial, $S* y, i64 y_step,
                 i64 rows, i64 columns) {
  const i64 blocks = (columns + WARP * VECTOR - 1) / (WARP * VECTOR), unit = POINT / WARP;
  const i64 row = unit / blocks, column = (unit % blocks * WARP + LANE % WARP) * VECTOR;
  if (row >= rows || column >= columns) return;
  const i64 begin = bounds[2 * row], end = bounds[2 * row + 1];
  Sum sum;
#pragma unroll
  for (i32 i = 0; i < VECTOR; ++i) sum.v[i] = LOAD(x[row * x_step + (column + i) * x_inner]);
  // The chunks that lie within, and what is left before and behind.
  const i64 low = (begin + CHUNK - 1) / CHUNK, high = end / CHUNK;
  if (low >= high) {
    add_sources(sum, src + column, step, positions, begin, end);
  } else {
    add_sources(sum, src + column, step, positions, begin, low * CHUNK);
    for (i64 chunk = low; chunk < high; ++chunk) {
#pragma unroll
      for (i32 i = 0; i < VECTOR; ++i) sum.v[i] += partial[chunk * columns + column + i];
    }
    add_sources(sum, src + column, step, positions, high * CHUNK, end);
  }
  Part part;
#pragma unroll
  for (i32 i = 0; i < VECTOR; ++i) part.v[i] = STORE(sum.v[i]);
  *reinterpret_cast<Part*>(y + row * y_step + column) = part;
}
)";

constexpr int64_t kLanes = 256, kDigits = 256, kItems = 8, kTile = kLanes * kItems, kWarp = 32;
constexpr int64_t kChunk = 64, kLargest = std::numeric_limits<int32_t>::max() - kTile;

// The call as rows.
struct Rows {
  int64_t count = 0, limit = 0, columns = 1;  // sources, rows of y, and their length
  int64_t index_step = 0, src_step = 0, y_step = 0, x_step = 0, x_inner = 0;
  int vector = 1;
};

// The step between rows along the axis 0, where everything behind it lies together.
std::optional<int64_t> outer_step(const View& view) {
  int64_t expected = 1;
  for (int i = view.shape.rank() - 1; i > 0; --i) {
    if (view.shape[i] != 1 && view.strides[i] != expected) return {};
    expected *= view.shape[i];
  }
  return view.strides[0];
}

bool is_spread(const View& view) {  // the same all along a row
  for (int i = 1; i < view.shape.rank(); ++i) {
    if (view.shape[i] != 1 && view.strides[i] != 0) return false;
  }
  return true;
}

std::optional<Rows> as_rows(const KernelCall& call) {
  if (call.kernel != "scatter_add" || call.operands.size() != 4 || call.attrs.axis != 0) return {};
  const View &x = call.operands[0].view, &index = call.operands[1].view,
             &src = call.operands[2].view, &y = call.operands[3].view;
  const DType dtype = call.operands[3].dtype;
  const std::optional<int64_t> src_step = outer_step(src), y_step = outer_step(y);
  const bool x_spread = is_spread(x);
  if (!is_float(dtype) || !is_spread(index) || !src_step || !y_step) return {};
  if (!x_spread && !outer_step(x)) return {};
  Rows rows;
  rows.count = src.shape[0];
  rows.limit = y.shape[0];
  if (rows.count == 0 || numel(y.shape) == 0) return {};
  if (rows.count > kLargest || rows.limit > kLargest) return {};
  rows.columns = numel(y.shape) / rows.limit;
  rows.index_step = index.strides[0];
  rows.src_step = *src_step;
  rows.y_step = *y_step;
  rows.x_step = x.strides[0];
  rows.x_inner = x_spread ? 0 : 1;
  for (rows.vector = 16 / int(size_of(dtype)); rows.vector > 1; rows.vector /= 2) {
    int64_t all = rows.columns | rows.src_step | rows.y_step | src.offset | y.offset;
    if (all % rows.vector == 0) break;
  }
  return rows;
}

class ScatterRows : public gpu::GpuExecutable {
 public:
  ScatterRows(gpu::Session& session, const KernelCall& call, const Rows& rows)
      : session_(session), call_(call), rows_(rows) {
    const std::string source =
        gpu::complete_source(session, cat(kSort, kSums), call.operands[3].dtype,
                             {{"$vector", cat(rows.vector)},
                              {"$chunk", cat(kChunk)},
                              {"$I", std::string(storage_type(call.operands[1].dtype))}});
    const char* const names[] = {"count", "place", "bounds", "chunks", "sum"};
    for (size_t i = 0; i < kernels_.size(); ++i) {
      kernels_[i] = session.build(call.kernel, source, cat("tessera_rows_", names[i]));
    }
    check_ = session.make_check(call.kernel, "an index is", cat("[0, ", rows.limit, ")"));
  }

  void launch(std::span<const BufferRef> at, int64_t, Stream stream) const override {
    const auto& [count, place, bounds, chunks, sum] = kernels_;
    std::byte* p[4];
    for (size_t i = 0; i < 4; ++i) {
      const gpu::Operand operand = gpu::operand(at[i], call_.operands[i]);
      p[i] =
          static_cast<std::byte*>(operand.mem) + operand.start * size_of(call_.operands[i].dtype);
    }
    const Room room = take_room(stream);
    const gpu::Range tiles = gpu::range_of((rows_.count + kItems - 1) / kItems, kLanes);
    std::byte *keys = room.keys[0], *next_keys = room.keys[1];
    std::byte *positions = nullptr, *next_positions = room.positions[0];
    for (int32_t shift = 0; shift == 0 || rows_.limit >> shift != 0; shift += 8) {
      (*count)(stream, tiles, p[1], rows_.index_step, keys, room.counts, room.bounds, rows_.count,
               rows_.limit, shift, check_->flag);
      (*place)(stream, tiles, keys, positions, room.counts, next_keys, next_positions, rows_.count,
               shift);
      std::swap(keys, next_keys);
      positions = next_positions;
      next_positions = room.positions[positions == room.positions[0] ? 1 : 0];
    }
    session_.watch(stream, check_);
    (*bounds)(stream, gpu::range_of(rows_.count, kLanes), keys, room.bounds, rows_.count);
    const int64_t blocks = (rows_.columns + kWarp * rows_.vector - 1) / (kWarp * rows_.vector);
    const int64_t whole = rows_.count / kChunk;
    (*chunks)(stream, gpu::range_of(whole * blocks * kWarp, kLanes), p[2], rows_.src_step, keys,
              positions, room.partial, whole, rows_.columns);
    (*sum)(stream, gpu::range_of(rows_.limit * blocks * kWarp, kLanes), p[0], rows_.x_step,
           rows_.x_inner, p[2], rows_.src_step, positions, room.bounds, room.partial, p[3],
           rows_.y_step, rows_.limit, rows_.columns);
  }

 private:
  struct Room {
    std::byte *keys[2], *positions[2], *counts, *bounds, *partial;
  };

  Room take_room(Stream stream) const {
    constexpr int64_t kAlign = 256;
    const int64_t tiles = (rows_.count + kTile - 1) / kTile;
    const int64_t wide = size_of(compute_type(call_.operands[3].dtype));
    const int64_t bytes[] = {rows_.count * 4,
                             rows_.count * 4,
                             rows_.count * 4,
                             rows_.count * 4,
                             tiles * kDigits * 4,
                             2 * (rows_.limit + 1) * 4,
                             rows_.count / kChunk * rows_.columns * wide};
    int64_t start[std::size(bytes) + 1] = {};
    for (size_t i = 0; i < std::size(bytes); ++i) {
      start[i + 1] = start[i] + (bytes[i] + kAlign - 1) / kAlign * kAlign;
    }
    auto* const room = static_cast<std::byte*>(session_.workspace(stream, start[std::size(bytes)]));
    return {{room, room + start[1]},
            {room + start[2], room + start[3]},
            room + start[4],
            room + start[5],
            room + start[6]};
  }

  gpu::Session& session_;
  const KernelCall call_;
  const Rows rows_;
  std::array<std::unique_ptr<gpu::Kernel>, 5> kernels_;
  std::shared_ptr<const gpu::IndexCheck> check_;
};

}  // namespace

std::unique_ptr<gpu::GpuExecutable> make_scatter_rows(gpu::Session& session,
                                                      const KernelCall& call) {
  const std::optional<Rows> rows = as_rows(call);
  if (!rows) return nullptr;
  return std::make_unique<ScatterRows>(session, call, *rows);
}

}  // namespace tessera::cuda
