// The inner loops of codes, one table per instruction set, all with equal bits as results. Vectors
// of floats are (padded_dim), zeros past dim, at any address; so are codes and quantised queries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tessera/lattice/code_spec.h"

namespace tessera::lattice {

constexpr int kTrials = 5;        // steps that encode tries
constexpr int kTileQueries = 64;  // queries of one scan

// The parts of a rotation, see rotation.h. signs: (rounds, padded_dim), scaled for the block.
struct RotationPlan {
  int32_t dim, padded_dim, block, rounds;
  float block_scale;
  const float* signs;
};

// The parts of a spec that kernels need.
struct CodeShape {
  int32_t dim, padded_dim;
  int64_t half_bytes, block_bytes;
  // With planes: the first part of a block, half of its codes, half of what the rows of a block
  // make as registers, and a row; code_layout.h. 0 without.
  int64_t hot_bytes, hot_half_bytes, cold_half_bytes, row_bytes;
  float n2_unit, g_unit;
  float step_ratio;
  const uint8_t* group_bits;  // (ceil(dim / 32))
};

struct Encoded {
  float n2, g, cosine;  // before rounding
  float hot = 0;        // of CodeFactors; a kernel leaves it 0
};

// A query, or its difference to an anchor, in 8 bits: about value · 1/scale. With u the codes and
// w their levels, <values, w> is about scale / 2 · (2 <bytes, u> - offset).
struct QuantizedQuery {
  float scale;
  int32_t offset;
  float n2;  // squared length of q - anchor
};

// For vectors [first, first + 32) of the list, those whose bits are set in `mask` have a key of at
// most the query's threshold. Returns the new threshold.
using ScanSink = float (*)(void* context, int query, int64_t first, uint32_t mask,
                           const float* keys);

// One query against the top bits h of codes: g = hot there, and offset is theirs. The key of all
// bits is within spread · √(hot² · n2 - |r|²) of theirs, but for few; n2 is |s ⊙ h|².
struct HotQuery {
  int32_t offset;
  float spread, n2;
};

// Keys are n2_weight · n2 + g · slope · (2 <bytes, u> - offset).
struct ScanTile {
  int32_t count;  // 1…kTileQueries
  float n2_weight;
  const int8_t* queries;   // (count, padded_dim), 64-byte aligned
  const float* slopes;     // (count); the unit of g is the kernel's business
  const int32_t* offsets;  // (count)
  float* thresholds;       // (count)
  std::byte* scratch;      // scan_scratch_bytes, 64-byte aligned
  ScanSink sink;
  void* context;
  const HotQuery* hot = nullptr;  // with planes and one query: the top bits first
  int64_t* refined = nullptr;     // with that: counts vectors that were read beyond them
};

inline int64_t scan_scratch_bytes(int32_t padded_dim) {
  return 2 * int64_t(kBlock) * padded_dim + int64_t(kTileQueries) * kBlock * 4;
}

struct CodeKernels {
  const char* name;
  void (*rotate)(const RotationPlan& plan, float* x);

  // The best of kTrials steps. diagonal: nullptr or (padded_dim), no zeros within dim.
  Encoded (*encode)(const CodeShape& shape, const float* residual, const float* diagonal,
                    uint8_t* codes);

  // Quantises (query - anchor) · diagonal; anchor and diagonal may be nullptr.
  QuantizedQuery (*quantize)(const CodeShape& shape, const float* query, const float* anchor,
                             const float* diagonal, int8_t* bytes);

  // out[i * out_step + j] = <a row i, b row j>, rows of padded_dim floats.
  void (*products)(int32_t padded_dim, const float* a, int64_t a_count, const float* b,
                   int64_t b_count, float* out, int64_t out_step);

  // Scans the blocks of one list; `count` vectors.
  void (*scan)(const CodeShape& shape, const std::byte* blocks, int64_t count,
               const ScanTile& tile);

  // Around a thread's calls of scan.
  void (*begin)();
  void (*end)();
};

// Those this build has and this processor runs, the best one last.
std::span<const CodeKernels* const> available_code_kernels();

// What `setting` (the value of TESSERA_ISA, nullptr when unset) allows: never later instructions
// than it names. Throws when it names none.
const CodeKernels& choose_code_kernels(const char* setting);

const CodeKernels& code_kernels();

// For tests: what code_kernels returns from here on. Not thread safe.
void set_code_kernels(const CodeKernels& kernels);

// Points into the spec, which must outlive it.
CodeShape code_shape(const CodeSpec& spec);

}  // namespace tessera::lattice
