#include "tessera/backend/cuda/kernels/column_sums.h"

#include <algorithm>

#include "tessera/backend/gpu/chunks.h"
#include "tessera/backend/gpu/named_kernel.h"

namespace tessera::cuda {

namespace {

// For what is rounded to a half afterwards: two instructions of the card's own for exp and 1 / x.
// Beyond 100 the slope is 0 or 1, and squares stay finite.
constexpr std::string_view kHalfSlope = R"(
DEVICE f32 slope_of(f32 a) {
  const f32 x = t_maximum_f32(-100, t_minimum_f32(100, a)), square = x * x;
  const f32 power = t_near_exp(-x * (1.59576912f + 0.0713548163f * square));
  const f32 share = t_inverse_f32(1 + power), rise = x * (1.59576912f + 0.214064449f * square);
  return share + (share - share * share) * rise;
}
)";

constexpr std::string_view kSlope = R"(
DEVICE $T slope_of($T x) { return t_gelu_tanh_slope_$T(x); }
)";

// A group has WIDE lanes side by side, each with VECTOR columns, by TALL rows; groups that have the
// same columns take turns at the rows. Each leaves a partial sum of every column, and a second
// kernel adds up the groups' in their order. A lane reads HELD rows before it uses the first.
constexpr std::string_view kText = R"(
#define LANES $lanes
#define WIDE $wide
#define TALL (LANES / WIDE)
#define HELD $held
#define VECTOR $vector
#define HAS_SLOPE $slope
struct alignas(VECTOR * sizeof($S)) Part { $S v[VECTOR]; };
typedef struct {
  i64 rows, columns, blocks, row_step, column_step, beside_row, beside_column;
} Matrix;

KERNEL_OF(LANES)
tessera_column_parts($S* x, const $S* beside, $T* partial, $S* sums, Matrix m) {
  SHARED $T room[TALL][WIDE * VECTOR];
  const i32 lane = LANE % WIDE, slice = LANE / WIDE;
  const i64 first = (i64)GROUP % m.blocks * (WIDE * VECTOR), part = (i64)GROUP / m.blocks;
  const i64 column = first + lane * VECTOR, step = (i64)gridDim.x / m.blocks * TALL;
  $T totals[VECTOR];
#pragma unroll
  for (i32 i = 0; i < VECTOR; ++i) totals[i] = 0;
  x += column * m.column_step;
#if HAS_SLOPE
  beside += column * m.beside_column;
#endif
  const i64 end = column < m.columns ? m.rows : 0;
  for (i64 row = part * TALL + slice; row < end; row += HELD * step) {
    Part xs[HELD];
#if HAS_SLOPE
    Part at[HELD];
#endif
#pragma unroll
    for (i32 h = 0; h < HELD; ++h) {
      if (row + h * step >= end) continue;
      xs[h] = *(const Part*)(x + (row + h * step) * m.row_step);
#if HAS_SLOPE
      at[h] = *(const Part*)(beside + (row + h * step) * m.beside_row);
#endif
    }
#pragma unroll
    for (i32 h = 0; h < HELD; ++h) {
      if (row + h * step >= end) continue;
#pragma unroll
      for (i32 i = 0; i < VECTOR; ++i) {
        $T value = LOAD(xs[h].v[i]);
#if HAS_SLOPE
        value *= slope_of(LOAD(at[h].v[i]));
        xs[h].v[i] = STORE(value);
#endif
        totals[i] += value;
      }
#if HAS_SLOPE
      *(Part*)(x + (row + h * step) * m.row_step) = xs[h];
#endif
    }
  }
  if (sums == nullptr) return;
#pragma unroll
  for (i32 i = 0; i < VECTOR; ++i) room[slice][lane * VECTOR + i] = totals[i];
  BARRIER;
  for (i32 i = LANE; i < WIDE * VECTOR && first + i < m.columns; i += LANES) {
    $T total = 0;
#pragma unroll
    for (i32 s = 0; s < TALL; ++s) total += room[s][i];
    if (partial == nullptr) {
      sums[first + i] = STORE(total);
    } else {
      partial[part * m.columns + first + i] = total;
    }
  }
}

KERNEL_OF(LANES)
tessera_column_fold(const $T* partial, $S* sums, i64 columns, i64 parts) {
  SHARED $T room[TALL][WIDE];
  const i32 lane = LANE % WIDE, slice = LANE / WIDE;
  const i64 column = (i64)GROUP * WIDE + lane;
  $T total = 0;
#pragma unroll 4
  for (i64 part = slice; part < parts && column < columns; part += TALL) {
    total += partial[part * columns + column];
  }
  room[slice][lane] = total;
  BARRIER;
  if (slice != 0 || column >= columns) return;
  total = 0;
#pragma unroll
  for (i32 s = 0; s < TALL; ++s) total += room[s][lane];
  sums[column] = STORE(total);
}
)";

constexpr int64_t kLanes = 256, kWide = 32, kTall = kLanes / kWide;
constexpr int64_t kTurns = 4;  // groups in the place of one, so that late ones are short

int64_t divided(int64_t n, int64_t by) { return (n + by - 1) / by; }

}  // namespace

ColumnSums::ColumnSums(gpu::Session& session, const std::string& kernel, const OperandView& matrix,
                       const OperandView* beside)
    : session_(session), dtype_(matrix.dtype), held_(beside == nullptr ? 4 : 2) {
  const bool chunked = gpu::is_chunked(matrix.view, dtype_) &&
                       (beside == nullptr || gpu::is_chunked(beside->view, dtype_));
  const int64_t vector = chunked ? 16 / size_of(dtype_) : 1;
  const View& lies = beside != nullptr ? beside->view : matrix.view;
  const int64_t columns = matrix.view.shape[1];
  shape_ = {matrix.view.shape[0],
            columns,
            divided(columns, kWide * vector),
            matrix.view.strides[0],
            matrix.view.strides[1],
            lies.strides[0],
            lies.strides[1]};
  const std::string_view slope = beside == nullptr ? "" : is_half(dtype_) ? kHalfSlope : kSlope;
  source_ = gpu::complete_source(session, cat(slope, kText), dtype_,
                                 {{"$lanes", cat(kLanes)},
                                  {"$wide", cat(kWide)},
                                  {"$held", cat(held_)},
                                  {"$vector", cat(vector)},
                                  {"$slope", beside != nullptr ? "1" : "0"}});
  parts_ = session.build(kernel, source_, "tessera_column_parts");
  fold_ = session.build(kernel, source_, "tessera_column_fold");
  most_groups_ = kTurns * parts_->groups_at_once(kLanes) * session.device().compute_units;
}

void ColumnSums::operator()(Stream stream, void* matrix, const void* beside, void* sums) const {
  const int64_t most = divided(shape_.rows, kTall * held_);
  const int64_t wanted = most_groups_ / std::max<int64_t>(shape_.blocks, 1);
  const int64_t parts = std::max<int64_t>(std::min(wanted, most), 1);
  const int64_t bytes = parts * shape_.columns * size_of(compute_type(dtype_));
  const bool folds = parts > 1 && sums != nullptr;
  void* const partial = folds ? session_.workspace(stream, bytes) : nullptr;
  (*parts_)(stream, gpu::range_of(shape_.blocks * parts * kLanes, kLanes), matrix, beside, partial,
            sums, shape_);
  if (folds) {
    (*fold_)(stream, gpu::range_of(divided(shape_.columns, kWide) * kLanes, kLanes), partial, sums,
             shape_.columns, parts);
  }
}

}  // namespace tessera::cuda
