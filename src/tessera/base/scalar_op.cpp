#include "tessera/base/scalar_op.h"

#include <array>

namespace tessera {

namespace {

constexpr std::array<ScalarOpInfo, kScalarOpCount> kInfo = {{
#define SCALAR_OP(name, arity, in, out, algebra, ulp, ...) \
  {#name, arity, ScalarIn::in, ScalarOut::out, ScalarAlgebra::algebra, ulp, #__VA_ARGS__},
#include "tessera/base/scalar_ops.def"
#undef SCALAR_OP
    {"where", 3, ScalarIn::mixed, ScalarOut::same, ScalarAlgebra::plain, 0.5, "a ? b : c"},
    {"uniform", 3, ScalarIn::mixed, ScalarOut::same, ScalarAlgebra::plain, 0, "t_uniform(a, b, c)"},
}};

}  // namespace

const ScalarOpInfo& info(ScalarOp op) { return kInfo[static_cast<size_t>(op)]; }

bool accepts(ScalarOp op, DType dtype) {
  const ScalarIn in = info(op).in;
  if (in == ScalarIn::mixed) return true;
  if (dtype == DType::boolean) return takes_bool(in);
  return is_float(dtype) ? takes_floats(in) : takes_integers(in);
}

}  // namespace tessera
