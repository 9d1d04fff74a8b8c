#include "backend_cpu/interpreter.h"

#include <cmath>
#include <limits>

#include "tessera/base/philox.h"

namespace tessera::test {

namespace {

// Floats are held as double, everything else as int64_t in `i`.
struct Value {
  double f = 0;
  int64_t i = 0;
};

Value rounded(DType dtype, Value v) {
  switch (dtype) {
    case DType::f32: v.f = float(v.f); break;
    case DType::f64: break;
    case DType::f16: v.f = float(f16(float(v.f))); break;
    case DType::bf16: v.f = float(bf16(float(v.f))); break;
    case DType::i8: v.i = int8_t(v.i); break;
    case DType::i32: v.i = int32_t(v.i); break;
    case DType::i64: break;
    case DType::u8: v.i = uint8_t(v.i); break;
    case DType::u32: v.i = uint32_t(v.i); break;
    case DType::boolean: v.i = v.i != 0; break;
  }
  return v;
}

int64_t clamp_to_int(DType to, double x) {
  if (std::isnan(x)) return 0;
  auto clamp = [&](double low, double high) { return int64_t(std::min(std::max(x, low), high)); };
  switch (to) {
    case DType::i8: return clamp(-128, 127);
    case DType::i32: return clamp(-2147483648.0, 2147483647.0);
    case DType::u8: return clamp(0, 255);
    case DType::u32: return clamp(0, 4294967295.0);
    default:
      if (x >= 0x1p63) return std::numeric_limits<int64_t>::max();
      if (x <= -0x1p63) return std::numeric_limits<int64_t>::min();
      return int64_t(x);
  }
}

Value convert(DType from, DType to, Value v) {
  Value r;
  if (is_float(to)) {
    r.f = is_float(from) ? v.f : double(v.i);
  } else if (to == DType::boolean) {
    r.i = is_float(from) ? v.f != 0 : v.i != 0;
  } else {
    r.i = is_float(from) ? clamp_to_int(to, v.f) : v.i;
  }
  return rounded(to, r);
}

// GPT-2's gelu as x · sigmoid(w), and what its definition gives for the derivative.
double gelu_argument(double x) { return 1.5957691216057308 * (x + 0.044715 * x * x * x); }
double sigmoid(double w) {
  return w < 0 ? std::exp(w) / (1 + std::exp(w)) : 1 / (1 + std::exp(-w));
}

double t_gelu_tanh(double x) { return x < -1e4 ? 0 : x * sigmoid(gelu_argument(x)); }
double t_gelu_tanh_slope(double x) {
  if (std::abs(x) > 1e4) return x > 0;
  const double w = gelu_argument(x), slope = 1.5957691216057308 * (1 + 3 * 0.044715 * x * x);
  return sigmoid(w) + x * sigmoid(w) * sigmoid(-w) * slope;
}

double t_floor_div(double a, double b) {
  if (b == 0 || std::isinf(a)) return b == 0 ? a / b : NAN;
  if (std::isinf(b)) return a != 0 && (a < 0) != (b < 0) ? -1 : 0;
  return std::floor(a / b);
}

double t_mod(double a, double b) {
  const double rest = std::fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

int64_t t_floor_div(int64_t a, int64_t b) {
  if (b == 0 || b == -1) return b == 0 ? 0 : int64_t(0 - uint64_t(a));
  return (a - (a % b + b) % b) / b;
}

int64_t t_mod(int64_t a, int64_t b) { return b == 0 || b == -1 ? 0 : (a % b + b) % b; }

int64_t t_shift_left(int64_t a, int64_t b) {
  return b < 0 || b > 63 ? 0 : int64_t(uint64_t(a) << b);
}

int64_t t_shift_right(int64_t a, int64_t b) { return b < 0 || b > 63 ? -(a < 0) : a >> b; }

// Whether a row has a form over T: double stands for floats, int64_t for the rest.
template <class T>
constexpr bool has_form(ScalarIn in) {
  return std::is_same_v<T, double> ? takes_floats(in) : takes_integers(in) || takes_bool(in);
}

// The op table's own expression, for rows that the lists below do not define anew.
template <class T>
__attribute__((no_sanitize("signed-integer-overflow"))) T by_table(ScalarOp op, T a,
                                                                   [[maybe_unused]] T b) {
  using namespace std;
  [[maybe_unused]] const auto t_abs = [](T x) { return x < 0 ? -x : x; };
  switch (op) {
#define SCALAR_OP(name, arity, in, out, algebra, ulp, ...)          \
  case ScalarOp::name:                                              \
    if constexpr (has_form<T>(ScalarIn::in)) return T(__VA_ARGS__); \
    break;
#include "tessera/base/scalar_ops.def"
#undef SCALAR_OP
    default: break;
  }
  TESSERA_ASSERT(!"not a function of the table");
  return 0;
}

double apply_float(ScalarOp op, double a, double b) {
  switch (op) {
    case ScalarOp::neg: return -a;
    case ScalarOp::abs: return std::abs(a);
    case ScalarOp::sign: return a > 0 ? 1 : a < 0 ? -1 : a;
    case ScalarOp::exp: return std::exp(a);
    case ScalarOp::log: return std::log(a);
    case ScalarOp::sqrt: return std::sqrt(a);
    case ScalarOp::rsqrt: return 1 / std::sqrt(a);
    case ScalarOp::sin: return std::sin(a);
    case ScalarOp::cos: return std::cos(a);
    case ScalarOp::tanh: return std::tanh(a);
    case ScalarOp::erf: return std::erf(a);
    case ScalarOp::sigmoid: return 1 / (1 + std::exp(-a));
    case ScalarOp::floor: return std::floor(a);
    case ScalarOp::ceil: return std::ceil(a);
    case ScalarOp::round: return std::nearbyint(a);
    case ScalarOp::isnan: return std::isnan(a);
    case ScalarOp::isinf: return std::isinf(a);
    case ScalarOp::isfinite: return std::isfinite(a);
    case ScalarOp::add: return a + b;
    case ScalarOp::sub: return a - b;
    case ScalarOp::mul: return a * b;
    case ScalarOp::div: return a / b;
    case ScalarOp::pow: return std::pow(a, b);
    case ScalarOp::maximum: return std::isnan(a) || std::isnan(b) ? NAN : std::max(a, b);
    case ScalarOp::minimum: return std::isnan(a) || std::isnan(b) ? NAN : std::min(a, b);
    default: return by_table(op, a, b);
  }
}

int64_t apply_int(ScalarOp op, int64_t a, int64_t b) {
  const uint64_t ua = uint64_t(a), ub = uint64_t(b);  // i64 wraps too
  switch (op) {
    case ScalarOp::neg: return int64_t(0 - ua);
    case ScalarOp::abs: return a < 0 ? int64_t(0 - ua) : a;
    case ScalarOp::sign: return (a > 0) - (a < 0);
    case ScalarOp::add: return int64_t(ua + ub);
    case ScalarOp::sub: return int64_t(ua - ub);
    case ScalarOp::mul: return int64_t(ua * ub);
    case ScalarOp::maximum: return std::max(a, b);
    case ScalarOp::minimum: return std::min(a, b);
    case ScalarOp::logical_not: return !a;
    case ScalarOp::logical_and: return a && b;
    case ScalarOp::logical_or: return a || b;
    default: return by_table(op, a, b);
  }
}

template <class T>
bool compare(ScalarOp op, T a, T b) {
  switch (op) {
    case ScalarOp::eq: return a == b;
    case ScalarOp::ne: return a != b;
    case ScalarOp::lt: return a < b;
    case ScalarOp::le: return a <= b;
    case ScalarOp::gt: return a > b;
    default: return a >= b;
  }
}

class Interpreter {
 public:
  Interpreter(const KernelIR& ir, std::vector<Array>& operands) : ir_(ir), operands_(operands) {}

  void run() {
    const int64_t rows = ir_.outer_count(), points = ir_.inner_count();
    if (ir_.is_map() && rows * points == 0) return;
    for (int64_t row = 0; row < rows; ++row) run_row(row, points);
  }

 private:
  using Values = std::vector<Value>;

  Dims coordinates(int64_t row, int64_t point) const {
    Dims at = ir_.extents;
    for (int d = at.rank() - 1; d >= ir_.inner; --d) {
      at[d] = ir_.extents[d] == 0 ? 0 : point % ir_.extents[d];
      if (ir_.extents[d] != 0) point /= ir_.extents[d];
    }
    for (int d = ir_.inner - 1; d >= 0; --d) {
      at[d] = row % ir_.extents[d];
      row /= ir_.extents[d];
    }
    return at;
  }

  // Every register of one row: one value, or one per point.
  void run_row(int64_t row, int64_t points) {
    std::vector<Values> registers(ir_.insts.size());
    for (size_t i = 0; i < ir_.insts.size(); ++i) {
      const IrInst& inst = ir_.insts[i];
      if (inst.kind == IrKind::reduce) {
        registers[i].assign(1, reduce(inst, registers[size_t(inst.args[0])]));
        continue;
      }
      const int64_t count = inst.level == IrLevel::row ? 1 : points;
      for (int64_t p = 0; p < count; ++p) {
        Value args[3];
        for (int k = 0; k < 3; ++k) {
          if (inst.args[k] < 0) continue;
          const Values& from = registers[size_t(inst.args[k])];
          args[k] = from[ir_.insts[size_t(inst.args[k])].level == IrLevel::row ? 0 : size_t(p)];
        }
        registers[i].push_back(evaluate(inst, coordinates(row, p), args));
      }
    }
  }

  static int64_t address(const IrInst& inst, const Dims& at) {
    int64_t result = inst.offset;
    for (int d = 0; d < at.rank(); ++d) result += at[d] * inst.strides[d];
    return result;
  }

  Value read(const IrInst& inst, int64_t at) const {
    const Array& array = operands_[size_t(inst.operand)];
    Value v;
    v.f = array.get(at);
    v.i = int64_t(v.f);
    return v;
  }

  Value load(const IrInst& inst, const Dims& at, const Value* args) const {
    for (int d = 0; d < at.rank() && inst.masked; ++d) {
      if (at[d] < inst.low[d] || at[d] >= inst.high[d]) return args[0];
    }
    return read(inst, address(inst, at) + (inst.indexed ? args[1].i * inst.index_stride : 0));
  }

  Value scalar(const IrInst& inst, const Value* args) const {
    const DType dtype = ir_.insts[size_t(inst.args[0])].dtype;
    Value r;
    if (inst.op == ScalarOp::where) return args[0].i != 0 ? args[1] : args[2];
    if (inst.op == ScalarOp::uniform) {
      r.f = philox_uniform(args[0].i, args[1].i, args[2].i);
    } else if (inst.op >= ScalarOp::eq && inst.op <= ScalarOp::ge) {
      r.i = is_float(dtype) ? compare(inst.op, args[0].f, args[1].f)
                            : compare(inst.op, args[0].i, args[1].i);
    } else if (is_float(dtype)) {
      r.f = apply_float(inst.op, args[0].f, args[1].f);
      r.i = int64_t(inst.dtype == DType::boolean && r.f != 0);
    } else {
      r.i = apply_int(inst.op, args[0].i, args[1].i);
    }
    return rounded(inst.dtype, r);
  }

  Value evaluate(const IrInst& inst, const Dims& at, const Value* args) {
    Value r;
    switch (inst.kind) {
      case IrKind::constant:
        r.f = scalar_as_double(inst.dtype, inst.bits);
        if (!is_float(inst.dtype)) r.i = scalar_as_int(inst.dtype, inst.bits);
        return r;
      case IrKind::index: r.i = address(inst, at); return r;
      case IrKind::load: return load(inst, at, args);
      case IrKind::scalar: return scalar(inst, args);
      case IrKind::cast:
        r = convert(ir_.insts[size_t(inst.args[0])].dtype, inst.dtype, args[0]);
        return inst.round_to != inst.dtype ? rounded(inst.round_to, r) : r;
      case IrKind::store: {
        const DType from = ir_.insts[size_t(inst.args[0])].dtype;
        operands_[size_t(inst.operand)].set(address(inst, at),
                                            is_float(from) ? args[0].f : double(args[0].i));
        return r;
      }
      case IrKind::reduce: break;
    }
    return r;
  }

  Value reduce(const IrInst& inst, const Values& values) const {
    const IrInst& arg = ir_.insts[size_t(inst.args[0])];
    const bool floats = is_float(arg.dtype);
    Value r;
    if (inst.reduce == ReduceOp::argmax) return argmax(floats, values);
    const bool max = inst.reduce == ReduceOp::max;
    if (inst.reduce == ReduceOp::prod) r = {1, 1};
    if (max || inst.reduce == ReduceOp::min) {
      r.f = max ? -INFINITY : INFINITY;
      r.i = convert(DType::f64, arg.dtype, r).i;
      if (arg.dtype == DType::boolean) r.i = max ? 0 : 1;
    }
    const ScalarOp op = inst.reduce == ReduceOp::sum    ? ScalarOp::add
                        : inst.reduce == ReduceOp::prod ? ScalarOp::mul
                        : max                           ? ScalarOp::maximum
                                                        : ScalarOp::minimum;
    for (const Value& v : values) {
      if (floats) r.f = apply_float(op, r.f, v.f);
      if (!floats) r.i = rounded(arg.dtype, Value{0, apply_int(op, r.i, v.i)}).i;
    }
    return rounded(arg.dtype, r);
  }

  static Value argmax(bool floats, const Values& values) {
    Value r;
    for (size_t k = 1; k < values.size(); ++k) {
      const Value &v = values[k], &best = values[size_t(r.i)];
      const bool better =
          floats ? v.f > best.f || (std::isnan(v.f) && !std::isnan(best.f)) : v.i > best.i;
      if (better) r.i = int64_t(k);
    }
    return r;
  }

  const KernelIR& ir_;
  std::vector<Array>& operands_;
};

}  // namespace

void interpret_kernel(const KernelIR& ir, std::vector<Array>& operands) {
  Interpreter(ir, operands).run();
}

}  // namespace tessera::test
