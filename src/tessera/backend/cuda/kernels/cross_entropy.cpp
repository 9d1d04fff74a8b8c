// With shift = max x and total = Σ exp(x − shift):
//
//   loss = log total + shift − x[target],  dx = g · (exp(x − shift) / total − [c = target]).
//
// A group takes a row. Its lanes read it once, 16 bytes at a time, keep it in shared memory, and
// each carries the greatest element and the total of what it has seen; what lies before the first
// and behind the last 16 bytes are single elements, of which a lane has at most one. Where shared
// memory is too small for a row it is read again. Rows of x and of dx may lie apart.
#include "tessera/backend/cuda/kernels/cross_entropy.h"

#include <algorithm>

#include "tessera/backend/gpu/named_kernel.h"
#include "tessera/codegen/text.h"

namespace tessera::cuda {

namespace {

// Numbers of half types: exponentials by the card's own powers of two (an error of 2⁻²², far below
// what such a number can tell), and conversions of two at a time.
constexpr std::string_view kHalves = R"(
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
DEVICE f32 power_of_two(f32 x) {
  f32 y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
DEVICE void round_pair(u16* to, f32 low, f32 high) {
  u32 both;
  asm("cvt.rn.$pair.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  to[0] = (u16)both;
  to[1] = (u16)(both >> 16);
}
#else
#define power_of_two exp2f
DEVICE void round_pair(u16* to, f32 low, f32 high) {
  to[0] = STORE(low);
  to[1] = STORE(high);
}
#endif
#define EXP(x, shift) power_of_two(((x) - (shift)) * 1.44269504088896341f)
)";

constexpr std::string_view kWhole = R"(
#define EXP(x, shift) exp((x) - (shift))
)";

constexpr std::string_view kText = R"(
#define WARP 32
#define LANES $lanes
#define VECTOR $vector
#define HELD $held
#define AHEAD $ahead
struct alignas(16) Part { $S v[VECTOR]; };

// What a row is shifted by. A row of -inf, or with an inf, is shifted by nothing.
DEVICE $T shift_of($T greatest) { return fabs(greatest) < INFINITY ? greatest : 0; }

DEVICE void take($T x, $T& greatest, $T& total) {
  const $T before = greatest;
  greatest = fmax(greatest, x);
  const $T shift = shift_of(greatest);
  total = total * EXP(before, shift) + EXP(x, shift);
}

DEVICE void take(const Part& part, $T& greatest, $T& total) {
  const $T before = greatest;
#pragma unroll
  for (i32 i = 0; i < VECTOR; ++i) greatest = fmax(greatest, LOAD(part.v[i]));
  const $T shift = shift_of(greatest);
  total *= EXP(before, shift);
#pragma unroll
  for (i32 i = 0; i < VECTOR; ++i) total += EXP(LOAD(part.v[i]), shift);
}

// Over the group, in every lane: the sum, or the greatest.
template <bool is_sum>
DEVICE $T fold($T value, $T* room) {
  for (i32 step = WARP / 2; step > 0; step /= 2) {
    const $T other = __shfl_down_sync(0xffffffffu, value, step, WARP);
    value = is_sum ? value + other : fmax(value, other);
  }
  BARRIER;  // room may still be read
  if (LANE % WARP == 0) room[LANE / WARP] = value;
  BARRIER;
  value = room[0];
  for (i32 i = 1; i < LANES / WARP; ++i) value = is_sum ? value + room[i] : fmax(value, room[i]);
  return value;
}

DEVICE void give(const $T* values, Part& part) {
#if $halves
#pragma unroll
  for (i32 i = 0; i < VECTOR; i += 2) round_pair(part.v + i, values[i], values[i + 1]);
#else
#pragma unroll
  for (i32 i = 0; i < VECTOR; ++i) part.v[i] = STORE(values[i]);
#endif
}

KERNEL_OF(LANES)
tessera_cross_entropy(const $S* x, i64 x_step, const $I* targets, const $T* g, $T* loss, $S* dx,
                      i64 dx_step, i64 columns, i32* error) {
#if HELD
  extern __shared__ Part kept[];
#endif
  SHARED $T room[WARP];
  const i64 row = GROUP;
  const i64 target = (i64)targets[row];
  const bool is_class = target >= 0 && target < columns;
  x += row * x_step;
  // Read before the group meets: dx may lie where x does, and each lane writes what it alone reads.
  const $T chosen = LANE == 0 && is_class ? LOAD(x[target]) : ($T)0;
  const i64 apart = (i64)((u64)x % sizeof(Part) / sizeof($S));
  const i64 head = min((VECTOR - apart) % VECTOR, columns), parts = (columns - head) / VECTOR;
  const auto* row_parts = reinterpret_cast<const Part*>(x + head);
  // Of a single element, where this lane has one.
  const i64 column = LANE < head ? LANE : LANE + parts * VECTOR;
  $T single = -INFINITY, greatest = -INFINITY, total = 0;
  if (column < columns) {
    single = LOAD(x[column]);
    take(single, greatest, total);
  }
  i64 at = LANE;
  for (; at + (AHEAD - 1) * LANES < parts; at += AHEAD * LANES) {
    Part ahead[AHEAD];
#pragma unroll
    for (i32 i = 0; i < AHEAD; ++i) ahead[i] = row_parts[at + i * LANES];
#pragma unroll
    for (i32 i = 0; i < AHEAD; ++i) {
#if HELD
      if (dx != nullptr) kept[at + i * LANES] = ahead[i];
#endif
      take(ahead[i], greatest, total);
    }
  }
  for (; at < parts; at += LANES) {
    const Part part = row_parts[at];
#if HELD
    if (dx != nullptr) kept[at] = part;
#endif
    take(part, greatest, total);
  }
  const $T shift = shift_of(fold<false>(greatest, room));
  total = fold<true>(total * EXP(greatest, shift), room);
  if (LANE == 0) {
    if (!is_class) *error = 1;
    if (loss != nullptr) loss[row] = log(total) + (shift - chosen);
  }
  if (dx == nullptr) return;

  dx += row * dx_step;
  const $T slope = g[row], factor = slope / total;
  if (column < columns) {
    const $T value = EXP(single, shift) * factor - (column == target ? slope : ($T)0);
    dx[column] = STORE(value);
  }
  auto* dx_parts = reinterpret_cast<Part*>(dx + head);
  const bool together = (u64)dx_parts % sizeof(Part) == 0;
#pragma unroll 2
  for (at = LANE; at < parts; at += LANES) {
#if HELD
    const Part part = kept[at];  // this lane's own
#else
    const Part part = row_parts[at];
#endif
    $T values[VECTOR];
#pragma unroll
    for (i32 i = 0; i < VECTOR; ++i) values[i] = EXP(LOAD(part.v[i]), shift) * factor;
    const i64 place = target - head - at * VECTOR;
    if (place >= 0 && place < VECTOR) {
#pragma unroll
      for (i32 i = 0; i < VECTOR; ++i) values[i] -= i == place ? slope : ($T)0;
    }
    Part result;
    give(values, result);
    if (together) {
      dx_parts[at] = result;
    } else {
      for (i32 i = 0; i < VECTOR; ++i) dx[head + at * VECTOR + i] = result.v[i];
    }
  }
}
)";

constexpr int kWarp = 32, kPartBytes = 16, kAhead = 4;
constexpr int64_t kReserve =
    2048;  // of shared memory: what a kernel declares, and the driver's own

class CrossEntropy : public gpu::GpuExecutable {
 public:
  CrossEntropy(gpu::Session& session, const KernelCall& call)
      : session_(session),
        call_(call),
        x_step_(step_of(call.operands[0])),
        dx_step_(step_of(call.operands[4])),
        plan_(plan_entropy(columns(), dtype(), session.device().local_bytes_asked)) {
    const bool halves = is_half(dtype());
    const std::string source =
        gpu::complete_source(session, cat(halves ? kHalves : kWhole, kText), dtype(),
                             {{"$lanes", cat(plan_.lanes)},
                              {"$ahead", cat(dtype() == DType::f64 ? 1 : kAhead)},
                              {"$vector", cat(kPartBytes / size_of(dtype()))},
                              {"$held", plan_.kept_bytes > 0 ? "1" : "0"},
                              {"$halves", halves ? "1" : "0"},
                              {"$pair", dtype() == DType::f16 ? "f16x2" : "bf16x2"},
                              {"$I", std::string(storage_type(call.operands[1].dtype))}});
    kernel_ = session.build(call.kernel, source, "tessera_cross_entropy");
    check_ = session.make_check(call.kernel, "a target is", cat("[0, ", columns(), ")"));
  }

