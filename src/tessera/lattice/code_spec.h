// What the codes of an index look like: everything that encoding, scanning and the index file must
// agree on. A code gives each transformed dimension a whole number of bits, the same for all
// dimensions of a group of 32; with a random rotation all groups have as many.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tessera::lattice {

constexpr int32_t kBlock = 32;        // vectors of a block
constexpr int32_t kGroup = 32;        // dimensions that share a number of bits
constexpr int32_t kMostDims = 16384;  // sums of products stay within 32 bits
constexpr int32_t kMostBits = 8;

enum class TransformKind : uint8_t { rotation, pca };

struct CodeSpec {
  int32_t dim = 0;
  int32_t padded_dim = 0;  // of vectors in kernels: a multiple of 64, filled up with zeros
  int32_t bits = 0;        // a dimension, on average; 0: no codes, the anchors alone
  TransformKind transform = TransformKind::rotation;
  uint64_t seed = 0;                // of the rotation
  int32_t n2_exponent = 0;          // n2 is stored in units of 2^n2_exponent
  int32_t g_exponent = 0;           // g in units of 2^g_exponent
  float step_ratio = 0;             // the middle one of the steps that are tried, over |residual|
  std::vector<uint8_t> group_bits;  // (ceil(dim / kGroup)), each 0…8
  std::vector<float> basis;         // (dim, dim) of a PCA, an axis a row; otherwise empty
  bool planes = false;              // the top bits lie apart from the others: code_layout.h

  bool operator==(const CodeSpec&) const = default;
};

// Codes of `bits` a dimension after the rotation of `seed`. `mean_n2`: the mean squared length of
// the residuals to come, to within a factor of 1,000; it sets the units of the factors.
CodeSpec rotation_spec(int32_t dim, int32_t bits, uint64_t seed, double mean_n2);

// Sets the units of n2 and g for residuals of that mean squared length.
void set_units(CodeSpec& spec, double mean_n2);

// The step of an optimal uniform quantiser of `bits` for a Gaussian, over its deviation.
float gaussian_step(int32_t bits);

// Whether f16 holds all of them exactly; index files keep such numbers so.
bool are_halves(std::span<const float> numbers);

// Bits of a group's codes that are in the hot plane, and in the cold ones.
constexpr int hot_bits(int bits) { return bits > 0 ? 1 : 0; }
constexpr int cold_bits(int bits) { return bits > 0 ? bits - 1 : 0; }

// For the index file. from_bytes checks everything and throws Error.
std::vector<std::byte> to_bytes(const CodeSpec& spec);
CodeSpec code_spec_from_bytes(std::span<const std::byte> bytes);

}  // namespace tessera::lattice
