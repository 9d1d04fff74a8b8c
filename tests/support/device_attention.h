// Attention on a device beside the CPU's.
#pragma once

#include <vector>

#include "tessera/base/device.h"
#include "tessera/base/dtype.h"

namespace tessera::test {

struct AttentionSpec {
  int64_t b, h, g, t, s, d, e;
  bool causal = false;
  bool masked = false;   // by what is added
  bool lengths = false;  // of keys, by sequence
  double dropout = 0;
  DType dtype = DType::bf16;
};

// The result and the gradients of q, k and v are within `tolerance` of the largest of the CPU's.
void check_attention(const AttentionSpec& spec, Device device, double tolerance);

// Sizes around the borders of tiles, narrow and wide heads, f32 and f64, and halves that tensor
// cores do not take.
const std::vector<AttentionSpec>& attention_tiles();
void check_attention_tile(const AttentionSpec& spec, Device device);

// The same of a layer: q, k and v are parts of one product, and the results of all heads, side by
// side, are a factor of another; t and s, d and e are equal. Nothing copies what attention wrote,
// and where it lies does not change a bit. REQUIRES a device whose kernels write with any strides.
void check_attention_layer(const AttentionSpec& spec, Device device, double tolerance);

}  // namespace tessera::test
