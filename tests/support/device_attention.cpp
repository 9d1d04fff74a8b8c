#include "support/device_attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tessera/tensor/eval.h"
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

AttentionOptions options_of(const AttentionSpec& x, const Random& random) {
  AttentionOptions options = {.causal = x.causal};
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
  return options;
}

Lists lists_of(const std::vector<Tensor>& all) {
  Lists lists;
  for (const Tensor& one : all) lists.push_back(cast(one, DType::f32).to_vector<float>());
  return lists;
}

// y and the gradients of q, k and v.
Lists results(Device where, const AttentionSpec& x) {
  set_default_device(where);
  const Tensor q = noise({x.b, x.h, x.t, x.d}, 1, x.dtype);
  const Tensor k = noise({x.b, x.g, x.s, x.d}, 2, x.dtype);
  const Tensor v = noise({x.b, x.g, x.s, x.e}, 3, x.dtype);
  const Random random(3);
  const Tensor y = attention(q, k, v, options_of(x, random));
  const Tensor loss = sum(cast(y, DType::f32) * noise(y.shape(), 5, DType::f32));
  std::vector<Tensor> all = grad(loss, {q, k, v});
  all.insert(all.begin(), y);
  return lists_of(all);
}

struct LayerResults {
  Lists values;  // of the layer, and the gradients of its input and of both weights
  int copies, concats;
};

LayerResults layer_results(Device where, const AttentionSpec& x, bool orders) {
  set_default_device(where);
  CompileOptions compiling;
  compiling.order_outputs = orders;
  compiling.verify = true;
  const CompileOptions before = set_compile_options(compiling);
  const int64_t width = x.h * x.d, kv = x.g * x.d;
  const std::vector<Tensor> in = {noise({x.b, x.t, 24}, 1, x.dtype),
                                  noise({24, width + 2 * kv}, 2, x.dtype) * 0.1,
                                  noise({width, 24}, 3, x.dtype)};
  const Tensor slope = noise({x.b, x.t, 24}, 5, DType::f32);
  const auto heads = [&](const Tensor& part) {
    return permute(reshape(part, {x.b, x.t, part.size(2) / x.d, x.d}), {0, 2, 1, 3});
  };
  const Random random(3);
  auto step = compile([&] {
    const std::vector<Tensor> parts =
        split(matmul(in[0], in[1]), std::vector<int64_t>{width, kv, kv}, -1);
    const Tensor mixed =
        attention(heads(parts[0]), heads(parts[1]), heads(parts[2]), options_of(x, random));
    const Tensor y = matmul(flatten(permute(mixed, {0, 2, 1, 3}), 2), in[2]);
    std::vector<Tensor> all = grad(sum(cast(y, DType::f32) * slope), in);
    all.insert(all.begin(), y);
    return all;
  });
  const Lists values = lists_of(step());
  set_compile_options(before);
  const Program& program = step.program();
  const auto joins = [](const Instruction& each) {
    return each.label.find("concat") != std::string::npos ||
           each.label.find("pad") != std::string::npos;
  };
  return {values, program.report.copies, int(std::ranges::count_if(program.instructions, joins))};
}

void expect_near(const Lists& here, const Lists& there, double tolerance) {
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

std::string text_of(const AttentionSpec& x) {
  return cat(x.b, "x", x.h, ", ", x.t, " on ", x.s, ", ", x.d, " and ", x.e, " columns, ",
             name(x.dtype));
}

}  // namespace

void check_attention(const AttentionSpec& x, Device device, double tolerance) {
  SCOPED_TRACE(text_of(x));
  const Lists here = results(device, x);
  expect_near(here, results(DeviceKind::cpu, x), tolerance);
}

const std::vector<AttentionSpec>& attention_tiles() {
  constexpr DType f32 = DType::f32, f64 = DType::f64;
  static const std::vector<AttentionSpec> tiles = {
      {2, 2, 1, 129, 161, 64, 64, true, false, false, 0, f32},
      {1, 4, 2, 127, 95, 64, 64, true, false, false, 0, f32},  // queries that see no key
      {1, 2, 1, 65, 63, 80, 80, false, false, false, 0, f32},
      {1, 2, 1, 100, 100, 128, 128, true, false, false, 0, f32},
      {2, 1, 1, 70, 70, 1, 1, true, false, false, 0, f32},
      {2, 1, 1, 33, 31, 3, 5, true, false, true, 0, f32},
      {2, 4, 2, 130, 130, 64, 24, true, true, true, 0.25, f32},
      {1, 1, 1, 40, 24, 200, 300, true, false, false, 0, f32},
      {1, 1, 1, 5, 6, 900, 700, true, false, false, 0, f32},
      {1, 2, 1, 129, 70, 64, 64, true, false, false, 0, f64},
      {2, 2, 2, 40, 66, 7, 33, false, true, true, 0.25, f64},
      {1, 2, 1, 70, 65, 12, 20, true}};
  return tiles;
}

void check_attention_tile(const AttentionSpec& x, Device device) {
  check_attention(x, device, x.dtype == DType::f64 ? 2e-7 : x.dtype == DType::f32 ? 1e-5 : 0.015);
}

void check_attention_layer(const AttentionSpec& x, Device device, double tolerance) {
  SCOPED_TRACE(text_of(x));
  const LayerResults here = layer_results(device, x, true);
  const LayerResults in_order = layer_results(device, x, false);
  EXPECT_EQ(here.copies, 0);
  EXPECT_EQ(here.concats, 0);
  // Of y and dq, of dk and dv; one head is in order anyway.
  EXPECT_EQ(in_order.copies, (x.h > 1 ? 2 : 0) + (x.g > 1 ? 2 : 0));
  EXPECT_EQ(in_order.concats, 1);
  EXPECT_EQ(here.values, in_order.values);
  expect_near(here.values, layer_results(DeviceKind::cpu, x, true).values, tolerance);
}

}  // namespace tessera::test
