// The reference interpreter on tensors: what an expression means, in f64, and how far an evaluated
// tensor is from it.
#pragma once

#include <span>
#include <vector>

#include "tessera/graph/interpret.h"
#include "tessera/tensor/tensor.h"

namespace tessera {

// The elements of an evaluated tensor, read from the device.
Array read_array(const Tensor& tensor);

// A tensor of these elements, rounded to its dtype.
Tensor to_tensor(const Array& array);

// Every element as a double, whatever the dtype.
std::vector<double> to_doubles(const Array& array);
std::vector<double> to_doubles(const Tensor& tensor);

// The outputs by the interpreter, from the tensors' values that their leaves hold.
std::vector<Array> reference(std::span<const Value> outputs);
std::vector<double> reference(const Tensor& output);

// The distance between neighbouring numbers of a floating-point type around `magnitude`.
double ulp(DType dtype, double magnitude);

// Mantissa bits of a floating-point type, the implicit one included.
int digits(DType dtype);

// `n` numbers in [low, high), the same in every run and on every machine.
std::vector<double> uniform_data(int64_t n, double low, double high, int64_t seed);

// A tensor of such numbers, rounded to its dtype.
Tensor random_tensor(const Shape& shape, int64_t seed, DType dtype = DType::f32, double low = -1,
                     double high = 1);

}  // namespace tessera
