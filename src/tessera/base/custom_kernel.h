// A kernel that a user of the library brings along (tensor/custom_op.h): a function for the CPU
// and, for other devices, source text.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "tessera/base/dtype.h"
#include "tessera/base/shape.h"

namespace tessera {

// An operand of a call: row-major, numel(shape) elements.
struct CustomOperand {
  void* data;
  DType dtype;
  Shape shape;
  bool is_input = false;

  // The elements; T must be those of `dtype`, and const for an input.
  template <class T>
  std::span<T> as() const {
    if (is_input && !std::is_const_v<T>) {
      fail("custom_op: an input must not be written: take it as<const T>()");
    }
    if (dtype_of<std::remove_const_t<T>> != dtype) {
      fail("custom_op: the operand holds ", dtype, ", not ", dtype_of<std::remove_const_t<T>>);
    }
    return {static_cast<T*>(data), static_cast<size_t>(numel(shape))};
  }
};

struct CustomKernel {
  std::string name;

  // Reads the inputs and writes every element of every output. It must not change inputs, depend on
  // anything else, or keep the addresses. May throw Error; may be called from several threads.
  std::function<void(std::span<const CustomOperand> inputs, std::span<const CustomOperand> outputs)>
      cpu;

  // Source of a function `name`(inputs…, outputs…, n): a pointer to the first element of each
  // operand, then a 64-bit integer n, the number of elements of the first output. It is launched
  // with one thread per such element, rounded up to whole groups: a thread numbered n or more must
  // do nothing. Empty: not for this kind of device.
  std::string cuda, opencl;
};

}  // namespace tessera
