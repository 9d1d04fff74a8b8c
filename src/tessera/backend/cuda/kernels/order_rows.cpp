// An element becomes an integer, its code: the element's order in the upper bits (NaN greatest, -0
// equal to 0, turned around where the order falls), its column in the lower ones. Codes are all
// different, and their order is that of a stable sort.
//
// Few of a long row: digit by digit from the top, a histogram tells which digit the last wanted
// code has, until as many codes begin with it as are still wanted. Those up to there are collected,
// in any order, and each finds its rank among them.
//
// A whole row: a bitonic network over the codes in shared memory. Steps within 64 neighbours stay
// within a warp.
#include "tessera/backend/cuda/kernels/order_rows.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "tessera/backend/gpu/named_kernel.h"

namespace tessera::cuda {

namespace {

constexpr std::string_view kCodes = R"(
#define WARP 32
#define LANES $lanes
#define ALL 0xffffffffu
#define KEY_BITS $key_bits

DEVICE u32 key_of($S element) {
#if $floating
  const f32 x = LOAD(element);
  const u32 bits = __float_as_uint(x);
  const u32 key = x != x ? ALL : x == 0 ? 0x80000000u : bits >> 31 ? ~bits : bits | 0x80000000u;
  return key >> (32 - KEY_BITS);
#elif $signed
  return (u32)(i32)LOAD(element) + (1u << (KEY_BITS - 1));
#else
  return (u32)LOAD(element);
#endif
}

// Of the element in this column; index_bits hold any column.
DEVICE u64 code_of(const $S* x, i64 step, i64 column, i32 index_bits) {
  const u32 key = key_of(x[column * step]);
  const u32 place = $falling ? (ALL >> (32 - KEY_BITS)) - key : key;
  return (u64)place << index_bits | (u64)column;
}

DEVICE i64 row_start(i64 row, const Axes& extents, const Axes& strides) {
  i64 start = 0;
  for (i32 d = 7; d >= 0; --d) {
    start += row % extents.at[d] * strides.at[d];
    row /= extents.at[d];
  }
  return start;
}
)";

constexpr std::string_view kSelect = R"(
#define DIGIT_BITS 11
#define DIGITS (1 << DIGIT_BITS)
#define EACH (DIGITS / LANES)
#define MOST $most

// Finds the digit at which `wanted` codes are reached: {digit, how many come before, how many have
// it}.
DEVICE void find_digit(const u32* counts, u32 wanted, u32* sums, u32* found) {
  u32 here = 0;
  for (i32 i = 0; i < EACH; ++i) here += counts[LANE * EACH + i];
  u32 upto = here;
  for (i32 step = 1; step < WARP; step *= 2) {
    const u32 left = __shfl_up_sync(ALL, upto, step, WARP);
    if (LANE % WARP >= step) upto += left;
  }
  if (LANE % WARP == WARP - 1) sums[LANE / WARP] = upto;
  BARRIER;
  for (i32 i = 0; i < (i32)LANE / WARP; ++i) upto += sums[i];
  u32 before = upto - here;
  if (before < wanted && wanted <= upto) {
    i32 i = 0;
    while (before + counts[LANE * EACH + i] < wanted) before += counts[LANE * EACH + i++];
    found[0] = LANE * EACH + i;
    found[1] = before;
    found[2] = counts[LANE * EACH + i];
  }
  BARRIER;
}

KERNEL_OF(LANES)
tessera_order_rows(const $S* x, i64 step, $S* values, i64 values_step, i64* indices,
                   i64 indices_step, i64 columns, i64 kept, i32 index_bits, Axes extents,
                   Axes strides, Axes values_strides, Axes indices_strides) {
  SHARED u32 counts[DIGITS];
  SHARED u32 sums[WARP];
  SHARED u32 found[3];
  SHARED u64 chosen[MOST];
  SHARED u32 number;
  x += row_start(GROUP, extents, strides);
  u64 prefix = 0;
  u32 wanted = (u32)kept;
  i32 shift = KEY_BITS + index_bits;
  while (shift > 0) {
    const i32 width = min(shift, DIGIT_BITS), above = shift;
    shift -= width;
    for (i32 i = LANE; i < DIGITS; i += LANES) counts[i] = 0;
    BARRIER;
#pragma unroll 4
    for (i64 column = LANE; column < columns; column += LANES) {
      const u64 code = code_of(x, step, column, index_bits);
      if (code >> above != prefix) continue;
      atomicAdd(&counts[(u32)(code >> shift) & ((1u << width) - 1)], 1u);
    }
    BARRIER;
    find_digit(counts, wanted, sums, found);
    prefix = prefix << width | found[0];
    wanted -= found[1];
    if (found[2] == wanted) break;
    BARRIER;  // found is written again
  }
  if (LANE == 0) number = 0;
  BARRIER;
#pragma unroll 4
  for (i64 column = LANE; column < columns; column += LANES) {
    const u64 code = code_of(x, step, column, index_bits);
    if (code >> shift <= prefix) chosen[atomicAdd(&number, 1u)] = code;
  }
  BARRIER;
  if (values != nullptr) values += row_start(GROUP, extents, values_strides);
  if (indices != nullptr) indices += row_start(GROUP, extents, indices_strides);
  for (i32 i = LANE; i < kept; i += LANES) {
    const u64 code = chosen[i];
    i64 rank = 0;
    for (i32 other = 0; other < kept; ++other) rank += chosen[other] < code ? 1 : 0;
    const i64 column = (i64)(code & (((u64)1 << index_bits) - 1));
    if (values != nullptr) values[rank * values_step] = x[column * step];
    if (indices != nullptr) indices[rank * indices_step] = column;
  }
}
)";

