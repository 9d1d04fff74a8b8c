#include "tessera/lattice/code_layout.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tessera/base/error.h"
#include "tessera/base/half.h"

namespace tessera::lattice {

namespace {

constexpr int kQuads = kGroup / 4;  // of a group
constexpr int64_t kRegister = 64;
constexpr int64_t kFactorBytes = 2 * kBlock * 2;

// Calls use(width, shift, registers) for the pieces of a group that has `quads` quads.
template <class Use>
void each_piece(int bits, int quads, Use use) {
  int rest = bits;
  for (const int width : {8, 4, 2, 1}) {
    if ((bits & width) == 0) continue;
    rest -= width;
    use(width, rest, (quads * width + 7) / 8);
  }
}

int quads_of_group(const CodeSpec& spec, size_t group) {
  return std::min(kQuads, (spec.dim - int32_t(group) * kGroup + 3) / 4);
}

// Which bits of a group's codes are meant.
using Bits = int (*)(int bits);
int all_bits(int bits) { return bits; }

int64_t registers_of_half(const CodeSpec& spec, Bits bits_of) {
  int64_t registers = 0;
  for (size_t g = 0; g < spec.group_bits.size(); ++g) {
    each_piece(bits_of(spec.group_bits[g]), quads_of_group(spec, g),
               [&](int, int, int count) { registers += count; });
  }
  return registers;
}

int64_t half_bytes(const CodeSpec& spec, Bits bits_of) {
  return registers_of_half(spec, bits_of) * kRegister;
}

uint32_t load_word(const void* from) {
  uint32_t word;
  std::memcpy(&word, from, sizeof word);
  return word;
}

// Calls use(place of a word, width, shift, first quad, quads of that word) for words that lie
// `step` bytes apart. Shifts are from the lowest of the bits that are meant.
template <class Byte, class Use>
void each_word(const CodeSpec& spec, Bits bits_of, Byte* at, int64_t step, Use use) {
  for (size_t g = 0; g < spec.group_bits.size(); ++g) {
    const int quads = quads_of_group(spec, g), bits = bits_of(spec.group_bits[g]);
    const int below = bits_of == hot_bits ? cold_bits(spec.group_bits[g]) : 0;
    each_piece(bits, quads, [&](int width, int shift, int registers) {
      const int of_word = 8 / width;
      for (int r = 0; r < registers; ++r, at += step) {
        use(at, width, shift + below, int(g) * kQuads + r * of_word,
            std::min(of_word, quads - r * of_word));
      }
    });
  }
}

// The same for all words of a vector in a block.
template <class Byte, class Use>
void each_word(const CodeSpec& spec, Byte* block, int slot, Use use) {
  const Bits bits_of = spec.planes ? hot_bits : all_bits;
  each_word(spec, bits_of, block + (slot / 16) * half_bytes(spec, bits_of) + slot % 16 * 4,
            kRegister, use);
  if (!spec.planes) return;
  each_word(spec, cold_bits, block + hot_bytes(spec) + slot * row_bytes(spec), 4, use);
}

constexpr uint32_t piece_mask(int width) { return ((1u << width) - 1) * 0x01010101u; }

f16 factor(float value, int32_t exponent) {
  return f16(std::min(std::ldexp(value, -exponent), 65504.f));
}

// Where the factors of a slot are.
struct FactorPlaces {
  int64_t n2, g, hot;  // hot: -1 where there is none
};

FactorPlaces factor_places(const CodeSpec& spec, int slot) {
  if (!spec.planes) {
    const int64_t at = 2 * half_bytes(spec, all_bits) + slot * 2;
    return {at, at + kBlock * 2, -1};
  }
  const int64_t at = 2 * half_bytes(spec, hot_bits) + slot * 2;
  return {at, hot_bytes(spec) + (slot + 1) * row_bytes(spec) - 2, at + kBlock * 2};
}

void put_factor(std::byte* to, float value, int32_t exponent) {
  const f16 half = factor(value, exponent);
  std::memcpy(to, &half.bits, 2);
}

float get_factor(const std::byte* from, int32_t exponent) {
  f16 half;
  std::memcpy(&half.bits, from, 2);
  return std::ldexp(float(half), exponent);
}

}  // namespace

int64_t block_bytes(const CodeSpec& spec) {
  if (spec.bits == 0) return 0;
  if (spec.planes) return hot_bytes(spec) + kBlock * row_bytes(spec);
  return 2 * half_bytes(spec, all_bits) + kFactorBytes;
}

int64_t hot_bytes(const CodeSpec& spec) {
  return spec.planes ? 2 * half_bytes(spec, hot_bits) + kFactorBytes : 0;
}

int64_t row_bytes(const CodeSpec& spec) {
  return spec.planes ? 4 * registers_of_half(spec, cold_bits) + 2 : 0;
}

CodeFactors round_factors(const CodeSpec& spec, CodeFactors factors) {
  const auto rounded = [](float value, int32_t exponent) {
    return std::ldexp(float(factor(value, exponent)), exponent);
  };
  return {rounded(factors.n2, spec.n2_exponent), rounded(factors.g, spec.g_exponent),
          rounded(factors.hot, spec.g_exponent)};
}

void pack_code(const CodeSpec& spec, std::byte* block, int slot, std::span<const uint8_t> codes,
               CodeFactors factors) {
  TESSERA_ASSERT(spec.bits > 0 && slot >= 0 && slot < kBlock);
  TESSERA_ASSERT(codes.size() == size_t(spec.padded_dim));
  each_word(spec, block, slot, [&](std::byte* at, int width, int shift, int quad, int count) {
    uint32_t word = 0;
    for (int k = 0; k < count; ++k) {
      const uint32_t bytes = load_word(&codes[size_t(4 * (quad + k))]);
      word |= (bytes >> shift & piece_mask(width)) << (width * k);
    }
    std::memcpy(at, &word, sizeof word);
  });
  const FactorPlaces at = factor_places(spec, slot);
  put_factor(block + at.n2, factors.n2, spec.n2_exponent);
  put_factor(block + at.g, factors.g, spec.g_exponent);
  if (at.hot >= 0) put_factor(block + at.hot, factors.hot, spec.g_exponent);
}

CodeFactors unpack_code(const CodeSpec& spec, const std::byte* block, int slot,
                        std::span<uint8_t> codes) {
  TESSERA_ASSERT(spec.bits > 0 && slot >= 0 && slot < kBlock);
  TESSERA_ASSERT(codes.size() == size_t(spec.padded_dim));
  std::fill(codes.begin(), codes.end(), uint8_t(0));
  each_word(spec, block, slot, [&](const std::byte* at, int width, int shift, int quad, int count) {
    const uint32_t word = load_word(at);
    for (int k = 0; k < count; ++k) {
      uint8_t* to = &codes[size_t(4 * (quad + k))];
      const uint32_t bytes = load_word(to) | (word >> (width * k) & piece_mask(width)) << shift;
      std::memcpy(to, &bytes, sizeof bytes);
    }
  });
  std::fill(codes.begin() + spec.dim, codes.end(), uint8_t(0));
  const FactorPlaces at = factor_places(spec, slot);
  return {get_factor(block + at.n2, spec.n2_exponent), get_factor(block + at.g, spec.g_exponent),
          at.hot < 0 ? 0 : get_factor(block + at.hot, spec.g_exponent)};
}

}  // namespace tessera::lattice
