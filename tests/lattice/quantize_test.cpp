#include "tessera/lattice/quantize.h"

#include "code_fixture.h"
#include "support/expect_error.h"

namespace tessera::lattice {
namespace {

// Codes of one random residual.
struct Sample {
  std::vector<float> residual;
  std::vector<uint8_t> codes;
  Encoded encoded;
};

Sample sample(const Coder& coder, uint64_t seed, std::span<const float> diagonal = {}) {
  Sample s;
  s.residual = padded_row(coder.spec(), gaussians(seed, coder.spec().dim));
  s.codes.resize(size_t(coder.spec().padded_dim));
  s.encoded = coder.encode(s.residual, diagonal, s.codes);
  return s;
}

TEST(Quantize, AsGoodAsMeasuredForEveryBitWidth) {
  // 1 - cos² of a Gaussian residual; 1…5 from outside, then a quarter per bit or better.
  constexpr double kLoss[] = {0.363, 0.118, 0.036, 0.0107, 0.0031, 0.001, 0.0003, 0.0001};
  for (int32_t bits = 1; bits <= 8; ++bits) {
    const Coder coder(rotation_spec(128, bits, 1, 128));
    double loss = 0;
    for (uint64_t i = 0; i < 200; ++i) {
      const float cosine = sample(coder, i).encoded.cosine;
      loss += (1 - double(cosine) * cosine) / 200;
    }
    EXPECT_LT(loss, kLoss[bits - 1] * 1.06) << bits << " bits";
  }
}

TEST(Quantize, FactorsAreTheirFormulae) {
  for (const int32_t dim : {1, 7, 33, 100, 128}) {
    for (int32_t bits = 1; bits <= 8; ++bits) {
      const Coder coder(rotation_spec(dim, bits, 1, dim));
      const Sample s = sample(coder, 5);
      double n2 = 0, overlap = 0, self = 0;
      for (size_t j = 0; j < size_t(dim); ++j) {
        const double w = s.codes[j] - ((1 << bits) - 1) / 2.0;
        ASSERT_LT(s.codes[j], 1 << bits);
        n2 += double(s.residual[j]) * s.residual[j];
        overlap += s.residual[j] * w;
        self += w * w;
      }
      EXPECT_NEAR(s.encoded.n2, n2, 1e-5 * n2);
      EXPECT_NEAR(s.encoded.g, n2 / overlap, 1e-4 * n2 / overlap) << dim << " x " << bits;
      EXPECT_NEAR(s.encoded.cosine, overlap / std::sqrt(n2 * self), 1e-4) << dim << " x " << bits;
    }
  }
}

TEST(Quantize, DiagonalMultipliesTheLevels) {
  const Coder coder(rotation_spec(40, 3, 1, 40));
  std::vector<float> diagonal(64, 0.f);
  for (size_t j = 0; j < 40; ++j) diagonal[j] = 0.5f + float(j) / 20;
  const Sample s = sample(coder, 5, diagonal);
  double n2 = 0, overlap = 0, self = 0;
  for (size_t j = 0; j < 40; ++j) {
    const double w = (s.codes[j] - 3.5) * diagonal[j];
    n2 += double(s.residual[j]) * s.residual[j];
    overlap += s.residual[j] * w;
    self += w * w;
  }
  EXPECT_NEAR(s.encoded.g, n2 / overlap, 1e-4 * n2 / overlap);
  EXPECT_NEAR(s.encoded.cosine, overlap / std::sqrt(n2 * self), 1e-4);
}

TEST(Quantize, ZeroResidual) {
  const Coder coder(rotation_spec(20, 4, 1, 1));
  std::vector<uint8_t> codes(64);
  const Encoded e = coder.encode(std::vector<float>(64, 0.f), {}, codes);
  EXPECT_EQ(e.n2, 0);
  EXPECT_EQ(e.g, 0);
}

TEST(Quantize, EqualBitsOnEveryInstructionSet) {
  for (const int32_t dim : {20, 100, 128}) {
    for (int32_t bits = 1; bits <= 8; ++bits) {
      const Coder coder(rotation_spec(dim, bits, 1, dim));
      const std::vector<float> diagonal = padded_row(coder.spec(), mixture(3, 1, dim));
      for (const auto& d : {std::span<const float>(), std::span(diagonal)}) {
        std::optional<Sample> expected;
        with_each_kernels([&] {
          const Sample s = sample(coder, 5, d);
          if (!expected) expected = s;
          EXPECT_EQ(s.codes, expected->codes);
          EXPECT_EQ(s.encoded.g, expected->encoded.g);
          EXPECT_EQ(s.encoded.n2, expected->encoded.n2);
        });
      }
    }
  }
}

TEST(Quantize, DecodedVectorsAreClose) {
  for (const int32_t dim : {50, 128}) {
    const Coder coder(rotation_spec(dim, 6, 1, dim));
    const std::vector<float> x = gaussians(1, dim), anchor = gaussians(2, dim, 0.1f);
    std::vector<std::byte> blocks(size_t(2 * block_bytes(coder.spec())));
    coder.encode_rows(x, anchor, {}, blocks.data(), 37);
    const std::vector<float> y = coder.decode(blocks.data(), 37, anchor, {});
    EXPECT_LT(true_distance(Metric::l2, x, y), 0.002f * float(dim));
  }
}

TEST(CodeLayout, EveryWidthComesBack) {
  for (const int32_t dim : {1, 4, 30, 32, 33, 100, 128}) {
    for (int32_t bits = 1; bits <= 8; ++bits) {
      CodeSpec spec = rotation_spec(dim, bits, 1, 1);
      if (spec.group_bits.size() > 1) spec.group_bits[1] = uint8_t(8 - bits);
      std::vector<std::byte> block(size_t(block_bytes(spec)), std::byte(0xff));
      std::vector<std::vector<uint8_t>> codes(32);
      for (int slot = 31; slot >= 0; --slot) {
        codes[size_t(slot)].assign(size_t(spec.padded_dim), 0);
        for (int32_t j = 0; j < dim; ++j) {
          const uint32_t word = philox(9, uint64_t(slot), uint64_t(j))[0];
          codes[size_t(slot)][size_t(j)] =
              uint8_t(word & ((1u << spec.group_bits[size_t(j / 32)]) - 1));
        }
        pack_code(spec, block.data(), slot, codes[size_t(slot)], {float(slot), 2.f * float(slot)});
      }
      for (int slot = 0; slot < 32; ++slot) {
        std::vector<uint8_t> back(size_t(spec.padded_dim), 77);
        const CodeFactors f = unpack_code(spec, block.data(), slot, back);
        ASSERT_EQ(back, codes[size_t(slot)]) << dim << " x " << bits << " slot " << slot;
        EXPECT_EQ(f.n2, float(slot));
        EXPECT_EQ(f.g, 2.f * float(slot));
      }
    }
  }
}

TEST(CodeLayout, BytesPerVector) {
  EXPECT_EQ(block_bytes(rotation_spec(128, 4, 1, 1)), 32 * (64 + 4));
  EXPECT_EQ(block_bytes(rotation_spec(128, 7, 1, 1)), 32 * (112 + 4));
  EXPECT_EQ(block_bytes(rotation_spec(100, 4, 1, 1)), 32 * (52 + 4));
  EXPECT_EQ(block_bytes(rotation_spec(128, 0, 1, 1)), 0);
}

TEST(CodeLayout, FactorsKeepTheirPrecisionAtAnyScale) {
  for (const double mean : {1e-12, 1.0, 60000.0, 1e20}) {
    const CodeSpec spec = rotation_spec(128, 4, 1, mean);
    const float n2 = float(mean * 3), g = spec.step_ratio * std::sqrt(n2);
    const CodeFactors f = round_factors(spec, {n2, g});
    EXPECT_NEAR(f.n2 / n2, 1, 0.0005);
    EXPECT_NEAR(f.g / g, 1, 0.0005);
    EXPECT_TRUE(std::isfinite(round_factors(spec, {1e35f, 1e35f}).n2));
  }
}

TEST(CodeSpec, RefusesWhatItCannotHold) {
  EXPECT_EQ(error_text([&] { rotation_spec(0, 4, 1, 1); }),
            "codes: expected 1 to 16384 dimensions, got 0");
  EXPECT_EQ(error_text([&] { rotation_spec(8, 9, 1, 1); }),
            "codes: expected 0 to 8 bits a dimension, got 9");
}

TEST(CodeSpec, BytesComeBackAndLiesAreRefused) {
  CodeSpec spec = rotation_spec(70, 5, 12345, 3e4);
  EXPECT_EQ(code_spec_from_bytes(to_bytes(spec)), spec);
  CodeSpec pca = rotation_spec(2, 5, 0, 1);
  pca.transform = TransformKind::pca;
  pca.basis = {1, 0, 0, 1};
  const std::vector<std::byte> good = to_bytes(pca);
  EXPECT_EQ(code_spec_from_bytes(good), pca);
  CodeSpec fine = pca;  // no f16, so kept as it is
  fine.basis = {1, 1e-7f, -1e-7f, 1};
  EXPECT_EQ(code_spec_from_bytes(to_bytes(fine)), fine);
  EXPECT_EQ(to_bytes(fine).size(), good.size() + 8);

  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_THROW(code_spec_from_bytes(std::span(good).first(size)), Error) << size;
  }
  EXPECT_EQ(error_text([&] { code_spec_from_bytes({}); }),
            "code spec: it ends before all of its fields");
  std::vector<std::byte> bad = good;
  bad[0] = std::byte(9);
  EXPECT_EQ(error_text([&] { code_spec_from_bytes(bad); }),
            "code spec: expected version 1 to 4, got 9");
  bad = good;
  bad[9] = std::byte(7);
  EXPECT_EQ(error_text([&] { code_spec_from_bytes(bad); }), "code spec: no transform has number 7");
  CodeSpec lying = pca;
  lying.n2_exponent = 1000;
  EXPECT_EQ(error_text([&] { code_spec_from_bytes(to_bytes(lying)); }),
            "code spec: a unit or the step is out of range");
  lying = pca;
  lying.group_bits[0] = 9;
  EXPECT_EQ(error_text([&] { code_spec_from_bytes(to_bytes(lying)); }),
            "code spec: a group has 9 bits, expected at most 8");
  lying = pca;
  lying.basis[1] = NAN;
  EXPECT_EQ(error_text([&] { code_spec_from_bytes(to_bytes(lying)); }),
            "code spec: the basis holds a number that is not finite");
  lying = pca;
  lying.basis.pop_back();
  EXPECT_EQ(error_text([&] { code_spec_from_bytes(to_bytes(lying)); }),
            "code spec: expected 8 bytes of basis, got 6");
}

}  // namespace
}  // namespace tessera::lattice
