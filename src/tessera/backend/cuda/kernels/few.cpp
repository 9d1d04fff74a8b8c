#include "tessera/backend/cuda/kernels/few.h"

#include <algorithm>

#include "tessera/backend/gpu/named_kernel.h"

namespace tessera::cuda {

namespace {

// A warp has a row of the result; 32 columns and slices of the rows share a group where the rows of
// the result are few, and their partial sums are added in order; an element is a lane's where what
// is summed over is short.
constexpr std::string_view kText = R"(
#define WARP 32
#define LANES 256
#define FEW $few
typedef struct { i64 a_row, a_column, b_row, b_column, c_row, c_column, m, n, k; } Few;

DEVICE void put($S* c, $T value, i32 adds) {
  const $T before = adds ? LOAD(*c) : ($T)0;
  const $T sum = before + value;
  *c = STORE(sum);
}

KERNEL_OF(LANES)
tessera_few_columns(const $S* a, const $S* b, $S* c, Few p, i32 adds) {
  const i32 lane = LANE % WARP;
  const i64 row = (i64)GROUP * (LANES / WARP) + LANE / WARP;
  if (row >= p.m) return;
  $T sums[FEW];
#pragma unroll
  for (i32 j = 0; j < FEW; ++j) sums[j] = 0;
#pragma unroll 4
  for (i64 k = lane; k < p.k; k += WARP) {
    const $T x = LOAD(a[row * p.a_row + k * p.a_column]);
#pragma unroll
    for (i32 j = 0; j < FEW; ++j) sums[j] += x * LOAD(b[k * p.b_row + j * p.b_column]);
  }
#pragma unroll
  for (i32 j = 0; j < FEW; ++j) {
    for (i32 step = WARP / 2; step > 0; step /= 2) {
      sums[j] += __shfl_xor_sync(0xffffffffu, sums[j], step, WARP);
    }
    if (lane == 0) put(c + row * p.c_row + j * p.c_column, sums[j], adds);
  }
}

KERNEL_OF(LANES)
tessera_few_rows(const $S* a, const $S* b, $T* partial, Few p, i64 blocks) {
  SHARED $T room[LANES / WARP][FEW][WARP];
  const i32 lane = LANE % WARP, slice = LANE / WARP;
  const i64 column = (i64)GROUP % blocks * WARP + lane, part = (i64)GROUP / blocks;
  const i64 step = (i64)gridDim.x / blocks * (LANES / WARP);
  $T sums[FEW];
#pragma unroll
  for (i32 i = 0; i < FEW; ++i) sums[i] = 0;
#pragma unroll 4
  for (i64 k = part * (LANES / WARP) + slice; k < p.k; k += step) {
    const $T x = column < p.n ? LOAD(b[k * p.b_row + column * p.b_column]) : ($T)0;
#pragma unroll
    for (i32 i = 0; i < FEW; ++i) sums[i] += x * LOAD(a[i * p.a_row + k * p.a_column]);
  }
#pragma unroll
  for (i32 i = 0; i < FEW; ++i) room[slice][i][lane] = sums[i];
  BARRIER;
  if (slice >= FEW || column >= p.n) return;
  $T sum = 0;
  for (i32 s = 0; s < LANES / WARP; ++s) sum += room[s][slice][lane];
  partial[(part * FEW + slice) * p.n + column] = sum;
}

KERNEL_OF(LANES)
tessera_few_fold(const $T* partial, $S* c, Few p, i64 parts, i32 adds) {
  const i64 at = (i64)GROUP * LANES + LANE, row = at / p.n, column = at % p.n;
  if (row >= FEW) return;
  $T sum = 0;
  for (i64 part = 0; part < parts; ++part) sum += partial[part * FEW * p.n + at];
  put(c + row * p.c_row + column * p.c_column, sum, adds);
}

KERNEL_OF(LANES)
tessera_few_terms(const $S* a, const $S* b, $S* c, Few p, i32 adds) {
  const i64 at = (i64)GROUP * LANES + LANE, row = at / p.n, column = at % p.n;
  if (row >= p.m) return;
  $T sum = 0;
#pragma unroll
  for (i32 k = 0; k < FEW; ++k) {
    sum += LOAD(a[row * p.a_row + k * p.a_column]) * LOAD(b[k * p.b_row + column * p.b_column]);
  }
  put(c + row * p.c_row + column * p.c_column, sum, adds);
}
)";

constexpr int64_t kLanes = 256, kWarp = 32, kGroupsPerUnit = 8, kRowsPerSlice = 64;

// The argument of the kernels.
struct Problem {
  int64_t a_row, a_column, b_row, b_column, c_row, c_column, m, n, k;
};

Problem problem_of(const KernelCall& call) {
  const View &a = call.operands[0].view, &b = call.operands[1].view, &c = call.operands[2].view;
  TESSERA_ASSERT(a.shape.rank() == 2 && b.shape.rank() == 2 && c.shape.rank() == 2);
  return {a.strides[0], a.strides[1], b.strides[0], b.strides[1], c.strides[0],
          c.strides[1], c.shape[0],   c.shape[1],   a.shape[1]};
}

class Few : public gpu::GpuExecutable {
 public:
  Few(gpu::Session& session, const KernelCall& call, bool adds)
      : session_(session),
        call_(call),
        problem_(problem_of(call)),
        adds_(adds ? 1 : 0),
        few_(std::min({problem_.m, problem_.n, problem_.k})) {
    TESSERA_ASSERT(few_ >= 1 && few_ <= kMostFew);
    const DType dtype = call.operands[0].dtype;
    const std::string source = gpu::complete_source(session, kText, dtype, {{"$few", cat(few_)}});
    const auto build = [&](const char* entry) { return session.build(call.kernel, source, entry); };
    if (problem_.k == few_) {
      terms_ = build("tessera_few_terms");
    } else if (problem_.n == few_) {
      columns_ = build("tessera_few_columns");
    } else {
      rows_ = build("tessera_few_rows");
      fold_ = build("tessera_few_fold");
    }
  }