constexpr std::string_view kSort = R"(
#define LENGTH $length

KERNEL_OF(LANES)
tessera_order_rows(const $S* x, i64 step, $S* values, i64 values_step, i64* indices,
                   i64 indices_step, i64 columns, i64 kept, i32 index_bits, Axes extents,
                   Axes strides, Axes values_strides, Axes indices_strides) {
  extern __shared__ u64 codes[];
  x += row_start(GROUP, extents, strides);
  for (i32 i = LANE; i < LENGTH; i += LANES) {
    codes[i] = i < columns ? code_of(x, step, i, index_bits) : ~(u64)0;
  }
  BARRIER;
  for (i32 size = 2; size <= LENGTH; size *= 2) {
    for (i32 stride = size / 2; stride > 0; stride /= 2) {
      for (i32 pair = LANE; pair < LENGTH / 2; pair += LANES) {
        const i32 i = 2 * pair - (pair & (stride - 1));
        const u64 a = codes[i], b = codes[i + stride];
        if ((a > b) == ((i & size) == 0)) {
          codes[i] = b;
          codes[i + stride] = a;
        }
      }
      const i32 next = stride > 1 ? stride / 2 : size;
      if (stride > WARP || next > WARP) {
        BARRIER;
      } else {
        __syncwarp();
      }
    }
  }
  BARRIER;
  if (values != nullptr) values += row_start(GROUP, extents, values_strides);
  if (indices != nullptr) indices += row_start(GROUP, extents, indices_strides);
  for (i32 i = LANE; i < kept; i += LANES) {
    const i64 column = (i64)(codes[i] & (((u64)1 << index_bits) - 1));
    if (values != nullptr) values[i * values_step] = x[column * step];
    if (indices != nullptr) indices[i * indices_step] = column;
  }
}
)";

constexpr int64_t kMostSelected = 1024, kSelectLanes = 1024;
constexpr int64_t kReserve = 2048;  // of shared memory, for the driver's own

int key_bits(DType dtype) {
  switch (dtype) {
    case DType::bf16: return 16;
    case DType::f16: return 19;  // of the f32 that it is
    case DType::f32: return 32;
    default: return 8 * int(size_of(dtype));
  }
}

