// With n = (x − mean) · rstd and h = g · gamma:
//
//   dx = rstd · (h − Σh/C − n · Σ(h·n)/C),  dgamma = Σ_rows g·n,  dbeta = Σ_rows g.
//
// A team of lanes, few elements each, takes row after row and keeps it in registers, so that x and
// g are read once and dx is written once. What its rows add to dgamma and dbeta stays there too; at
// the end each group leaves one partial sum per column, and a second kernel adds up the groups' in
// their order. Rows too long for registers are read twice, and their columns are summed by a kernel
// of their own.
#include "tessera/backend/cuda/kernels/layer_norm_backward.h"

#include <algorithm>
#include <numeric>

#include "tessera/backend/gpu/named_kernel.h"

namespace tessera::cuda {

namespace {

constexpr std::string_view kSums = R"(
#define WARP 32
// The sum over the team, in every lane of it.
DEVICE $T team_sum($T value, $T* room) {
  for (i32 step = WARP / 2; step > 0; step /= 2) {
    value += __shfl_xor_sync(0xffffffffu, value, step, WARP);
  }
#if $team > WARP
  BARRIER;  // room may still be read
  if (LANE % WARP == 0) room[LANE / WARP] = value;
  BARRIER;
  value = 0;
  for (i32 i = 0; i < $team / WARP; ++i) value += room[i];
#endif
  return value;
}
)";

constexpr std::string_view kHeld = R"(
#define COLUMNS $columns
#define PARTS (COLUMNS / $vector)
#define TEAMS ($lanes / $team)
#define WARPS ($team / WARP)
struct alignas($vector * sizeof($S)) Part { $S v[$vector]; };

KERNEL_OF($lanes)
tessera_layer_norm_backward(const $S* g, const $S* x, const $S* gamma, const $T* mean,
                            const $T* rstd, $S* dx, $T* partial, i64 rows) {
  SHARED $T room[2][2][$lanes / WARP];  // used in turns, so that one barrier a row is enough
  const i32 lane = LANE % $team, team = LANE / $team;
  Part scale[$vectors];
  $T to_gamma[$vectors][$vector], to_beta[$vectors][$vector];
#pragma unroll
  for (i32 e = 0; e < $vectors; ++e) {
    if (lane + e * $team < PARTS) scale[e] = ((const Part*)gamma)[lane + e * $team];
#pragma unroll
    for (i32 i = 0; i < $vector; ++i) {
      to_gamma[e][i] = 0;
      to_beta[e][i] = 0;
    }
  }
  i32 turn = 0;
  for (i64 first = (i64)GROUP * TEAMS; first < rows; first += (i64)gridDim.x * TEAMS, turn ^= 1) {
    // A team without a row goes along, because all meet at the barrier.
    const bool is_mine = first + team < rows;
    const i64 row = is_mine ? first + team : rows - 1;
    const $T center = mean[row], factor = rstd[row];
    Part gs[$vectors], xs[$vectors];
#pragma unroll
    for (i32 e = 0; e < $vectors; ++e) {
      if (lane + e * $team >= PARTS) continue;
      gs[e] = ((const Part*)g)[row * PARTS + lane + e * $team];
      xs[e] = ((const Part*)x)[row * PARTS + lane + e * $team];
    }
    $T along = 0, across = 0;
#pragma unroll
    for (i32 e = 0; e < $vectors; ++e) {
      if (lane + e * $team >= PARTS) continue;
#pragma unroll
      for (i32 i = 0; i < $vector; ++i) {
        const $T slope = is_mine ? LOAD(gs[e].v[i]) : 0;
        const $T n = (LOAD(xs[e].v[i]) - center) * factor, h = slope * LOAD(scale[e].v[i]);
        along += h;
        across += h * n;
        to_gamma[e][i] += slope * n;
        to_beta[e][i] += slope;
      }
    }
#pragma unroll
    for (i32 step = WARP / 2; step > 0; step /= 2) {
      along += __shfl_xor_sync(0xffffffffu, along, step, WARP);
      across += __shfl_xor_sync(0xffffffffu, across, step, WARP);
    }
#if WARPS > 1
    if (LANE % WARP == 0) {
      room[turn][0][LANE / WARP] = along;
      room[turn][1][LANE / WARP] = across;
    }
    BARRIER;
    along = across = 0;
#pragma unroll
    for (i32 i = 0; i < WARPS; ++i) {
      along += room[turn][0][team * WARPS + i];
      across += room[turn][1][team * WARPS + i];
    }
#endif
    if (dx == nullptr || !is_mine) continue;
    along /= COLUMNS;
    across /= COLUMNS;
#pragma unroll
    for (i32 e = 0; e < $vectors; ++e) {
      if (lane + e * $team >= PARTS) continue;
      Part part;
#pragma unroll
      for (i32 i = 0; i < $vector; ++i) {
        const $T n = (LOAD(xs[e].v[i]) - center) * factor;
        const $T h = LOAD(gs[e].v[i]) * LOAD(scale[e].v[i]);
        const $T value = factor * (h - along - n * across);
        part.v[i] = STORE(value);
      }
      ((Part*)dx)[row * PARTS + lane + e * $team] = part;
    }
  }
  partial += (i64)GROUP * 2 * COLUMNS;
#if TEAMS > 1
  SHARED $T sums[2 * COLUMNS];  // the teams', one after the other
#else
  $T* const sums = partial;
#endif
  for (i32 at = 0; at < TEAMS; ++at) {
    BARRIER;
    if (at != team) continue;
#pragma unroll
    for (i32 e = 0; e < $vectors; ++e) {
      if (lane + e * $team >= PARTS) continue;
#pragma unroll
      for (i32 i = 0; i < $vector; ++i) {
        const i32 column = (lane + e * $team) * $vector + i;
        sums[column] = (at == 0 ? 0 : sums[column]) + to_gamma[e][i];
        sums[COLUMNS + column] = (at == 0 ? 0 : sums[COLUMNS + column]) + to_beta[e][i];
      }
    }
  }
#if TEAMS > 1
  BARRIER;
  for (i32 i = LANE; i < 2 * COLUMNS; i += $lanes) partial[i] = sums[i];
#endif
}
)";

