#include "tessera/conformance/reference.h"

#include <algorithm>
#include <cmath>

#include "tessera/base/philox.h"

namespace tessera {

Array read_array(const Tensor& tensor) {
  Array array{tensor.value().type(), {}, {}};
  visit(tensor.dtype(), [&]<class T>() {
    for (const auto element : tensor.to_vector<T>()) {
      if (is_float(tensor.dtype())) {
        array.real.push_back(double(element));
      } else {
        array.integer.push_back(int64_t(element));
      }
    }
  });
  return array;
}

Tensor to_tensor(const Array& array) {
  return visit(array.type.dtype, [&]<class T>() {
    std::vector<T> data;
    if constexpr (std::is_integral_v<T>) {
      data.assign(array.integer.begin(), array.integer.end());
    } else if constexpr (std::same_as<T, double>) {
      data = array.real;
    } else {
      for (const double value : array.real) {
        // By way of scalar_bits, which rounds once; f64 -> f32 -> f16 would round twice.
        const DType dtype = array.type.dtype;
        data.push_back(T(float(scalar_as_double(dtype, scalar_bits(dtype, value)))));
      }
    }
    return tensor(data, array.type.shape);
  });
}

std::vector<double> to_doubles(const Array& array) {
  std::vector<double> result = array.real;
  result.insert(result.end(), array.integer.begin(), array.integer.end());
  return result;
}

std::vector<double> to_doubles(const Tensor& tensor) { return to_doubles(read_array(tensor)); }

std::vector<Array> reference(std::span<const Value> outputs) {
  std::vector<NodePtr> leaves;
  for (const NodePtr& node : topological_order(outputs)) {
    if (node->op == Op::leaf) leaves.push_back(node);
  }
  return interpret(outputs, [&leaves](const Node& leaf) {
    const auto found = std::find_if(leaves.begin(), leaves.end(),
                                    [&](const NodePtr& node) { return node.get() == &leaf; });
    return read_array(Tensor(Value{*found, 0}));
  });
}

std::vector<double> reference(const Tensor& output) {
  return to_doubles(reference(std::span(&output.value(), 1))[0]);
}

int digits(DType dtype) {
  switch (dtype) {
    case DType::f64: return 53;
    case DType::f32: return 24;
    case DType::f16: return 11;
    default: return 8;  // bf16
  }
}

double ulp(DType dtype, double magnitude) {
  const int lowest = dtype == DType::f64 ? -1022 : dtype == DType::f16 ? -14 : -126;
  const int exponent = magnitude == 0 ? lowest : std::max(std::ilogb(magnitude), lowest);
  return std::ldexp(1.0, exponent - digits(dtype) + 1);
}

std::vector<double> uniform_data(int64_t n, double low, double high, int64_t seed) {
  std::vector<double> values;
  for (int64_t i = 0; i < n; ++i) {
    values.push_back(low + (high - low) * double(philox_uniform(i, seed, 0)));
  }
  return values;
}

Tensor random_tensor(const Shape& shape, int64_t seed, DType dtype, double low, double high) {
  return to_tensor({{dtype, shape}, uniform_data(numel(shape), low, high, seed), {}});
}

}  // namespace tessera
