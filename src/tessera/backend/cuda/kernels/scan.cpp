// Lines along the axis are cut into segments where there are too few lines for the card. Then one
// kernel leaves the total of every segment, and the second begins each with the totals before it.
//
// Where neighbours along the axis lie together a group takes a segment, tile by tile, with the
// total so far carried on; else a lane does, and the lanes beside it take the lines beside.
#include "tessera/backend/cuda/kernels/scan.h"

#include <algorithm>

#include "tessera/backend/gpu/named_kernel.h"
#include "tessera/codegen/text.h"

namespace tessera::cuda {

namespace {

constexpr std::string_view kCommon = R"(
#define WARP 32
#define LANES 256
#define ALL 0xffffffffu
#define OP(a, b) ((a) $op (b))
#define NEUTRAL (($A)$neutral)
#define READ(x) $read
#define WRITE(x) $write

DEVICE i64 line_start(i64 line, const Axes& extents, const Axes& strides) {
  i64 start = 0;
  for (i32 d = 7; d >= 0; --d) {
    start += line % extents.at[d] * strides.at[d];
    line /= extents.at[d];
  }
  return start;
}
)";

constexpr std::string_view kGroups = R"(
#define VECTOR $vector
#define TILE (LANES * VECTOR)
struct alignas(VECTOR * sizeof($S)) Part { $S v[VECTOR]; };

// The lanes' totals up to each lane; `all` gets that of the group.
DEVICE $A scan_group($A value, $A& all, $A* room) {
  for (i32 step = 1; step < WARP; step *= 2) {
    const $A left = __shfl_up_sync(ALL, value, step, WARP);
    if (LANE % WARP >= step) value = OP(left, value);
  }
  BARRIER;  // room may still be read
  if (LANE % WARP == WARP - 1) room[LANE / WARP] = value;
  BARRIER;
  $A before = NEUTRAL;
  all = NEUTRAL;
  for (i32 i = 0; i < LANES / WARP; ++i) {
    if (i == LANE / WARP) before = all;
    all = OP(all, room[i]);
  }
  return OP(before, value);
}

// The part of a tile that is this lane's; behind the end there is what changes nothing.
DEVICE void load_part(const $S* x, i64 at, i64 end, $A* values) {
  if (at + VECTOR <= end) {
    const Part part = *reinterpret_cast<const Part*>(x + at);
#pragma unroll
    for (i32 i = 0; i < VECTOR; ++i) values[i] = READ(part.v[i]);
  } else {
#pragma unroll
    for (i32 i = 0; i < VECTOR; ++i) values[i] = at + i < end ? READ(x[at + i]) : NEUTRAL;
  }
}

KERNEL_OF(LANES)
tessera_scan_totals(const $S* x, $A* totals, i64 count, i64 span, i64 segments, Axes extents,
                    Axes strides) {
  SHARED $A room[WARP];
  const i64 line = GROUP / segments, segment = GROUP % segments;
  const i64 begin = segment * span, end = min(begin + span, count);
  x += line_start(line, extents, strides);
  $A total = NEUTRAL, all;
  for (i64 at = begin + (i64)LANE * VECTOR; at < end; at += TILE) {
    $A values[VECTOR];
    load_part(x, at, end, values);
#pragma unroll
    for (i32 i = 0; i < VECTOR; ++i) total = OP(total, values[i]);
  }
  scan_group(total, all, room);
  if (LANE == 0) totals[GROUP] = all;
}

KERNEL_OF(LANES)
tessera_scan(const $S* x, const $A* totals, $S* y, i64 count, i64 span, i64 segments, Axes extents,
             Axes strides, Axes y_strides) {
  SHARED $A room[WARP];
  const i64 line = GROUP / segments, segment = GROUP % segments;
  const i64 begin = segment * span, end = min(begin + span, count);
  x += line_start(line, extents, strides);
  y += line_start(line, extents, y_strides);
  $A carry = NEUTRAL, all;
  for (i64 i = LANE; i < segment; i += LANES) carry = OP(carry, totals[line * segments + i]);
  scan_group(carry, all, room);
  carry = all;
  $A next[VECTOR];
  load_part(x, begin + (i64)LANE * VECTOR, end, next);
  for (i64 tile = begin; tile < end; tile += TILE) {
    const i64 at = tile + (i64)LANE * VECTOR;
    $A values[VECTOR];
#pragma unroll
    for (i32 i = 0; i < VECTOR; ++i) values[i] = i == 0 ? next[0] : OP(values[i - 1], next[i]);
    load_part(x, at + TILE, end, next);
    // What lies before this lane: the scan of the lane to its left.
    const $A upto = scan_group(values[VECTOR - 1], all, room);
    $A before = __shfl_up_sync(ALL, upto, 1, WARP);
    if (LANE % WARP == 0) {
      before = NEUTRAL;
      for (i32 i = 0; i < LANE / WARP; ++i) before = OP(before, room[i]);
    }
    before = OP(carry, before);
    carry = OP(carry, all);
    Part part;
#pragma unroll
    for (i32 i = 0; i < VECTOR; ++i) {
      const $A value = OP(before, values[i]);
      part.v[i] = WRITE(value);
    }
    if (at + VECTOR <= end) {
      *reinterpret_cast<Part*>(y + at) = part;
    } else {
      for (i32 i = 0; i < VECTOR; ++i) {
        if (at + i < end) y[at + i] = part.v[i];
      }
    }
  }
}
)";

