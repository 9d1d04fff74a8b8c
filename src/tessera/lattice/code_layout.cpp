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

int64_t half_bytes(const CodeSpec& spec) {
  int64_t registers = 0;
  for (size_t g = 0; g < spec.group_bits.size(); ++g) {
    each_piece(spec.group_bits[g], quads_of_group(spec, g),
               [&](int, int, int count) { registers += count; });
  }
  return registers * kRegister;
}

uint32_t load_word(const void* from) {
  uint32_t word;
  std::memcpy(&word, from, sizeof word);
  return word;
}

// Calls use(word of the block, its place, width, shift, first quad, quads of that word).
template <class Byte, class Use>
void each_word(const CodeSpec& spec, Byte* block, int slot, Use use) {
  Byte* at = block + (slot / 16) * half_bytes(spec) + slot % 16 * 4;
  for (size_t g = 0; g < spec.group_bits.size(); ++g) {
    const int quads = quads_of_group(spec, g);
    each_piece(spec.group_bits[g], quads, [&](int width, int shift, int registers) {
      const int of_word = 8 / width;
      for (int r = 0; r < registers; ++r, at += kRegister) {
        use(at, width, shift, int(g) * kQuads + r * of_word,
            std::min(of_word, quads - r * of_word));
      }
    });
  }
}

constexpr uint32_t piece_mask(int width) { return ((1u << width) - 1) * 0x01010101u; }

f16 factor(float value, int32_t exponent) {
  return f16(std::min(std::ldexp(value, -exponent), 65504.f));
}

}  // namespace

int64_t block_bytes(const CodeSpec& spec) {
  return spec.bits == 0 ? 0 : 2 * half_bytes(spec) + kFactorBytes;
}

CodeFactors round_factors(const CodeSpec& spec, CodeFactors factors) {
  return {std::ldexp(float(factor(factors.n2, spec.n2_exponent)), spec.n2_exponent),
          std::ldexp(float(factor(factors.g, spec.g_exponent)), spec.g_exponent)};
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
  const f16 n2 = factor(factors.n2, spec.n2_exponent), g = factor(factors.g, spec.g_exponent);
  std::byte* tail = block + 2 * half_bytes(spec) + slot * 2;
  std::memcpy(tail, &n2.bits, 2);
  std::memcpy(tail + kBlock * 2, &g.bits, 2);
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
  f16 n2, g;
  const std::byte* tail = block + 2 * half_bytes(spec) + slot * 2;
  std::memcpy(&n2.bits, tail, 2);
  std::memcpy(&g.bits, tail + kBlock * 2, 2);
  return {std::ldexp(float(n2), spec.n2_exponent), std::ldexp(float(g), spec.g_exponent)};
}

}  // namespace tessera::lattice
