#include "tessera/tensor/network.h"

#include "tessera/tensor/elementwise.h"
#include "tessera/tensor/op_support.h"
#include "tessera/tensor/reduce.h"
#include "tessera/tensor/structure.h"

namespace tessera {

namespace {

void expect_channels(const char* op, const Tensor& x, int64_t channels,
                     std::initializer_list<const Tensor*> vectors) {
  for (const Tensor* vector : vectors) {
    if (vector->shape() != Shape{channels}) {
      fail_here(op, ": expected scale and shift of ", Shape{channels}, " for ", x.shape(), ", got ",
                vector->shape());
    }
  }
}

void expect_rows(const char* op, const Tensor& x) {
  if (x.rank() == 0) fail_here(op, ": expected at least 1 dimension, got ()");
}

// A vector of channels beside x (N, C, …).
Tensor beside(const Tensor& vector, const Tensor& x) {
  Shape shape = Dims::filled(x.rank() - 1, 1);
  shape[0] = vector.numel();
  return reshape(cast(vector, x.dtype()), shape);
}

}  // namespace

Tensor softmax(In x, int64_t axis) {
  const int i = axis_of("softmax", axis, x);
  const Tensor input = as_float(x);
  if (i == x.rank() - 1) return Tensor(graph::softmax(input.value()));
  return transpose(Tensor(graph::softmax(transpose(input, i, -1).value())), i, -1);
}

Tensor log_softmax(In x, int64_t axis) {
  const int i = axis_of("log_softmax", axis, x);
  const DType dtype = as_float(x).dtype();
  if (x.shape()[i] == 0) return cast(x, dtype);
  const Tensor wide = as_wide(x);
  return cast(wide - logsumexp(wide, {i}, true), dtype);
}

Tensor layer_norm(In x, In gamma, In beta, double epsilon) {
  expect_rows("layer_norm", x);
  expect_channels("layer_norm", x, x.shape().back(), {&gamma, &beta});
  const Tensor input = as_float(x);
  const DType dtype = input.dtype();
  return Tensor(graph::layer_norm(input.value(), graph::cast(gamma.value(), dtype),
                                  graph::cast(beta.value(), dtype), epsilon)[0]);
}

Tensor rms_norm(In x, In gamma, double epsilon) {
  expect_rows("rms_norm", x);
  expect_channels("rms_norm", x, x.shape().back(), {&gamma});
  const DType dtype = as_float(x).dtype();
  if (x.shape().back() == 0) return cast(x, dtype);
  const Tensor wide = as_wide(x);
  const Tensor scale = rsqrt(mean(wide * wide, {-1}, true) + epsilon);
  return cast(wide * scale * cast(gamma, wide.dtype()), dtype);
}

Tensor group_norm(In x, int64_t groups, In gamma, In beta, double epsilon) {
  if (x.rank() < 2) fail_here("group_norm: expected x (N, C, …), got ", x.shape());
  const int64_t channels = x.shape()[1];
  if (groups < 1 || channels % groups != 0) {
    fail_here("group_norm: expected a number of groups that divides the channels of ", x.shape(),
              ", got ", groups);
  }
  expect_channels("group_norm", x, channels, {&gamma, &beta});
  const DType dtype = as_float(x).dtype();
  if (x.numel() == 0) return cast(x, dtype);
  const Tensor grouped = reshape(as_wide(x), {x.shape()[0], groups, -1});
  const Tensor centred = grouped - mean(grouped, {-1}, true);
  const Tensor scale = rsqrt(mean(centred * centred, {-1}, true) + epsilon);
  const Tensor normal = reshape(centred * scale, x.shape());
  return cast(normal * beside(gamma, normal) + beside(beta, normal), dtype);
}

}  // namespace tessera