constexpr std::string_view kLines = R"(
#define AHEAD 8
KERNEL_OF(LANES)
tessera_scan_totals(const $S* x, $A* totals, i64 count, i64 span, i64 segments, Axes extents,
                    Axes strides, i64 lines, i64 step) {
  const i64 item = POINT, line = item % lines, segment = item / lines;
  if (segment >= segments) return;
  x += line_start(line, extents, strides);
  const i64 end = min((segment + 1) * span, count);
  $A total = NEUTRAL;
  for (i64 i = segment * span; i < end; ++i) total = OP(total, READ(x[i * step]));
  totals[item] = total;
}

KERNEL_OF(LANES)
tessera_scan(const $S* x, const $A* totals, $S* y, i64 count, i64 span, i64 segments, Axes extents,
             Axes strides, Axes y_strides, i64 lines, i64 step, i64 y_step) {
  const i64 item = POINT, line = item % lines, segment = item / lines;
  if (segment >= segments) return;
  x += line_start(line, extents, strides);
  y += line_start(line, extents, y_strides);
  const i64 end = min((segment + 1) * span, count);
  $A total = NEUTRAL;
  for (i64 i = 0; i < segment; ++i) total = OP(total, totals[i * lines + line]);
  i64 i = segment * span;
  for (; i + AHEAD <= end; i += AHEAD) {
    $S ahead[AHEAD];
#pragma unroll
    for (i32 k = 0; k < AHEAD; ++k) ahead[k] = x[(i + k) * step];
#pragma unroll
    for (i32 k = 0; k < AHEAD; ++k) {
      total = OP(total, READ(ahead[k]));
      y[(i + k) * y_step] = WRITE(total);
    }
  }
  for (; i < end; ++i) {
    total = OP(total, READ(x[i * step]));
    y[i * y_step] = WRITE(total);
  }
}
)";

constexpr int64_t kLanes = 256, kGroupsPerUnit = 4, kLinesSpan = 64;
constexpr int64_t kMostSegments = 1024;  // each adds up the totals before it

// The view without the axis.
View lines_of(View view, int axis) {
  view.shape[axis] = 1;
  return view;
}

bool fits_vector(const OperandView& x, int axis, int vector) {
  int64_t all = x.view.offset;
  for (int i = 0; i < x.view.shape.rank(); ++i) {
    if (i != axis && x.view.shape[i] != 1) all |= x.view.strides[i];
  }
  return all % vector == 0;
}

