// Tensor: a handle to a value of the graph. Building one computes nothing; reading one evaluates it
// and what it needs. Copies share the value, which never changes.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <source_location>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "tessera/base/device.h"
#include "tessera/base/dtype.h"
#include "tessera/base/shape.h"
#include "tessera/graph/node.h"
#include "tessera/tensor/eager.h"

namespace tessera {

// A literal in an expression with a Tensor. It takes the tensor's dtype, except that a fraction
// next to an integer tensor makes the result f32, and a number next to bool is i64 or f32.
class Scalar {
 public:
  template <class T>
  requires std::is_arithmetic_v<T> Scalar(T value)
      : real_(static_cast<double>(value)),
        integer_(std::integral<T> ? static_cast<int64_t>(value) : 0),
        // What only an unsigned type of 64 bits holds counts as a real.
        is_integer_(std::integral<T> && !(std::unsigned_integral<T> && integer_ < 0)),
        is_boolean_(std::same_as<T, bool>) {}

  double real() const { return real_; }
  int64_t integer() const { return integer_; }
  bool is_integer() const { return is_integer_; }
  bool is_boolean() const { return is_boolean_; }

  // Throws when an integer type or bool cannot hold it: a wrapped literal is never meant.
  void check_fits(DType dtype) const;

 private:
  double real_;
  int64_t integer_;
  bool is_integer_, is_boolean_;
};

class Index;  // tensor/indexing.h

class Tensor {
 public:
  Tensor() = default;  // no value
  explicit Tensor(Value value) : value_(std::move(value)) {
    if (is_eager()) compute_now();
  }

  // A copy of `data`, which holds numel(shape) elements.
  static Tensor from_bytes(DType dtype, const Shape& shape, const void* data);

  bool defined() const { return bool(value_); }  // whether the handle is not empty
  const Shape& shape() const { return value().shape(); }
  DType dtype() const { return value().dtype(); }
  int rank() const { return shape().rank(); }
  int64_t size(int64_t axis) const;  // negative axes count from the end
  int64_t numel() const { return tessera::numel(shape()); }
  const Value& value() const;  // throws when the handle is empty

  // Computes it now, so that later reads only read.
  const Tensor& eval() const;

  // The one element of a tensor that has one, as a double.
  double item() const;
  // Whether that element is not 0: `if (loss < 0.01) break;` evaluates and reads.
  explicit operator bool() const;

  // All elements, row-major. T must be the tensor's own element type.
  template <class T>
  std::vector<T> to_vector() const {
    std::vector<T> result(static_cast<size_t>(numel()));
    if constexpr (std::same_as<T, bool>) {
      std::vector<uint8_t> bytes(result.size());
      read_bytes(DType::boolean, bytes.data());
      result.assign(bytes.begin(), bytes.end());
    } else {
      read_bytes(dtype_of<T>, result.data());
    }
    return result;
  }

  // Writes numel() elements to `to`; `dtype` must be the tensor's.
  void read_bytes(DType dtype, void* to) const;

  // Part of it, as NumPy's x[1, 2:5, ...]: x[{1, Slice{2, 5}, kEllipsis}]; see tensor/indexing.h.
  // Const, because assigning to it would change nothing.
  const Tensor operator[](std::initializer_list<Index> indices) const;
  const Tensor operator[](const Index& index) const;

  Tensor to(DType dtype) const;  // a cast

  // Where it is, or will be computed: the device of its operands.
  Device device() const;
  // Evaluated and copied there, without history: no gradient passes. The tensor itself when it is
  // there already.
  Tensor to(Device device) const;

  // The evaluated value as a tensor of its own: without history, and unaffected by later steps.
  Tensor detach() const;

 private:
  void compute_now() const;

  Value value_;
};

// An operand of a public function: a Tensor, or what converts to one, and the line of the caller's
// source that wrote it. Errors and profiles name that line; lines of Tessera's own files do not
// count, so it is the user's also where a function is made of others.
class In : public Tensor {
 public:
  In(const Tensor& tensor, std::source_location line = std::source_location::current());
  template <class T>
  requires(!std::derived_from<T, Tensor> && std::convertible_to<const T&, Tensor>)
      In(const T& source, std::source_location line = std::source_location::current())
      : In(static_cast<Tensor>(source), line) {}
};

// Creation --------------------------------------------------------------------------------------

// The extents of `shape` must multiply to the number of elements.
template <class T>
Tensor tensor(std::span<const T> data, const Shape& shape) {
  if (static_cast<int64_t>(data.size()) != numel(shape)) {
    fail("tensor: expected ", numel(shape), " elements for ", shape, ", got ", data.size());
  }
  return Tensor::from_bytes(dtype_of<T>, shape, data.data());
}

template <class T>
Tensor tensor(const std::vector<T>& data, const Shape& shape) {
  if constexpr (std::same_as<T, bool>) {
    const std::vector<uint8_t> bytes(data.begin(), data.end());
    if (static_cast<int64_t>(bytes.size()) != numel(shape)) {
      fail("tensor: expected ", numel(shape), " elements for ", shape, ", got ", bytes.size());
    }
    return Tensor::from_bytes(DType::boolean, shape, bytes.data());
  } else {
    return tensor(std::span<const T>(data), shape);
  }
}

template <class T>
Tensor tensor(const std::vector<T>& data) {
  return tensor(data, {static_cast<int64_t>(data.size())});
}

// 0-d, and data rather than structure: giving another value later does not recompile anything.
template <class T>
requires std::is_arithmetic_v<T> Tensor scalar(T value) {
  return Tensor::from_bytes(dtype_of<T>, {}, &value);
}

// Reading ---------------------------------------------------------------------------------------

// Computes several tensors together, sharing what they share.
void eval(std::span<const Tensor> tensors);

// Like NumPy's: nested brackets, long axes cut in the middle, shape and dtype behind.
std::string to_string(const Tensor& tensor);
std::ostream& operator<<(std::ostream& out, const Tensor& tensor);

}  // namespace tessera
