#include "tessera/tensor/linalg.h"

#include "tessera/tensor/elementwise.h"
#include "tessera/tensor/op_support.h"
#include "tessera/tensor/structure.h"

namespace tessera {

Tensor matmul(In a, In b) {
  if (a.rank() == 0 || b.rank() == 0) {
    fail_here("matmul: expected at least 1 dimension, got ", a.shape(), " @ ", b.shape());
  }
  const DType dtype = promote(a.dtype(), b.dtype());
  const bool row = a.rank() == 1, column = b.rank() == 1;
  if (a.shape().back() != b.size(column ? 0 : -2)) {
    fail_here("matmul: inner dimensions differ: ", a.shape(), " @ ", b.shape());
  }
  Tensor product(graph::matmul(graph::cast((row ? unsqueeze(a, 0) : a).value(), dtype),
                               graph::cast((column ? unsqueeze(b, 1) : b).value(), dtype)));
  if (column) product = squeeze(product, -1);
  if (row) product = squeeze(product, column ? -1 : -2);
  return product;
}

Tensor dot(In a, In b) {
  if (a.rank() != 1 || a.shape() != b.shape()) {
    fail_here("dot: expected two vectors of one length, got ", a.shape(), " and ", b.shape());
  }
  return matmul(a, b);
}

Tensor outer(In a, In b) {
  if (a.rank() != 1 || b.rank() != 1) {
    fail_here("outer: expected two vectors, got ", a.shape(), " and ", b.shape());
  }
  return unsqueeze(a, 1) * b;
}

}  // namespace tessera