class Scan : public gpu::GpuExecutable {
 public:
  Scan(gpu::Session& session, const KernelCall& call)
      : session_(session),
        call_(call),
        plan_(plan_scan(call.operands[0], call.operands[1], int(call.attrs.axis),
                        session.device().compute_units)) {
    const DType dtype = call.operands[0].dtype;
    const bool adds = call.kernel == "cumsum", real = is_float(dtype);
    // Integers wrap, as unsigned ones do. -0 is what adding changes nothing.
    const std::string type = real                  ? std::string(register_type(compute_type(dtype)))
                             : size_of(dtype) == 8 ? "u64"
                                                   : "u32";
    const std::string source = gpu::complete_source(
        session, cat(gpu::kAxesText, kCommon, plan_.by_group ? kGroups : kLines), dtype,
        {{"$op", adds ? "+" : "*"},
         {"$neutral", !adds  ? "1"
                      : real ? "-0.0"
                             : "0"},
         {"$read", real ? "LOAD(x)" : "((u64)(x))"},
         {"$write", real ? "STORE(x)" : "(($S)(x))"},
         {"$vector", cat(plan_.vector)},
         {"$A", type}});
    totals_ = session.build(call.kernel, source, "tessera_scan_totals");
    scan_ = session.build(call.kernel, source, "tessera_scan");
    wide_ = real ? size_of(compute_type(dtype)) : size_of(dtype) == 8 ? 8 : 4;
  }

  void launch(std::span<const BufferRef> at, int64_t, Stream stream) const override {
    const int axis = int(call_.attrs.axis);
    const View &x = call_.operands[0].view, &y = call_.operands[1].view;
    if (numel(x.shape) == 0) return;
    std::byte* p[2];
    for (size_t i = 0; i < 2; ++i) {
      const gpu::Operand operand = gpu::operand(at[i], call_.operands[i]);
      p[i] =
          static_cast<std::byte*>(operand.mem) + operand.start * size_of(call_.operands[i].dtype);
    }
    const int64_t count = x.shape[axis], lines = numel(x.shape) / count;
    const int64_t units = lines * plan_.segments;
    void* const totals = session_.workspace(stream, units * wide_);
    const gpu::Axes extents = gpu::axes_of(lines_of(x, axis).shape, 1);
    const gpu::Axes strides = gpu::axes_of(x.strides, 0), y_strides = gpu::axes_of(y.strides, 0);
    const gpu::Range range = gpu::range_of(plan_.by_group ? units * kLanes : units, kLanes);
    if (plan_.by_group) {
      if (plan_.segments > 1) {
        (*totals_)(stream, range, p[0], totals, count, plan_.span, plan_.segments, extents,
                   strides);
      }
      (*scan_)(stream, range, p[0], totals, p[1], count, plan_.span, plan_.segments, extents,
               strides, y_strides);
    } else {
      if (plan_.segments > 1) {
        (*totals_)(stream, range, p[0], totals, count, plan_.span, plan_.segments, extents, strides,
                   lines, x.strides[axis]);
      }
      (*scan_)(stream, range, p[0], totals, p[1], count, plan_.span, plan_.segments, extents,
               strides, y_strides, lines, x.strides[axis], y.strides[axis]);
    }
  }

 private:
  gpu::Session& session_;
  const KernelCall call_;
  const ScanPlan plan_;
  std::unique_ptr<gpu::Kernel> totals_, scan_;
  int64_t wide_ = 0;
};

}  // namespace

ScanPlan plan_scan(const OperandView& x, const OperandView& y, int axis, int64_t compute_units) {
  ScanPlan plan;
  const int64_t count = std::max<int64_t>(1, x.view.shape[axis]);
  const int64_t lines = std::max<int64_t>(1, numel(x.view.shape) / count);
  plan.by_group = x.view.strides[axis] == 1 && y.view.strides[axis] == 1 && count > 32;
  int64_t grain = kLinesSpan, wanted = kGroupsPerUnit * compute_units;
  if (plan.by_group) {
    plan.vector = int(std::max<int64_t>(1, 16 / size_of(x.dtype)));
    while (!fits_vector(x, axis, plan.vector) || !fits_vector(y, axis, plan.vector)) {
      plan.vector /= 2;
    }
    grain = kLanes * plan.vector;
  } else {
    wanted *= kLanes;
  }
  // Segments of whole tiles.
  const int64_t most = (count + grain - 1) / grain;
  const int64_t segments =
      std::clamp<int64_t>((wanted + lines - 1) / lines, 1, std::min(most, kMostSegments));
  plan.span = (most + segments - 1) / segments * grain;
  plan.segments = (count + plan.span - 1) / plan.span;
  return plan;
}

std::unique_ptr<gpu::GpuExecutable> make_scan(gpu::Session& session, const KernelCall& call) {
  if (call.operands.size() != 2) {
    fail(call.kernel, ": expected 2 operands, got ", call.operands.size());
  }
  return std::make_unique<Scan>(session, call);
}

}  // namespace tessera::cuda
