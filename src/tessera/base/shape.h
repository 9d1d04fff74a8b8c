// Dims: up to eight int64_t, stored in place. It serves as shape, strides, axes and permutation.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <span>
#include <string>
#include <string_view>

#include "tessera/base/error.h"

namespace tessera {

inline constexpr int kMaxRank = 8;

class Dims {
 public:
  Dims() = default;
  Dims(std::initializer_list<int64_t> values) : Dims(std::span(values.begin(), values.size())) {}
  explicit Dims(std::span<const int64_t> values);
  // A single number: sum(x, 1), zeros(3).
  template <std::integral T>
  requires(!std::same_as<T, bool>) Dims(T value) : Dims({static_cast<int64_t>(value)}) {}
  // `rank` copies of `value`.
  static Dims filled(int rank, int64_t value);

  int rank() const { return rank_; }
  bool empty() const { return rank_ == 0; }
  int64_t& operator[](int i) { return values_[i]; }
  int64_t operator[](int i) const { return values_[i]; }
  const int64_t* begin() const { return values_; }
  const int64_t* end() const { return values_ + rank_; }
  int64_t* begin() { return values_; }
  int64_t* end() { return values_ + rank_; }
  int64_t back() const { return values_[rank_ - 1]; }

  void push_back(int64_t value);
  void insert(int position, int64_t value);
  void erase(int position);
  bool contains(int64_t value) const;

  bool operator==(const Dims& other) const;

 private:
  int64_t values_[kMaxRank] = {};
  int rank_ = 0;
};

using Shape = Dims;

std::string to_string(const Dims& dims);  // "(2, 3)", "(5,)", "()"
std::ostream& operator<<(std::ostream& out, const Dims& dims);

// Number of elements. Throws when it does not fit into int64_t.
int64_t numel(const Shape& shape);

// Strides, in elements, of a row-major array.
Dims row_major_strides(const Shape& shape);

// The shape both broadcast to, by NumPy's rule. `op` prefixes the error.
Shape broadcast_shapes(std::string_view op, const Shape& a, const Shape& b);

// An axis in [-rank, rank) as one in [0, rank). `op` prefixes the error.
int normalize_axis(std::string_view op, int64_t axis, int rank);

// Sorted, normalized, without repeats; an empty list means all axes.
Dims normalize_axes(std::string_view op, const Dims& axes, int rank);

}  // namespace tessera
