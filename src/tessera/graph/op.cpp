#include "tessera/graph/op.h"

#include <array>

namespace tessera {

namespace {

constexpr std::array<OpInfo, kOpCount> kInfo = {{
#define SCALAR_OP(name, arity, in, out, algebra, ulp, ...) \
  {#name,                                                  \
   arity,                                                  \
   1,                                                      \
   OpKind::scalar,                                         \
   OpLayout::any,                                          \
   ScalarAlgebra::algebra == ScalarAlgebra::commutative,   \
   "",                                                     \
   ulp},
#include "tessera/base/scalar_ops.def"
#undef SCALAR_OP
    {"where", 3, 1, OpKind::scalar, OpLayout::any, false, "", 0.5},
    {"uniform", 2, 1, OpKind::source, OpLayout::any, false, "", 0},
#define GRAPH_OP(name, arity, outputs, kind, layout, ulp, kernel) \
  {#name, arity, outputs, OpKind::kind, OpLayout::layout, false, kernel, ulp},
#include "tessera/graph/ops.def"
#undef GRAPH_OP
}};

static_assert(static_cast<int>(Op::uniform) == static_cast<int>(ScalarOp::uniform));

}  // namespace

const OpInfo& info(Op op) { return kInfo[static_cast<size_t>(op)]; }

}  // namespace tessera