gpu::Axes leading(const Dims& dims, int64_t otherwise) {
  Dims rows = dims;
  rows.erase(rows.rank() - 1);
  return gpu::axes_of(rows, otherwise);
}

class OrderRows : public gpu::GpuExecutable {
 public:
  OrderRows(gpu::Session& session, const KernelCall& call, const OrderPlan& plan)
      : call_(call), plan_(plan) {
    const DType dtype = call.operands[0].dtype;
    const auto flag = [](bool value) { return std::string(value ? "1" : "0"); };
    const std::string source = gpu::complete_source(
        session, cat(gpu::kAxesText, kCodes, plan.selects ? kSelect : kSort), dtype,
        {{"$lanes", cat(plan.lanes)},
         {"$key_bits", cat(key_bits(dtype))},
         {"$floating", flag(is_float(dtype))},
         {"$signed", flag(dtype == DType::i8 || dtype == DType::i32)},
         {"$falling", flag(call.attrs.axis == 1)},
         {"$most", cat(kMostSelected)},
         {"$length", cat(plan.length)}});
    kernel_ = session.build(call.kernel, source, "tessera_order_rows");
  }

  void launch(std::span<const BufferRef> at, int64_t, Stream stream) const override {
    const View &x = call_.operands[0].view, &values = call_.operands[1].view,
               &indices = call_.operands[2].view;
    const int64_t columns = x.shape.back(), kept = values.shape.back();
    if (numel(values.shape) == 0) return;
    std::byte* p[3];
    for (size_t i = 0; i < 3; ++i) {
      const gpu::Operand operand = gpu::operand(at[i], call_.operands[i]);
      p[i] = static_cast<std::byte*>(operand.mem);
      if (p[i] != nullptr) p[i] += operand.start * size_of(call_.operands[i].dtype);
    }
    const int last = x.shape.rank() - 1;
    gpu::Range range;
    range.group[0] = size_t(plan_.lanes);
    range.groups[0] = size_t(numel(x.shape) / columns);
    range.local_bytes = plan_.selects ? 0 : size_t(plan_.length) * 8;
    const int32_t index_bits = int32_t(std::bit_width(uint64_t(columns - 1)));
    (*kernel_)(stream, range, p[0], x.strides[last], p[1], values.strides[last], p[2],
               indices.strides[last], columns, kept, index_bits, leading(x.shape, 1),
               leading(x.strides, 0), leading(values.strides, 0), leading(indices.strides, 0));
  }

 private:
  const KernelCall call_;
  const OrderPlan plan_;
  std::unique_ptr<gpu::Kernel> kernel_;
};

}  // namespace

OrderPlan plan_order(int64_t columns, int64_t kept, DType dtype, int64_t shared_bytes) {
  const int64_t length = std::max<int64_t>(64, int64_t(std::bit_ceil(uint64_t(columns))));
  const bool fits = length <= (shared_bytes - kReserve) / 8;
  if (size_of(dtype) == 8 || columns > std::numeric_limits<int32_t>::max()) return {};
  if (kept <= kMostSelected && (!fits || columns >= 8 * kept) && columns >= kSelectLanes) {
    return {true, int(kSelectLanes), 0};
  }
  if (!fits) return {};
  return {false, int(std::min<int64_t>(length / 2, 1024)), length};
}

std::unique_ptr<gpu::GpuExecutable> make_order_rows(gpu::Session& session, const KernelCall& call) {
  if ((call.kernel != "sort" && call.kernel != "topk") || call.operands.size() != 3) return nullptr;
  const OperandView& x = call.operands[0];
  const OrderPlan plan = plan_order(x.view.shape.back(), call.operands[1].view.shape.back(),
                                    x.dtype, session.device().local_bytes_asked);
  if (plan.lanes == 0) return nullptr;
  return std::make_unique<OrderRows>(session, call, plan);
}

}  // namespace tessera::cuda
