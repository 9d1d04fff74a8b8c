// The op table: every operation of the graph as a row of facts.
#pragma once

#include <cstdint>
#include <string_view>

#include "tessera/base/scalar_op.h"

namespace tessera {

// Starts with the values of ScalarOp, in order, so that the two convert by their number.
enum class Op : uint8_t {
#define SCALAR_OP(name, ...) name,
#include "tessera/base/scalar_ops.def"
#undef SCALAR_OP
  where,
  uniform,  // (key, offset), both 0-d i64; a: shape -> f32
#define GRAPH_OP(name, ...) name,
#include "tessera/graph/ops.def"
#undef GRAPH_OP
  count,
};

inline constexpr int kOpCount = static_cast<int>(Op::count);

enum class OpKind : uint8_t {
  scalar,    // one output element from the input elements at the same place
  source,    // no operand of the output's shape: leaf, constant, iota, uniform
  reduce,    // folds axes, which stay with extent 1
  move,      // another view of the same elements: costs nothing where a kernel takes strides
  assemble,  // places inputs into a larger output: pad, concat
  index,     // reads at places that data decide
  update,    // its first input with some elements replaced; runs in place when that input dies
  product,   // matmul
  marker,    // changes no value; speaks to autodiff or to a pass
  kernel,    // a tuned kernel that also holds its definition in plain ops (graph/composite.h)
};

enum class OpLayout : uint8_t { any, contiguous };

struct OpInfo {
  std::string_view name;
  int arity;
  int outputs;
  OpKind kind;
  OpLayout layout;
  bool commutative;
  std::string_view kernel;
  double ulp;  // tolerance of one application against the exact value
};

const OpInfo& info(Op op);
inline std::string_view name(Op op) { return info(op).name; }

inline bool is_scalar_fn(Op op) { return static_cast<int>(op) < static_cast<int>(Op::uniform); }
inline ScalarOp scalar_op(Op op) { return static_cast<ScalarOp>(op); }

}  // namespace tessera
