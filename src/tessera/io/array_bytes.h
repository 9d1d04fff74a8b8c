// What the readers of array files have in common.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "tessera/base/dtype.h"
#include "tessera/base/shape.h"

namespace tessera {

// The bytes an array takes; nothing when that, or the strides of an empty array, would overflow.
// REQUIRES: extents of at least 0.
inline std::optional<int64_t> array_bytes(DType dtype, const Shape& shape) {
  int64_t size = size_of(dtype);
  for (const int64_t extent : shape) {
    if (__builtin_mul_overflow(size, std::max<int64_t>(extent, 1), &size)) return std::nullopt;
  }
  return shape.contains(0) ? 0 : size;
}

// The index of the first element that is no bool. A C++ bool that is neither 0 nor 1 is undefined
// behaviour in whoever reads it.
inline std::optional<size_t> find_bad_bool(std::span<const std::byte> data) {
  const auto bad = std::ranges::find_if(data, [](std::byte b) { return b > std::byte{1}; });
  if (bad == data.end()) return std::nullopt;
  return size_t(bad - data.begin());
}

}  // namespace tessera
