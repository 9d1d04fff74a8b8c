#include "support/device_attention.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tessera/tessera.h"

namespace tessera::test {
namespace {

using Lists = std::vector<std::vector<float>>;

// In [-2, 2), the same on every device.
Tensor noise(const Shape& shape, uint32_t seed, DType dtype) {
  std::vector<float> values(size_t(numel(shape)));
  for (float& value : values) {
    seed = seed * 1664525u + 1013904223u;
    value = float(seed >> 8) / float(1 << 22) - 2;
  }
  return cast(tensor(values, shape), dtype);
}

// y and the gradients of q, k and v.
Lists results(Device where, const AttentionSpec& x) {
  set_default_device(where);
  const Tensor q = noise({x.b, x.h, x.t, x.d}, 1, x.dtype);
  const Tensor k = noise({x.b, x.g, x.s, x.d}, 2, x.dtype);
  const Tensor v = noise({x.b, x.g, x.s, x.e}, 3, x.dtype);
  AttentionOptions options = {.causal = x.causal};
  const Random random(3);
  if (x.masked) options.mask = noise({1, x.h, x.t, x.s}, 4, DType::f32);
  if (x.lengths) {
    std::vector<int64_t> lengths;
    for (int64_t i = 0; i < x.b; ++i) lengths.push_back((i * 7 + 3) % (x.s + 1));
    options.lengths = tensor(lengths, {x.b});
  }
  if (x.dropout > 0) {
    options.dropout = x.dropout;
    options.random = &random;
  }
  const Tensor y = attention(q, k, v, options);
  const Tensor loss = sum(cast(y, DType::f32) * noise(y.shape(), 5, DType::f32));
  std::vector<Tensor> all = grad(loss, {q, k, v});
  all.insert(all.begin(), y);
  Lists lists;
  for (const Tensor& one : all) lists.push_back(cast(one, DType::f32).to_vector<float>());
  return lists;
}

}  // namespace

void check_attention(const AttentionSpec& x, Device device, double tolerance) {
  SCOPED_TRACE(cat(x.b, "x", x.h, ", ", x.t, " on ", x.s, ", ", x.d, " and ", x.e, " columns, ",
                   name(x.dtype)));
  const Lists here = results(device, x), there = results(DeviceKind::cpu, x);
  ASSERT_EQ(here.size(), there.size());
  for (size_t i = 0; i < here.size(); ++i) {
    double largest = 0;
    for (const float value : there[i]) largest = std::max<double>(largest, std::abs(value));
    ASSERT_EQ(here[i].size(), there[i].size());
    for (size_t j = 0; j < here[i].size(); ++j) {
      ASSERT_NEAR(here[i][j], there[i][j], tolerance * largest) << i << " " << j;
    }
  }
}

}  // namespace tessera::test