constexpr std::string_view kLong = R"(
KERNEL_OF($lanes)
tessera_layer_norm_backward(const $S* g, const $S* x, const $S* gamma, const $T* mean,
                            const $T* rstd, $S* dx, i64 columns) {
  SHARED $T room[$team / WARP];
  const i64 row = GROUP;
  g += row * columns;
  x += row * columns;
  dx += row * columns;
  const $T center = mean[row], factor = rstd[row];
  $T along = 0, across = 0;
  for (i64 i = LANE; i < columns; i += $lanes) {
    const $T h = LOAD(g[i]) * LOAD(gamma[i]);
    along += h;
    across += h * ((LOAD(x[i]) - center) * factor);
  }
  along = team_sum(along, room) / columns;
  across = team_sum(across, room) / columns;
  for (i64 i = LANE; i < columns; i += $lanes) {
    const $T n = (LOAD(x[i]) - center) * factor;
    const $T value = factor * (LOAD(g[i]) * LOAD(gamma[i]) - along - n * across);
    dx[i] = STORE(value);
  }
}

// Groups of 32 columns by slices of the rows.
KERNEL_OF(32 * $slices)
tessera_layer_norm_columns(const $S* g, const $S* x, const $T* mean, const $T* rstd, $T* partial,
                           i64 rows, i64 columns, i64 blocks) {
  SHARED $T sums[2][$slices][32];
  const i32 lane = LANE % 32, slice = LANE / 32;
  const i64 column = (i64)GROUP % blocks * 32 + lane, part = (i64)GROUP / blocks;
  const i64 parts = gridDim.x / blocks;
  $T to_gamma = 0, to_beta = 0;
  for (i64 row = part * $slices + slice; row < rows && column < columns; row += parts * $slices) {
    const $T slope = LOAD(g[row * columns + column]);
    to_gamma += slope * ((LOAD(x[row * columns + column]) - mean[row]) * rstd[row]);
    to_beta += slope;
  }
  sums[0][slice][lane] = to_gamma;
  sums[1][slice][lane] = to_beta;
  BARRIER;
  if (slice >= 2 || column >= columns) return;
  $T sum = 0;
  for (i32 i = 0; i < $slices; ++i) sum += sums[slice][i][lane];
  partial[(part * 2 + slice) * columns + column] = sum;
}
)";

// Groups of 32 columns; slices of the partial sums, then those.
constexpr std::string_view kFold = R"(
KERNEL_OF(32 * $slices)
tessera_layer_norm_fold(const $T* partial, $S* dgamma, $S* dbeta, i64 columns, i64 count) {
  SHARED $T sums[$slices][32];
  const i32 lane = LANE % 32, slice = LANE / 32;
  const i64 column = (i64)GROUP * 32 + lane;
  $T sum = 0;
  for (i64 i = slice; i < count && column < 2 * columns; i += $slices) {
    sum += partial[i * 2 * columns + column];
  }
  sums[slice][lane] = sum;
  BARRIER;
  if (slice != 0 || column >= 2 * columns) return;
  sum = 0;
  for (i32 i = 0; i < $slices; ++i) sum += sums[i][lane];
  if (column < columns) {
    if (dgamma != nullptr) dgamma[column] = STORE(sum);
  } else {
    if (dbeta != nullptr) dbeta[column - columns] = STORE(sum);
  }
}
)";

constexpr int kWarp = 32, kLanes = 384, kMostLanes = 512, kSlices = 32;

