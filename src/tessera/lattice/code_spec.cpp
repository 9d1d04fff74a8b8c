#include "tessera/lattice/code_spec.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tessera/base/error.h"
#include "tessera/base/half.h"

namespace tessera::lattice {

namespace {

// The version of the bytes is 1 plus these.
constexpr uint8_t kHalfBasis = 1;  // the basis is f16, where that is exact, not f32
constexpr uint8_t kPlanes = 2;

int32_t round_up(int32_t n, int32_t unit) { return (n + unit - 1) / unit * unit; }

int32_t padded(int32_t dim) { return round_up(dim, 64); }

int32_t groups(int32_t dim) { return round_up(dim, kGroup) / kGroup; }

void check(int32_t dim, int32_t bits) {
  if (dim < 1 || dim > kMostDims) {
    fail("codes: expected 1 to ", kMostDims, " dimensions, got ", dim);
  }
  if (bits < 0 || bits > kMostBits) fail("codes: expected 0 to 8 bits a dimension, got ", bits);
}

// The fields in file order, by one function for both directions.
template <class Io>
void each_field(Io& io, CodeSpec& spec) {
  io(spec.dim);
  io(spec.bits);
  io(spec.transform);
  io(spec.seed);
  io(spec.n2_exponent);
  io(spec.g_exponent);
  io(spec.step_ratio);
}

struct Writer {
  std::vector<std::byte> bytes;

  void put(const void* from, size_t size) {
    const auto* at = static_cast<const std::byte*>(from);
    bytes.insert(bytes.end(), at, at + size);
  }
  template <class T>
  void operator()(const T& value) {
    put(&value, sizeof value);
  }
};

struct Reader {
  std::span<const std::byte> bytes;

  void get(void* to, size_t size) {
    if (size > bytes.size()) fail("code spec: it ends before all of its fields");
    if (size > 0) std::memcpy(to, bytes.data(), size);
    bytes = bytes.subspan(size);
  }
  template <class T>
  void operator()(T& value) {
    get(&value, sizeof value);
  }
};

template <class T>
void read_basis(Reader& reader, std::vector<float>& basis, size_t count) {
  if (reader.bytes.size() != count * sizeof(T)) {
    fail("code spec: expected ", count * sizeof(T), " bytes of basis, got ", reader.bytes.size());
  }
  std::vector<T> numbers(count);
  reader.get(numbers.data(), count * sizeof(T));
  basis.assign(numbers.begin(), numbers.end());
}

}  // namespace

bool are_halves(std::span<const float> numbers) {
  return std::ranges::all_of(numbers, [](float x) { return float(f16(x)) == x; });
}

float gaussian_step(int32_t bits) {
  // Max, "Quantizing for minimum distortion" (1960), and its continuation; one bit has one step
  // that matters only to the units of g.
  constexpr float kSteps[] = {1,       1.596f,  0.9957f, 0.586f, 0.3352f,
                              0.1881f, 0.1041f, 0.0569f, 0.0308f};
  return kSteps[bits];
}

void set_units(CodeSpec& spec, double mean_n2) {
  if (!(mean_n2 > 0) || !std::isfinite(mean_n2)) mean_n2 = 1;
  // f16 has 16 binary orders above 1 and 14 below: the mean goes to about 1 in both.
  spec.n2_exponent = std::clamp(std::ilogb(mean_n2), -96, 96);
  // g = n2 / <r, w> is close to the step.
  const double step = double(spec.step_ratio) * std::sqrt(mean_n2);
  spec.g_exponent = step > 0 ? std::clamp(std::ilogb(step), -96, 96) : 0;
}

CodeSpec rotation_spec(int32_t dim, int32_t bits, uint64_t seed, double mean_n2) {
  check(dim, bits);
  CodeSpec spec;
  spec.dim = dim;
  spec.padded_dim = padded(dim);
  spec.bits = bits;
  spec.seed = seed;
  spec.group_bits.assign(size_t(groups(dim)), uint8_t(bits));
  spec.step_ratio = gaussian_step(bits) / std::sqrt(float(dim));
  set_units(spec, mean_n2);
  return spec;
}

std::vector<std::byte> to_bytes(const CodeSpec& spec) {
  Writer writer;
  const bool halves = !spec.basis.empty() && are_halves(spec.basis);
  writer(uint8_t(1 + (halves ? kHalfBasis : 0) + (spec.planes ? kPlanes : 0)));
  CodeSpec copy = spec;
  each_field(writer, copy);
  writer.put(spec.group_bits.data(), spec.group_bits.size());
  if (halves) {
    const std::vector<f16> basis(spec.basis.begin(), spec.basis.end());
    writer.put(basis.data(), basis.size() * sizeof(f16));
  } else {
    writer.put(spec.basis.data(), spec.basis.size() * sizeof(float));
  }
  return writer.bytes;
}

CodeSpec code_spec_from_bytes(std::span<const std::byte> bytes) {
  Reader reader{bytes};
  uint8_t version = 0;
  reader(version);
  if (version < 1 || version > 1 + kHalfBasis + kPlanes) {
    fail("code spec: expected version 1 to 4, got ", int(version));
  }
  const int flags = version - 1;
  CodeSpec spec;
  spec.planes = (flags & kPlanes) != 0;
  each_field(reader, spec);
  check(spec.dim, spec.bits);
  if (uint8_t(spec.transform) > uint8_t(TransformKind::pca)) {
    fail("code spec: no transform has number ", int(spec.transform));
  }
  if (std::abs(spec.n2_exponent) > 96 || std::abs(spec.g_exponent) > 96 || !(spec.step_ratio > 0) ||
      !std::isfinite(spec.step_ratio)) {
    fail("code spec: a unit or the step is out of range");
  }
  spec.padded_dim = padded(spec.dim);
  spec.group_bits.resize(size_t(groups(spec.dim)));
  reader.get(spec.group_bits.data(), spec.group_bits.size());
  for (const uint8_t b : spec.group_bits) {
    if (b > kMostBits) fail("code spec: a group has ", int(b), " bits, expected at most 8");
  }
  const size_t axes = spec.transform == TransformKind::pca ? size_t(spec.dim) : 0;
  const auto read = (flags & kHalfBasis) != 0 ? read_basis<f16> : read_basis<float>;
  read(reader, spec.basis, axes * axes);
  const auto finite = [](float f) { return std::isfinite(f); };
  if (!std::all_of(spec.basis.begin(), spec.basis.end(), finite)) {
    fail("code spec: the basis holds a number that is not finite");
  }
  return spec;
}

}  // namespace tessera::lattice
