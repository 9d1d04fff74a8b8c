#include "tessera/lattice/quantize.h"

#include <algorithm>
#include <cmath>

#include "tessera/base/error.h"
#include "tessera/base/thread_pool.h"

namespace tessera::lattice {

namespace {

const float* data_or_null(std::span<const float> values) {
  return values.empty() ? nullptr : values.data();
}

// What a top bit stands for is this, or minus this.
float hot_level(int bits) { return std::ldexp(0.5f, cold_bits(bits)); }

// out (dim, padded): the products of rows a (dim, padded) and b (dim, padded).
void multiply(const std::vector<float>& a, const std::vector<float>& b, size_t dim, size_t padded,
              std::vector<float>& out) {
  thread_pool().parallel_for(int64_t(dim), 16, [&](int64_t begin, int64_t end) {
    code_kernels().products(int32_t(padded), &a[size_t(begin) * padded], end - begin, b.data(),
                            int64_t(dim), &out[size_t(begin) * padded], int64_t(padded));
  });
}

// Axes (dim, padded) that were rounded, made orthonormal again by a step of Newton and Schulz,
// A ← (3 - A Aᵀ) A / 2: what is off by ε becomes off by ε².
void orthonormalize(std::vector<float>& axes, size_t dim, size_t padded) {
  std::vector<float> factor(axes.size(), 0.f), turned(axes.size(), 0.f);
  multiply(axes, axes, dim, padded, factor);
  for (size_t i = 0; i < dim; ++i) {
    for (size_t j = 0; j < dim; ++j) {
      factor[i * padded + j] = (i == j ? 1.5f : 0.f) - 0.5f * factor[i * padded + j];
      turned[j * padded + i] = axes[i * padded + j];
    }
  }
  multiply(factor, turned, dim, padded, axes);
}

}  // namespace

Coder::Coder(CodeSpec spec) : spec_(std::move(spec)), shape_(code_shape(spec_)) {
  if (spec_.transform == TransformKind::rotation) {
    rotation_.emplace(spec_.dim, spec_.padded_dim, spec_.seed);
    return;
  }
  const size_t dim = size_t(spec_.dim), padded = size_t(spec_.padded_dim);
  axes_.resize(dim * padded, 0.f);
  for (size_t i = 0; i < dim; ++i) std::copy_n(&spec_.basis[i * dim], dim, &axes_[i * padded]);
  if (are_halves(spec_.basis)) orthonormalize(axes_, dim, padded);
}

void Coder::transform(float* x) const {
  if (rotation_) return rotation_->apply(x);
  std::vector<float> result(size_t(spec_.padded_dim), 0.f);
  code_kernels().products(spec_.padded_dim, x, 1, axes_.data(), spec_.dim, result.data(), 0);
  std::copy(result.begin(), result.end(), x);
}

void Coder::transform_back(float* x) const {
  if (rotation_) return rotation_->apply_inverse(x);
  std::vector<float> result(size_t(spec_.padded_dim), 0.f);
  for (size_t i = 0; i < size_t(spec_.dim); ++i) {
    for (size_t j = 0; j < result.size(); ++j) result[j] += x[i] * axes_[i * result.size() + j];
  }
  std::copy(result.begin(), result.end(), x);
}

std::vector<float> Coder::transform_rows(std::span<const float> rows) const {
  const size_t dim = size_t(spec_.dim), padded = size_t(spec_.padded_dim);
  TESSERA_ASSERT(rows.size() % dim == 0);
  const size_t n = rows.size() / dim;
  std::vector<float> result(n * padded);
  thread_pool().parallel_for(int64_t(n), 16, [&](int64_t begin, int64_t end) {
    for (size_t i = size_t(begin); i < size_t(end); ++i) {
      std::copy_n(&rows[i * dim], dim, &result[i * padded]);
      transform(&result[i * padded]);
    }
  });
  return result;
}

Encoded Coder::encode(std::span<const float> residual, std::span<const float> diagonal,
                      std::span<uint8_t> codes) const {
  TESSERA_ASSERT(residual.size() == size_t(spec_.padded_dim) && codes.size() == residual.size());
  TESSERA_ASSERT(diagonal.empty() || diagonal.size() == residual.size());
  Encoded result =
      code_kernels().encode(shape_, residual.data(), data_or_null(diagonal), codes.data());
  if (!spec_.planes) return result;
  double overlap = 0;  // <r, s ⊙ h>
  for (size_t j = 0; j < size_t(spec_.dim); ++j) {
    const int bits = spec_.group_bits[j / kGroup];
    if (bits == 0) continue;
    const float level = hot_level(bits) * (diagonal.empty() ? 1.f : diagonal[j]);
    overlap += (codes[j] >> cold_bits(bits)) != 0 ? residual[j] * level : -residual[j] * level;
  }
  if (overlap > 0) result.hot = float(result.n2 / overlap);
  return result;
}

float Coder::hot_n2(std::span<const float> diagonal) const {
  double sum = 0;
  for (size_t j = 0; j < size_t(spec_.dim); ++j) {
    const int bits = spec_.group_bits[j / kGroup];
    if (bits == 0) continue;
    const double level = hot_level(bits) * (diagonal.empty() ? 1.f : diagonal[j]);
    sum += level * level;
  }
  return float(sum);
}

void Coder::encode_rows(std::span<const float> rows, std::span<const float> anchor,
                        std::span<const float> diagonal, std::byte* blocks, int64_t first) const {
  const size_t dim = size_t(spec_.dim);
  TESSERA_ASSERT(rows.size() % dim == 0 && anchor.size() == dim);
  if (spec_.bits == 0) return;
  std::vector<float> residual(size_t(spec_.padded_dim));
  std::vector<uint8_t> codes(size_t(spec_.padded_dim));
  for (size_t i = 0; i * dim < rows.size(); ++i) {
    for (size_t j = 0; j < dim; ++j) residual[j] = rows[i * dim + j] - anchor[j];
    transform(residual.data());
    const Encoded e = encode(residual, diagonal, codes);
    const int64_t position = first + int64_t(i);
    pack_code(spec_, blocks + position / kBlock * shape_.block_bytes, int(position % kBlock), codes,
              {e.n2, e.g, e.hot});
  }
}

std::vector<float> Coder::decode(const std::byte* blocks, int64_t position,
                                 std::span<const float> anchor,
                                 std::span<const float> diagonal) const {
  std::vector<float> x(size_t(spec_.padded_dim), 0.f);
  if (spec_.bits > 0) {
    std::vector<uint8_t> codes(size_t(spec_.padded_dim));
    const std::byte* block = blocks + position / kBlock * shape_.block_bytes;
    const CodeFactors factors = unpack_code(spec_, block, int(position % kBlock), codes);
    double n2 = 0;
    for (size_t j = 0; j < size_t(spec_.dim); ++j) {
      const float half = float((1 << spec_.group_bits[j / kGroup]) - 1) * 0.5f;
      x[j] = (float(codes[j]) - half) * (diagonal.empty() ? 1.f : diagonal[j]);
      n2 += double(x[j]) * x[j];
    }
    // <r, r̂> = n2 / g: the projection of r on r̂.
    const double scale = factors.g > 0 && n2 > 0 ? double(factors.n2) / factors.g / n2 : 0;
    for (float& value : x) value = float(value * scale);
    transform_back(x.data());
  }
  x.resize(size_t(spec_.dim));
  for (size_t j = 0; j < x.size(); ++j) x[j] += anchor[j];
  return x;
}

std::vector<float> padded_row(const CodeSpec& spec, std::span<const float> row) {
  std::vector<float> result(size_t(spec.padded_dim), 0.f);
  std::copy(row.begin(), row.end(), result.begin());
  return result;
}

}  // namespace tessera::lattice