class LayerNormBackward : public gpu::GpuExecutable {
 public:
  LayerNormBackward(gpu::Session& session, const KernelCall& call)
      : session_(session), call_(call), plan_(plan_norm(columns(), dtype(), common_step())) {
    const std::string source =
        gpu::complete_source(session, cat(kSums, plan_.held ? kHeld : kLong, kFold), dtype(),
                             {{"$columns", cat(columns())},
                              {"$lanes", cat(plan_.lanes)},
                              {"$team", cat(plan_.team)},
                              {"$vectors", cat(plan_.vectors)},
                              {"$vector", cat(plan_.vector)},
                              {"$slices", cat(kSlices)}});
    rows_ = session.build(call.kernel, source, "tessera_layer_norm_backward");
    // Each group leaves partial sums: as few as keep the device busy.
    most_groups_ = rows_->groups_at_once(plan_.lanes) * session.device().compute_units;
    if (!plan_.held) columns_ = session.build(call.kernel, source, "tessera_layer_norm_columns");
    fold_ = session.build(call.kernel, source, "tessera_layer_norm_fold");
  }

  void launch(std::span<const BufferRef> at, int64_t, Stream stream) const override {
    std::byte* p[8];
    for (size_t i = 0; i < 8; ++i) {
      const gpu::Operand operand = gpu::operand(at[i], call_.operands[i]);
      p[i] = static_cast<std::byte*>(operand.mem);
      if (p[i] != nullptr) p[i] += operand.start * size_of(call_.operands[i].dtype);
    }
    const int64_t rows = numel(call_.operands[1].view.shape) / columns();
    const bool sums = p[6] != nullptr || p[7] != nullptr;
    const int64_t blocks = (columns() + 31) / 32;
    const int64_t teams = plan_.held ? plan_.lanes / plan_.team : kSlices;
    const int64_t wanted = (rows + teams - 1) / teams;
    const int64_t groups =
        std::min(wanted, plan_.held ? most_groups_ : std::max<int64_t>(1, most_groups_ / blocks));
    const int64_t bytes = groups * 2 * columns() * size_of(compute_type(dtype()));
    void* const partial = session_.workspace(stream, bytes);
    if (plan_.held) {
      (*rows_)(stream, groups_of(groups, plan_.lanes), p[0], p[1], p[2], p[3], p[4], p[5], partial,
               rows);
    } else {
      if (p[5] != nullptr) {
        (*rows_)(stream, groups_of(rows, plan_.lanes), p[0], p[1], p[2], p[3], p[4], p[5],
                 columns());
      }
      if (sums) {
        (*columns_)(stream, groups_of(groups * blocks, 32 * kSlices), p[0], p[1], p[3], p[4],
                    partial, rows, columns(), blocks);
      }
    }
    if (sums) {
      (*fold_)(stream, groups_of((2 * columns() + 31) / 32, 32 * kSlices), partial, p[6], p[7],
               columns(), groups);
    }
  }

 private:
  int64_t columns() const { return call_.operands[1].view.shape.back(); }
  DType dtype() const { return call_.operands[1].dtype; }
  // A packed view may start anywhere.
  int64_t common_step() const {
    int64_t step = 16;
    for (const size_t i : {0, 1, 2, 5}) step = std::gcd(step, call_.operands[i].view.offset);
    return step;
  }
  static gpu::Range groups_of(int64_t groups, int lanes) {
    gpu::Range range;
    range.group[0] = size_t(lanes);
    range.groups[0] = size_t(groups);
    return range;
  }

  gpu::Session& session_;
  const KernelCall call_;
  const NormPlan plan_;
  int64_t most_groups_ = 1;
  std::unique_ptr<gpu::Kernel> rows_, columns_, fold_;
};

}  // namespace

// The widest access that divides the row, and few elements a lane: their sums need registers.
NormPlan plan_norm(int64_t columns, DType dtype, int64_t step) {
  const int64_t most = dtype == DType::f64 ? 4 : 16;  // elements of a lane
  for (int vector = 16 / size_of(dtype); vector >= 1; vector /= 2) {
    if (columns % vector != 0 || step % vector != 0) continue;
    const int64_t parts = columns / vector, vectors = (parts + kMostLanes - 1) / kMostLanes;
    if (vectors * vector > most) break;
    const int64_t lanes = (parts + vectors - 1) / vectors;
    const int team = int((lanes + kWarp - 1) / kWarp * kWarp);
    return {team, team * std::max(1, kLanes / team), vector, int(vectors), true};
  }
  return {kLanes, kLanes, 1, 1, false};
}

std::unique_ptr<gpu::GpuExecutable> make_layer_norm_backward(gpu::Session& session,
                                                             const KernelCall& call) {
  if (call.operands.size() != 8) {
    fail("layer_norm_backward: expected 8 operands, got ", call.operands.size());
  }
  return std::make_unique<LayerNormBackward>(session, call);
}

}  // namespace tessera::cuda