  void launch(std::span<const BufferRef> at, int64_t, Stream stream) const override {
    std::byte* p[5];
    for (size_t i = 0; i < 5; ++i) {
      const gpu::Operand operand = gpu::operand(at[i], call_.operands[i]);
      p[i] = static_cast<std::byte*>(operand.mem);
      if (p[i] != nullptr) p[i] += operand.start * size_of(call_.operands[i].dtype);
    }
    gpu::Range range;
    range.group[0] = size_t(plan_.lanes);
    range.groups[0] = size_t(numel(call_.operands[0].view.shape) / columns());
    range.local_bytes = p[4] == nullptr ? 0 : size_t(plan_.kept_bytes);
    (*kernel_)(stream, range, p[0], x_step_, p[1], p[2], p[3], p[4], dx_step_, columns(),
               check_->flag);
    session_.watch(stream, check_);
  }

 private:
  static int64_t step_of(const OperandView& rows) {
    if (const std::optional<int64_t> step = row_step(rows.view)) return *step;
    fail("cross_entropy: expected rows that lie equally far apart, got strides ", rows.view.strides,
         " for shape ", rows.view.shape);
  }

  int64_t columns() const { return call_.operands[0].view.shape.back(); }
  DType dtype() const { return call_.operands[0].dtype; }

