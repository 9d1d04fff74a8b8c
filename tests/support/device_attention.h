// Attention on a device beside the CPU's.
#pragma once

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

}  // namespace tessera::test
