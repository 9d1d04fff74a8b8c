// The maths on Tensors. Operands broadcast by NumPy's rule and promote to a common dtype
// (base/dtype.h); errors name the op and both shapes when the expression is built.
#pragma once

#include <span>
#include <vector>

#include "tessera/tensor/tensor.h"

namespace tessera {

// Elementwise: one function per row of base/scalar_ops.def, of one or two operands.
#define TESSERA_OPERANDS_1 const Tensor& a
#define TESSERA_OPERANDS_2 const Tensor &a, const Tensor &b
#define SCALAR_OP(name, arity, ...) Tensor name(TESSERA_OPERANDS_##arity);
#include "tessera/base/scalar_ops.def"
#undef SCALAR_OP
#undef TESSERA_OPERANDS_1
#undef TESSERA_OPERANDS_2

// clang-format off
#define TESSERA_OPERATOR(symbol)                                  \
  Tensor operator symbol(const Tensor& a, const Tensor& b);       \
  Tensor operator symbol(const Tensor& a, const Scalar& b);       \
  Tensor operator symbol(const Scalar& a, const Tensor& b);
TESSERA_OPERATOR(+)
TESSERA_OPERATOR(-)
TESSERA_OPERATOR(*)
TESSERA_OPERATOR(/)   // integers divide as f32
TESSERA_OPERATOR(<)
TESSERA_OPERATOR(<=)
TESSERA_OPERATOR(>)
TESSERA_OPERATOR(>=)
TESSERA_OPERATOR(==)  // elementwise
TESSERA_OPERATOR(!=)
#undef TESSERA_OPERATOR
// clang-format on
Tensor operator-(const Tensor& a);

Tensor pow(const Tensor& a, const Scalar& b);
Tensor maximum(const Tensor& a, const Scalar& b);
Tensor minimum(const Tensor& a, const Scalar& b);
Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b);
Tensor where(const Tensor& condition, const Tensor& a, const Scalar& b);
Tensor where(const Tensor& condition, const Scalar& a, const Tensor& b);
Tensor cast(const Tensor& x, DType dtype);

// Reductions over `axes` (none given: all); with keepdims they stay with extent 1.
Tensor sum(const Tensor& x, const Dims& axes = {}, bool keepdims = false);  // bool, i8, u8 -> i64
Tensor mean(const Tensor& x, const Dims& axes = {}, bool keepdims = false);
Tensor max(const Tensor& x, const Dims& axes = {}, bool keepdims = false);
Tensor min(const Tensor& x, const Dims& axes = {}, bool keepdims = false);
Tensor argmax(const Tensor& x, int64_t axis = -1, bool keepdims = false);  // the first greatest

// Moves: another view of the same elements.
Tensor reshape(const Tensor& x, Shape shape);  // one extent may be -1
Tensor permute(const Tensor& x, const Dims& permutation);
Tensor transpose(const Tensor& x, int64_t a = -2, int64_t b = -1);
Tensor broadcast_to(const Tensor& x, const Shape& shape);
Tensor squeeze(const Tensor& x, int64_t axis);
Tensor unsqueeze(const Tensor& x, int64_t axis);
// Elements start, start + step, … before stop along one axis; negative positions count from the end
// and positions beyond the ends are cut, as in NumPy.
Tensor slice(const Tensor& x, int64_t axis, int64_t start, int64_t stop, int64_t step = 1);
Tensor flip(const Tensor& x, int64_t axis);

Tensor pad(const Tensor& x, const Dims& before, const Dims& after, const Scalar& value = 0);
Tensor concat(const std::vector<Tensor>& parts, int64_t axis = 0);
Tensor stack(const std::vector<Tensor>& parts, int64_t axis = 0);

// result[…, p, …] = x[…, index[…, p, …], …] along `axis`; shapes agree elsewhere.
Tensor gather(const Tensor& x, const Tensor& index, int64_t axis);
// x with source[p] added at index[p] along `axis`; repeated indices add up.
Tensor scatter_add(const Tensor& x, const Tensor& index, const Tensor& source, int64_t axis);
// Rows of a table: (V, C) and indices of any shape S -> (S…, C).
Tensor take(const Tensor& table, const Tensor& indices);
// The slice of `size` at a 0-d integer `start` along `axis`; a start that leaves x is an error.
Tensor dynamic_slice(const Tensor& x, const Tensor& start, int64_t axis, int64_t size);
Tensor dynamic_update_slice(const Tensor& x, const Tensor& update, const Tensor& start,
                            int64_t axis);

// Any ranks of at least 1: leading axes are batches and broadcast, a vector is a row on the left
// and a column on the right.
Tensor matmul(const Tensor& a, const Tensor& b);

// Functions of networks -------------------------------------------------------------------------
Tensor relu(const Tensor& x);
Tensor silu(const Tensor& x);
Tensor gelu(const Tensor& x);  // the tanh form, as GPT-2
Tensor softmax(const Tensor& x, int64_t axis = -1);
Tensor log_softmax(const Tensor& x, int64_t axis = -1);
Tensor logsumexp(const Tensor& x, int64_t axis = -1, bool keepdims = false);
// Over the last axis; gamma and beta of shape (C).
Tensor layer_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, double epsilon = 1e-5);
// Mean over rows of -log softmax(logits)[target]; logits (…, C), targets (…) of integers.
Tensor cross_entropy(const Tensor& logits, const Tensor& targets);

}  // namespace tessera
