// A group has one query. Teams of lanes, a 16-byte chunk each, take key after key, several at a
// time, and keep a sum of values each; the sums are joined at the end.
#include "tessera/backend/cuda/kernels/attention_few.h"

#include <bit>

#include "tessera/backend/gpu/attention.h"
#include "tessera/backend/gpu/chunks.h"

namespace tessera::cuda {

namespace {

constexpr std::string_view kText = R"(
#define LANES $lanes
#define OPTIONS $options  // base/attention_options.h
#define WARP 32
#define PER (16 / (i32)sizeof($S))  // elements of a chunk
#define TEAM (D / PER)              // lanes of a key
#define TEAMS (LANES / TEAM)
#define WARPS (LANES / WARP)
#define AT_ONCE 4  // keys that a team has in flight
struct alignas(16) Chunk {
  $S v[PER];
};

KERNEL_OF(LANES)
tessera_attention_few(const $S* q, i64 q_start, const $S* k, i64 k_start, const $S* v, i64 v_start,
                      const $M* mask, i64 mask_start, const i64* lengths, i64 lengths_start,
                      const i64* key, i64 key_start, const i64* offset, i64 offset_start, $S* y,
                      i64 y_start, f32* lse, i64 lse_start, Attention p, i32 wanted) {
  SHARED f32 tops[WARPS], totals[WARPS], all_sums[WARPS][D];
  const i64 row = GROUP, t = row % p.queries, bh = row / p.queries;
  const i64 b = bh / p.heads, h = bh % p.heads, group = h / (p.heads / p.groups);
  const i32 lane = LANE % TEAM, team = LANE / TEAM;
  q += q_start + b * p.q.at[0] + h * p.q.at[1] + t * p.q.at[2] + lane * PER;
  k += k_start + b * p.k.at[0] + group * p.k.at[1] + lane * PER;
  v += v_start + b * p.v.at[0] + group * p.v.at[1] + lane * PER;
  const i64 count = key_count(lengths + lengths_start, b, &p), end = key_end(t, count, &p);
  const Chunk q_chunk = *(const Chunk*)q;
  f32 query[PER], sums[PER], top = UNSEEN, total = 0;
#pragma unroll
  for (i32 i = 0; i < PER; ++i) {
    query[i] = LOAD(q_chunk.v[i]) * p.scale;
    sums[i] = 0;
  }
  for (i64 s0 = 0; s0 < end; s0 += TEAMS * AT_ONCE) {
    Chunk keys[AT_ONCE], values[AT_ONCE];
#pragma unroll
    for (i32 n = 0; n < AT_ONCE; ++n) {
      const i64 s = min(s0 + n * TEAMS + team, end - 1);
      keys[n] = *(const Chunk*)(k + s * p.k.at[2]);
      values[n] = *(const Chunk*)(v + s * p.v.at[2]);
    }
    f32 scores[AT_ONCE], best = top;
#pragma unroll
    for (i32 n = 0; n < AT_ONCE; ++n) {
      f32 dot = 0;
#pragma unroll
      for (i32 i = 0; i < PER; ++i) dot += query[i] * LOAD(keys[n].v[i]);
#pragma unroll
      for (i32 step = TEAM / 2; step > 0; step /= 2) {
        dot += __shfl_xor_sync(0xffffffffu, dot, step, WARP);
      }
      const i64 s = s0 + n * TEAMS + team;
      scores[n] = s < end ? score_of(dot, b, h, t, s, count, mask + mask_start, &p) : UNSEEN;
      best = fmaxf(best, scores[n]);
    }
    const f32 shift = best == UNSEEN ? 0 : best;  // -inf less -inf has no value
    const f32 factor = expf(top - shift);
    total *= factor;
    top = best;
#pragma unroll
    for (i32 i = 0; i < PER; ++i) sums[i] *= factor;
#pragma unroll
    for (i32 n = 0; n < AT_ONCE; ++n) {
      f32 weight = expf(scores[n] - shift);
      total += weight;
#if OPTIONS & 8
      weight *= kept_of(b, h, t, s0 + n * TEAMS + team, key[key_start], offset[offset_start], &p);
#endif
      // What is not seen may be anything, and counts for nothing.
      if (weight == 0) continue;
#pragma unroll
      for (i32 i = 0; i < PER; ++i) sums[i] += weight * LOAD(values[n].v[i]);
    }
  }
  // The teams of a warp, then the warps.
#pragma unroll
  for (i32 step = TEAM; step < WARP; step *= 2) {
    const f32 other = __shfl_xor_sync(0xffffffffu, top, step, WARP), best = fmaxf(top, other);
    const f32 shift = best == UNSEEN ? 0 : best;
    const f32 factor = expf(top - shift);
    top = best;
    total *= factor;
    total += __shfl_xor_sync(0xffffffffu, total, step, WARP);
#pragma unroll
    for (i32 i = 0; i < PER; ++i) {
      sums[i] *= factor;
      sums[i] += __shfl_xor_sync(0xffffffffu, sums[i], step, WARP);
    }
  }
  if (LANE % WARP < TEAM) {
#pragma unroll
    for (i32 i = 0; i < PER; ++i) all_sums[LANE / WARP][lane * PER + i] = sums[i];
    tops[LANE / WARP] = top;
    totals[LANE / WARP] = total;
  }
  BARRIER;
  f32 best = UNSEEN;
  for (i32 w = 0; w < WARPS; ++w) best = fmaxf(best, tops[w]);
  const f32 shift = best == UNSEEN ? 0 : best;
  total = 0;
  for (i32 w = 0; w < WARPS; ++w) total += totals[w] * expf(tops[w] - shift);
  // A query that sees no key has y 0 and lse 0.
  y += y_start + b * p.y.at[0] + h * p.y.at[1] + t * p.y.at[2];
  for (i32 i = LANE; i < D && (wanted & 1); i += LANES) {
    f32 sum = 0;
    for (i32 w = 0; w < WARPS; ++w) sum += all_sums[w][i] * expf(tops[w] - shift);
    const f32 mean = best == UNSEEN ? 0 : sum / total;
    y[i * p.y.at[3]] = STORE(mean);
  }
  if (LANE == 0 && (wanted & 2)) {
    lse[lse_start + row] = best == UNSEEN ? 0 : best + logf(total);
  }
}
)";

constexpr int64_t kMostQueries = 4, kWarp = 32, kManyLanes = 256, kFewLanes = 128;

bool suits(const gpu::AttentionCall& call) {
  const DType dtype = call.dtype();
  if (call.is_backward() || compute_type(dtype) != DType::f32) return false;
  const int64_t columns = call.q().shape[3], team = columns * size_of(dtype) / 16;
  if (call.q().shape[2] > kMostQueries || call.v().shape[3] != columns) return false;
  if (team < 1 || team > kWarp || !std::has_single_bit(uint64_t(team))) return false;
  for (const View* view : {&call.q(), &call.k(), &call.v()}) {
    if (!gpu::is_chunked(*view, dtype)) return false;
  }
  return true;
}

class AttentionFew : public gpu::GpuExecutable {
 public:
  AttentionFew(gpu::Session& session, const gpu::AttentionCall& call)
      : call_(call),
        rows_(numel(call.q().shape) / call.q().shape[3]),
        lanes_(rows_ > session.device().compute_units ? kFewLanes : kManyLanes),
        kernel_(session.build(
            call_.call().kernel,
            call_.source(session, kText,
                         {{"$lanes", cat(lanes_)}, {"$options", cat(call_.options())}}),
            "tessera_attention_few")) {}

  void launch(std::span<const BufferRef> at, int64_t, Stream stream) const override {
    kernel_->launch(stream, gpu::range_of(rows_ * lanes_, lanes_),
                    call_.forward_arguments<float>(at));
  }

 private:
  const gpu::AttentionCall call_;
  const int64_t rows_, lanes_;
  std::unique_ptr<gpu::Kernel> kernel_;
};

}  // namespace

std::unique_ptr<gpu::GpuExecutable> make_attention_few(gpu::Session& session,
                                                       const KernelCall& call) {
  const gpu::AttentionCall attention(call);
  if (!suits(attention)) return nullptr;
  return std::make_unique<AttentionFew>(session, attention);
}

}  // namespace tessera::cuda