  void launch(std::span<const BufferRef> at, int64_t, Stream stream) const override {
    const int64_t size = size_of(call_.operands[0].dtype);
    std::byte* p[3];
    for (size_t i = 0; i < 3; ++i) {
      const gpu::Operand operand = gpu::operand(at[i], call_.operands[i]);
      p[i] = static_cast<std::byte*>(operand.mem) + operand.start * size;
    }
    const int64_t elements = problem_.m * problem_.n;
    if (terms_) {
      (*terms_)(stream, gpu::range_of(elements, kLanes), p[0], p[1], p[2], problem_, adds_);
    } else if (columns_) {
      (*columns_)(stream, gpu::range_of(problem_.m * kWarp, kLanes), p[0], p[1], p[2], problem_,
                  adds_);
    } else {
      const int64_t blocks = (problem_.n + kWarp - 1) / kWarp;
      const int64_t wanted = kGroupsPerUnit * session_.device().compute_units / blocks;
      const int64_t slices = (problem_.k + kRowsPerSlice - 1) / kRowsPerSlice;
      const int64_t parts = std::clamp<int64_t>(wanted, 1, slices);
      void* const partial =
          session_.workspace(stream, parts * elements * size_of(compute_type(dtype())));
      (*rows_)(stream, gpu::range_of(blocks * parts * kLanes, kLanes), p[0], p[1], partial,
               problem_, blocks);
      (*fold_)(stream, gpu::range_of(elements, kLanes), partial, p[2], problem_, parts, adds_);
    }
  }

 private:
  DType dtype() const { return call_.operands[0].dtype; }

  gpu::Session& session_;
  const KernelCall call_;
  const Problem problem_;
  const int32_t adds_;
  const int64_t few_;
  std::unique_ptr<gpu::Kernel> columns_, rows_, fold_, terms_;
};

}  // namespace

std::unique_ptr<gpu::GpuExecutable> make_few(gpu::Session& session, const KernelCall& call,
                                             bool adds) {
  return std::make_unique<Few>(session, call, adds);
}

}  // namespace tessera::cuda
