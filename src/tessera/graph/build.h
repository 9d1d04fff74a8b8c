// Building graphs by hand: one function per op, with broadcasting and constants, without promotion.
// The gradient table, the composites and the tensor layer are written in these.
#pragma once

#include "tessera/graph/node.h"

namespace tessera::graph {

Value constant(DType dtype, double value);
Value constant_int(DType dtype, int64_t value);
Value full(const Type& type, double value);  // an expanded constant
Value iota(DType dtype, const Shape& shape, int axis);
Value uniform(const Value& key, const Value& offset, const Shape& shape);

// A scalar function; operands broadcast against each other.
Value apply(Op op, const Value& a);
Value apply(Op op, const Value& a, const Value& b);
Value where(const Value& condition, const Value& a, const Value& b);
Value cast(const Value& x, DType dtype);

Value operator+(const Value& a, const Value& b);
Value operator-(const Value& a, const Value& b);
Value operator*(const Value& a, const Value& b);
Value operator/(const Value& a, const Value& b);
Value operator-(const Value& a);
// The literal takes the dtype of the other operand.
Value operator*(const Value& a, double b);
Value operator+(const Value& a, double b);

// sum, prod, max, min, argmax; `axes` normalized; they stay with extent 1. No axes: x itself (not
// argmax).
Value reduce(Op op, const Value& x, const Dims& axes);
Value reshape(const Value& x, const Shape& shape);
Value permute(const Value& x, const Dims& permutation);
Value swap_last(const Value& x);  // exchanges the last two axes
Value expand(const Value& x, const Shape& shape);
Value broadcast_to(const Value& x, const Shape& shape);  // adds leading axes, then expands
Value slice(const Value& x, const Dims& starts, const Dims& sizes, const Dims& steps);
Value flip(const Value& x, int axis);
// Every window of `size` along the axis, `step` apart; the new last axis runs along a window.
Value window(const Value& x, int axis, int64_t size, int64_t step);
Value pad(const Value& x, const Dims& before, const Dims& after, double value);
Value concat(const std::vector<Value>& parts, int axis);
Value gather(const Value& x, const Value& index, int axis);
Value scatter_add(const Value& x, const Value& index, const Value& source, int axis);
// The last one wins where indices repeat.
Value scatter(const Value& x, const Value& index, const Value& source, int axis);
Value dynamic_slice(const Value& x, const Value& start, int axis, int64_t size);
Value dynamic_update_slice(const Value& x, const Value& update, const Value& start, int axis);
Value matmul(const Value& a, const Value& b);  // batch axes broadcast
Value stop_gradient(const Value& x);
Value softmax(const Value& x);
Value cumsum(const Value& x, int axis);
Value cumprod(const Value& x, int axis);
// Over the last axis: values, and where they were (i64). Stable; NaN counts as greatest.
std::vector<Value> sort(const Value& x, bool descending);
// The k greatest or least, in that order.
std::vector<Value> topk(const Value& x, int64_t k, bool largest);
std::vector<Value> layer_norm(const Value& x, const Value& gamma, const Value& beta,
                              double epsilon);
// x (R…, C), targets (R…, 1) of integers, g (R…, 1) of the compute type ->
// -log softmax(x)[target] (R…, 1) in that type, and g · its gradient (R…, C).
std::vector<Value> cross_entropy(const Value& x, const Value& targets, const Value& g);

// The outputs of a node.
std::vector<Value> outputs_of(const NodePtr& node);

// Sums `g` over what broadcasting to its shape repeated, giving `shape`.
Value sum_to(const Value& g, const Shape& shape);

}  // namespace tessera::graph
