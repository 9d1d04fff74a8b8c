// What an attention op has beside q, k and v: bits of Attrs::axis in the graph and of
// KernelAttrs::axis in a call. The operands they name follow in this order.
#pragma once

#include <cstdint>

namespace tessera {

inline constexpr int64_t kAttentionCausal = 1;   // query t sees keys up to t + S - T
inline constexpr int64_t kAttentionMask = 2;     // mask (B, H, T, S), bool or of the compute type
inline constexpr int64_t kAttentionLengths = 4;  // lengths (B) i64
inline constexpr int64_t kAttentionDropout = 8;  // key, offset: 0-d i64

// How many operands `options` name.
inline constexpr int attention_operands(int64_t options) {
  return (options & kAttentionMask ? 1 : 0) + (options & kAttentionLengths ? 1 : 0) +
         (options & kAttentionDropout ? 2 : 0);
}

}  // namespace tessera
