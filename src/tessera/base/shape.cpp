#include "tessera/base/shape.h"

#include <algorithm>
#include <ostream>

namespace tessera {

Dims::Dims(std::span<const int64_t> values) {
  for (const int64_t value : values) push_back(value);
}

Dims Dims::filled(int rank, int64_t value) {
  Dims dims;
  for (int i = 0; i < rank; ++i) dims.push_back(value);
  return dims;
}

void Dims::push_back(int64_t value) { insert(rank_, value); }

void Dims::insert(int position, int64_t value) {
  TESSERA_ASSERT(position >= 0 && position <= rank_);
  if (rank_ == kMaxRank) fail("shape: expected at most ", kMaxRank, " dimensions, got more");
  std::copy_backward(values_ + position, values_ + rank_, values_ + rank_ + 1);
  values_[position] = value;
  ++rank_;
}

void Dims::erase(int position) {
  TESSERA_ASSERT(position >= 0 && position < rank_);
  std::copy(values_ + position + 1, values_ + rank_, values_ + position);
  --rank_;
}

bool Dims::contains(int64_t value) const { return std::find(begin(), end(), value) != end(); }

bool Dims::operator==(const Dims& other) const {
  return rank_ == other.rank_ && std::equal(begin(), end(), other.begin());
}

std::string to_string(const Dims& dims) {
  std::string text = "(";
  for (int i = 0; i < dims.rank(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(dims[i]);
  }
  return text + (dims.rank() == 1 ? ",)" : ")");
}

int64_t numel(const Shape& shape) {
  for (const int64_t extent : shape) {
    if (extent < 0) fail("shape: expected extents of at least 0, got ", shape);
  }
  if (shape.contains(0)) return 0;
  int64_t n = 1;
  for (const int64_t extent : shape) {
    if (__builtin_mul_overflow(n, extent, &n)) {
      fail("shape: ", shape, " has more than 2^63 - 1 elements");
    }
  }
  return n;
}

Dims row_major_strides(const Shape& shape) {
  Dims strides = Dims::filled(shape.rank(), 1);
  for (int i = shape.rank() - 2; i >= 0; --i) {
    const int64_t extent = std::max<int64_t>(shape[i + 1], 1);
    // Only a shape without elements can overflow here, and nobody walks it.
    if (__builtin_mul_overflow(strides[i + 1], extent, &strides[i])) strides[i] = 0;
  }
  return strides;
}

Shape broadcast_shapes(std::string_view op, const Shape& a, const Shape& b) {
  const int rank = std::max(a.rank(), b.rank());
  Shape result = Shape::filled(rank, 1);
  for (int i = 1; i <= rank; ++i) {
    const int64_t x = i <= a.rank() ? a[a.rank() - i] : 1;
    const int64_t y = i <= b.rank() ? b[b.rank() - i] : 1;
    if (x != y && x != 1 && y != 1) fail(op, ": shapes do not broadcast: ", a, " and ", b);
    result[rank - i] = x == 1 ? y : x;
  }
  return result;
}

int normalize_axis(std::string_view op, int64_t axis, int rank) {
  if (axis < -rank || axis >= rank) {
    fail(op, ": axis ", axis, " is out of range for ", rank, " dimensions");
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

Dims normalize_axes(std::string_view op, const Dims& axes, int rank) {
  Dims result;
  if (axes.empty()) {
    for (int i = 0; i < rank; ++i) result.push_back(i);
    return result;
  }
  for (const int64_t axis : axes) {
    const int normalized = normalize_axis(op, axis, rank);
    if (result.contains(normalized)) fail(op, ": axis ", axis, " is given twice in ", axes);
    result.push_back(normalized);
  }
  std::sort(result.begin(), result.end());
  return result;
}

std::ostream& operator<<(std::ostream& out, const Dims& dims) { return out << to_string(dims); }

}  // namespace tessera
