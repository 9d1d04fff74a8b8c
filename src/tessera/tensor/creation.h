// Tensors made of numbers rather than of other tensors.
#pragma once

#include <optional>

#include "tessera/tensor/tensor.h"

namespace tessera {

Tensor full(const Shape& shape, const Scalar& value, DType dtype = DType::f32,
            std::source_location line = std::source_location::current());
Tensor zeros(const Shape& shape, DType dtype = DType::f32,
             std::source_location line = std::source_location::current());
Tensor ones(const Shape& shape, DType dtype = DType::f32,
            std::source_location line = std::source_location::current());
Tensor full_like(In x, const Scalar& value);  // shape and dtype of x
Tensor zeros_like(In x);
Tensor ones_like(In x);

Tensor arange(int64_t n, DType dtype = DType::i64);  // 0, 1, …, n - 1
// start, start + step, … before stop; without a dtype i64, or f32 where one of them is a
// fraction.
Tensor arange(const Scalar& start, const Scalar& stop, const Scalar& step = 1,
              std::optional<DType> dtype = {});
// n numbers from start to stop, both included.
Tensor linspace(double start, double stop, int64_t n, DType dtype = DType::f32);
Tensor eye(int64_t rows, DType dtype = DType::f32);
Tensor eye(int64_t rows, int64_t columns, DType dtype = DType::f32);
// The coordinate on `axis` at every element.
Tensor iota(const Shape& shape, int64_t axis, DType dtype = DType::i64);

}  // namespace tessera
