// Rendered maps, run on the host and compared with plain loops.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "codegen/host_kernel.h"
#include "codegen/zoo.h"
#include "kernel/ir_builder.h"
#include "tessera/base/philox.h"

namespace tessera {
namespace {

class RenderedMap : public testing::TestWithParam<RenderOptions> {
 protected:
  void SetUp() override {
    const std::string reason = host_compiler_missing();
    if (!reason.empty()) GTEST_SKIP() << reason;
  }
};

INSTANTIATE_TEST_SUITE_P(Promises, RenderedMap, testing::ValuesIn(promised_options()),
                         promise_name);

std::vector<float> ramp(int64_t n, float start, float step) {
  std::vector<float> values;
  for (int64_t i = 0; i < n; ++i) values.push_back(start + step * float(i));
  return values;
}

TEST_P(RenderedMap, ChainsAndBroadcasts) {
  const HostKernel kernel(golden_kernels()[0], GetParam());
  for (const int64_t n : {0, 1, 4, 17}) {
    const std::vector<float> x = ramp(n * 6, -3, 0.125f), bias = ramp(6, -1, 0.5f);
    std::vector<float> y(size_t(n * 6) + 1, -7);
    EXPECT_EQ(kernel(n, x, bias, y), 0);
    for (size_t i = 0; i < size_t(n * 6); ++i) {
      EXPECT_FLOAT_EQ(y[i], std::exp(x[i] * 0.5f + bias[i % 6]));
    }
    EXPECT_EQ(y.back(), -7) << "written past the end";
  }
}

TEST_P(RenderedMap, TakesAnyNumberOfElements) {
  const HostKernel kernel(golden_kernels()[8], GetParam());  // gelu(x) · g in bf16
  for (const int64_t n : {0, 1, 7, 8, 9, 1003}) {
    std::vector<bf16> x, g(size_t(n), bf16(2.0f)), y(size_t(n) + 1, bf16(-7.0f));
    for (int64_t i = 0; i < n; ++i) x.push_back(bf16(float(i % 40) * 0.125f - 2.5f));
    EXPECT_EQ(kernel(n, x, g, y), 0);
    for (size_t i = 0; i < size_t(n); ++i) {
      const double v = double(float(x[i]));
      const double gelu = v / 2 * (1 + std::tanh(0.7978845608 * (v + 0.044715 * v * v * v)));
      EXPECT_NEAR(float(y[i]), 2 * gelu, 0.01 * std::fabs(gelu) + 1e-4);
    }
    EXPECT_EQ(float(y.back()), -7) << "written past the end";
  }
}

// Lanes that take so many accesses each and are done: also where the last of them have none, and
// into the memory of an input.
TEST_P(RenderedMap, TakesATurnOrTwo) {
  constexpr int64_t kMany = 1 << 20;  // groups: as many as the text asks for
  for (const int turns : {1, 2, 4}) {
    RenderOptions options = GetParam();
    options.turns = turns;
    const HostKernel kernel(golden_kernels()[8], options), strided(golden_kernels()[1], options);
    for (const int64_t n : {0, 1, 7, 8, 9, 129, 1003}) {
      std::vector<bf16> x, g(size_t(n) + 1, bf16(2.0f));
      for (int64_t i = 0; i < n; ++i) x.push_back(bf16(float(i % 40) * 0.125f - 2.5f));
      EXPECT_EQ(kernel.run({x.data(), g.data(), g.data()}, n, kMany), 0);
      for (size_t i = 0; i < size_t(n); ++i) {
        const double v = double(float(x[i]));
        const double gelu = v / 2 * (1 + std::tanh(0.7978845608 * (v + 0.044715 * v * v * v)));
        EXPECT_NEAR(float(g[i]), 2 * gelu, 0.01 * std::fabs(gelu) + 1e-4) << turns << " " << i;
      }
      EXPECT_EQ(float(g.back()), 2) << "written past the end";
    }
    const bool is_wide = kernel.rendered().source.find("u16x8") != std::string::npos;
    EXPECT_EQ(kernel.rendered().per_group,
              kernel.rendered().group_size * (is_wide ? 8 * turns : 1));
    EXPECT_EQ(strided.rendered().per_group, strided.rendered().group_size);
  }
}

TEST_P(RenderedMap, WalksNegativeStridesAndWrapsIntegers) {
  const HostKernel kernel(golden_kernels()[1], GetParam());
  std::vector<int32_t> x(30), y(30);
  for (size_t i = 0; i < 30; ++i) x[i] = int32_t(i * 7919 + 12345);
  EXPECT_EQ(kernel(3, x, y), 0);
  for (size_t i = 0; i < 3; ++i) {
    for (size_t j = 0; j < 2; ++j) {
      for (size_t k = 0; k < 5; ++k) {
        const auto v = uint32_t(x[15 + i - 15 * j + 3 * k]);
        EXPECT_EQ(y[i * 10 + j * 5 + k], int32_t(0u - v * v));
      }
    }
  }
}

TEST_P(RenderedMap, MaskedLoadsConcatenateAndPad) {
  const HostKernel kernel(golden_kernels()[2], GetParam());
  const std::vector<float> p = ramp(12, 100, 1), q = ramp(8, 200, 1);
  std::vector<float> y(24);
  EXPECT_EQ(kernel(4, p, q, y), 0);
  for (size_t i = 0; i < 4; ++i) {
    for (size_t j = 0; j < 6; ++j) {
      const float expected = j < 3 ? p[i * 3 + j] : j < 5 ? q[i * 2 + j - 3] : -1.0f;
      EXPECT_EQ(y[i * 6 + j], expected);
    }
  }
}

TEST_P(RenderedMap, MasksOuterAndUnitDimensions) {
  IrBuilder b("pad", {5, 1, 3}, 2);
  const int x = b.in(DType::f32), y = b.out(DType::f32), z = b.out(DType::f32);
  const int fill = b.constant(DType::f32, 9);
  b.store(y, {3, 3, 1}, b.load_masked(x, {3, 50, 1}, -3, {1, 0, 0}, {3, 1, 3}, fill));
  b.store(z, {3, 3, 1}, b.load_masked(x, {3, 50, 1}, 0, {0, 1, 0}, {5, 2, 3}, fill));
  const HostKernel kernel(b.build(), GetParam());
  const std::vector<float> in = ramp(6, 0, 1);
  std::vector<float> padded(15), outside(15);
  EXPECT_EQ(kernel(5, in, padded, outside), 0);
  for (size_t i = 0; i < 15; ++i) {
    EXPECT_EQ(padded[i], i >= 3 && i < 9 ? in[i - 3] : 9.0f);
    EXPECT_EQ(outside[i], 9.0f);
  }
}

TEST_P(RenderedMap, IndexedLoadsFlagBadIndices) {
  const HostKernel kernel(golden_kernels()[3], GetParam());
  std::vector<bf16> table;
  for (int i = 0; i < 30; ++i) table.push_back(bf16(float(i)));
  std::vector<int32_t> index = {9, 0, 3, 3, 1};
  std::vector<f16> y(15);
  EXPECT_EQ(kernel(5, table, index, y), 0);
  for (size_t i = 0; i < 15; ++i) EXPECT_EQ(float(y[i]), float(index[i / 3]) * 3 + float(i % 3));

  for (const int32_t bad : {10, -1, std::numeric_limits<int32_t>::min()}) {
    index[2] = bad;
    EXPECT_EQ(kernel(5, table, index, y), 1);
    for (size_t i = 0; i < 15; ++i) {
      const float expected = i / 3 == 2 ? 0 : float(index[i / 3]) * 3 + float(i % 3);
      EXPECT_EQ(float(y[i]), expected);
    }
  }
}

TEST_P(RenderedMap, IgnoresIndicesOutsideTheMask) {
  IrBuilder b("gather pad", {4, 2}, 1);
  const int x = b.in(DType::f32), index = b.in(DType::i64), y = b.out(DType::f32);
  const int fill = b.constant(DType::f32, -5);
  const int i = b.load(index, {1, 0});
  b.store(y, {2, 1}, b.load_masked_indexed(x, {0, 1}, {1, 0}, {3, 2}, fill, i, 2, 3));
  const HostKernel kernel(b.build(), GetParam());
  const std::vector<float> in = ramp(6, 0, 1);
  std::vector<int64_t> indices = {99, 2, 0, -4};
  std::vector<float> out(8);
  EXPECT_EQ(kernel(4, in, indices, out), 0);
  EXPECT_EQ(out, (std::vector<float>{-5, -5, 4, 5, 0, 1, -5, -5}));
  indices[1] = 3;
  EXPECT_EQ(kernel(4, in, indices, out), 1);
  EXPECT_EQ(out, (std::vector<float>{-5, -5, -5, -5, 0, 1, -5, -5}));
}

TEST_P(RenderedMap, UniformGivesTheBitsOfPhilox) {
  const HostKernel kernel(golden_kernels()[4], GetParam());
  const std::vector<float> x = ramp(100, 1, 1);
  const std::vector<int64_t> state = {-0x123456789abcdef, int64_t{0xffffffff}};
  std::vector<float> y(100);
  std::vector<uint8_t> mask(100);
  EXPECT_EQ(kernel(100, x, state, y, mask), 0);
  int kept = 0;
  for (int64_t i = 0; i < 100; ++i) {
    const bool keep = philox_uniform(i, state[0], state[1]) < 0.9f;
    kept += keep;
    EXPECT_EQ(mask[size_t(i)], keep);
    EXPECT_EQ(y[size_t(i)], keep ? x[size_t(i)] / 0.9f : 0.0f);
  }
  EXPECT_GT(kept, 70);
  EXPECT_LT(kept, 100);

  IrBuilder b("uniform", {64}, 0);
  const int s = b.in(DType::i64), u = b.out(DType::f32);
  const int draw =
      b.scalar(ScalarOp::uniform, {b.index({-3}, 1000), b.load(s, {0}), b.load(s, {0}, 1)});
  b.store(u, {1}, draw);
  EXPECT_EQ(HostKernel(b.build(), GetParam())(64, state, y), 0);
  for (int64_t i = 0; i < 64; ++i) {
    EXPECT_EQ(y[size_t(i)], philox_uniform(1000 - 3 * i, state[0], state[1]));
  }
}

// x of `from` is copied into an output of `to`, element by element.
HostKernel conversion(DType from, DType to) {
  IrBuilder b("convert", {1}, 0);
  const int x = b.in(from), y = b.out(to);
  b.store(y, {1}, b.load(x, {1}));
  return HostKernel(b.build(), 1);
}

template <class Half>
void expect_same_conversions(DType half) {
  std::vector<uint16_t> bits(65536), back(65536);
  for (size_t i = 0; i < bits.size(); ++i) bits[i] = uint16_t(i);
  std::vector<float> wide(65536);
  EXPECT_EQ(conversion(half, DType::f32)(65536, bits, wide), 0);
  for (size_t i = 0; i < bits.size(); ++i) {
    Half h;
    h.bits = bits[i];
    ASSERT_EQ(std::bit_cast<uint32_t>(wide[i]), std::bit_cast<uint32_t>(float(h))) << i;
  }
  // Every exponent and sign, and mantissas around the points where rounding turns.
  std::vector<uint32_t> patterns;
  for (uint32_t top = 0; top < 65536; ++top) {
    for (const uint32_t low : {0u, 1u, 0xfffu, 0x1000u, 0x1001u, 0x7fffu, 0x8000u, 0x8001u}) {
      patterns.push_back(top << 16 | low);
    }
  }
  std::vector<uint16_t> narrow(patterns.size());
  EXPECT_EQ(conversion(DType::f32, half)(int64_t(patterns.size()), patterns, narrow), 0);
  for (size_t i = 0; i < patterns.size(); ++i) {
    ASSERT_EQ(narrow[i], Half(std::bit_cast<float>(patterns[i])).bits) << std::hex << patterns[i];
  }
}

TEST_P(RenderedMap, ConvertsF16BitByBit) { expect_same_conversions<f16>(DType::f16); }
TEST_P(RenderedMap, ConvertsBf16BitByBit) { expect_same_conversions<bf16>(DType::bf16); }

TEST_P(RenderedMap, WritesLiteralsExactly) {
  const double inf = HUGE_VAL, nan = std::nan("");
  const double values[] = {0.0, -0.0, 1, 0.1, -1e-45, 3.4028235e38, inf, -inf, nan, 1e300};
  const int64_t integers[] = {0,         -1,         127,       -128,     INT32_MAX,
                              INT32_MIN, UINT32_MAX, INT64_MAX, INT64_MIN};
  IrBuilder b("literals", {1}, 0);
  for (const double value : values) {
    b.store(b.out(DType::f32), {1}, b.constant(DType::f32, value));
    b.store(b.out(DType::f64), {1}, b.constant(DType::f64, value));
  }
  const DType integer_types[] = {DType::i8, DType::i32, DType::i64, DType::u8, DType::u32};
  for (const int64_t value : integers) {
    for (const DType dtype : integer_types) {
      b.store(b.out(dtype), {1}, b.integer(dtype, value));
    }
  }
  const KernelIR ir = b.build();
  std::vector<uint64_t> results(ir.operands.size());
  std::vector<void*> operands;
  for (uint64_t& result : results) operands.push_back(&result);
  EXPECT_EQ(HostKernel(ir, 1).run(operands, 1), 0);

  size_t at = 0;
  for (const double value : values) {
    EXPECT_EQ(results[at++], std::bit_cast<uint32_t>(float(value)));
    EXPECT_EQ(results[at++], std::bit_cast<uint64_t>(value));
  }
  for (const int64_t value : integers) {
    for (const DType dtype : integer_types) {
      const uint64_t low_bytes = ~uint64_t{0} >> (64 - 8 * size_of(dtype));
      EXPECT_EQ(results[at++], uint64_t(value) & low_bytes) << value << " " << name(dtype);
    }
  }
}

}  // namespace
}  // namespace tessera