  gpu::Session& session_;
  const KernelCall call_;
  const int64_t x_step_, dx_step_;  // elements from a row to the next
  const EntropyPlan plan_;
  std::unique_ptr<gpu::Kernel> kernel_;
  std::shared_ptr<const gpu::IndexCheck> check_;
};

}  // namespace

// Rows are kept where two groups fit a multiprocessor's shared memory, so that one reads while the
// other writes; a row that only fits alone gets more lanes.
EntropyPlan plan_entropy(int64_t columns, DType dtype, int64_t shared_bytes) {
  const int64_t parts = columns * size_of(dtype) / kPartBytes, bytes = parts * kPartBytes;
  const bool fits = bytes + kReserve <= shared_bytes;
  const bool in_pairs = 2 * (bytes + kReserve) <= shared_bytes;
  // Exponentials of f64 take many registers.
  const int64_t most = dtype == DType::f64 ? 256 : fits && !in_pairs ? 1024 : 512;
  const int64_t wanted = (parts / kAhead + kWarp - 1) / kWarp * kWarp;
  const int64_t lanes = std::clamp<int64_t>(wanted, kWarp, most);
  return {int(lanes), fits ? bytes : 0};
}

std::unique_ptr<gpu::GpuExecutable> make_cross_entropy(gpu::Session& session,
                                                       const KernelCall& call) {
  if (call.operands.size() != 5) {
    fail("cross_entropy: expected 5 operands, got ", call.operands.size());
  }
  return std::make_unique<CrossEntropy>(session, call);
}

}  // namespace tessera::cuda
