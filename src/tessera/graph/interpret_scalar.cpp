#include "tessera/graph/interpret_scalar.h"

#include <math.h>  // not <cmath>: the expressions of scalar_ops.def call unqualified functions

#include <compare>
#include <limits>
#include <type_traits>

namespace tessera {

namespace {

// An integer whose arithmetic wraps, so that no expression of the table overflows.
struct Wrapping {
  int64_t value = 0;

  Wrapping() = default;
  Wrapping(int64_t v) : value(v) {}
  explicit operator bool() const { return value != 0; }
  auto operator<=>(const Wrapping&) const = default;

  friend Wrapping operator+(Wrapping a, Wrapping b) { return of(u(a) + u(b)); }
  friend Wrapping operator-(Wrapping a, Wrapping b) { return of(u(a) - u(b)); }
  friend Wrapping operator*(Wrapping a, Wrapping b) { return of(u(a) * u(b)); }
  friend Wrapping operator-(Wrapping a) { return of(0 - u(a)); }
  friend Wrapping operator&(Wrapping a, Wrapping b) { return of(u(a) & u(b)); }
  friend Wrapping operator|(Wrapping a, Wrapping b) { return of(u(a) | u(b)); }
  friend Wrapping operator^(Wrapping a, Wrapping b) { return of(u(a) ^ u(b)); }
  friend Wrapping operator~(Wrapping a) { return of(~u(a)); }

 private:
  static uint64_t u(Wrapping a) { return static_cast<uint64_t>(a.value); }
  static Wrapping of(uint64_t bits) { return static_cast<int64_t>(bits); }
};

double t_abs(double a) { return fabs(a); }
Wrapping t_abs(Wrapping a) { return a < 0 ? -a : a; }

// GPT-2's gelu by its definition, as far as 1 + tanh does not cancel, and its derivative.
double t_gelu_tanh(double x) {
  const double u = 0.7978845608028654 * (x + 0.044715 * x * x * x);
  if (x < -1e4) return 0;
  return u > -1 ? 0.5 * x * (1 + tanh(u)) : x * exp(2 * u) / (1 + exp(2 * u));
}

double t_gelu_tanh_slope(double x) {
  if (fabs(x) > 1e4) return x > 0 ? 1 : 0;
  const double w = 1.5957691216057308 * (x + 0.044715 * x * x * x);
  const double slope = 1.5957691216057308 * (1 + 3 * 0.044715 * x * x);
  const double small = exp(-fabs(w)), share = w > 0 ? 1 : small;
  return share / (1 + small) * (1 + x * slope * (w > 0 ? small : 1) / (1 + small));
}

bool needs_correction(double rest, double b) { return rest != 0 && signbit(rest) != signbit(b); }

double t_mod(double a, double b) {
  const double rest = fmod(a, b);
  return needs_correction(rest, b) ? rest + b : rest;
}

double t_floor_div(double a, double b) {
  if (b == 0) return a / b;
  // a - rest is a multiple of b, so that only rounding keeps the quotient from being whole.
  const double rest = fmod(a, b), towards_zero = nearbyint((a - rest) / b);
  const double floored = needs_correction(rest, b) ? towards_zero - 1 : towards_zero;
  return floored == 0 ? copysign(0.0, a / b) : floored;
}

Wrapping t_floor_div(Wrapping a, Wrapping b) {
  if (b == 0) return 0;
  if (b == -1) return -a;
  const int64_t towards_zero = a.value / b.value, product = towards_zero * b.value;
  const bool above = b < 0 ? product < a.value : product > a.value;
  return above ? towards_zero - 1 : towards_zero;
}

Wrapping t_mod(Wrapping a, Wrapping b) { return b == 0 ? 0 : a - b * t_floor_div(a, b); }

// The operands are as wide as 64 bits whatever their type: apply_scalar narrows the result.
Wrapping t_shift_left(Wrapping a, Wrapping b) {
  if (b < 0 || b > 63) return 0;
  return static_cast<int64_t>(static_cast<uint64_t>(a.value) << b.value);
}

Wrapping t_shift_right(Wrapping a, Wrapping b) {
  if (b < 0 || b > 63) return a < 0 ? -1 : 0;
  return a.value >> b.value;
}

// Whether a row has a form over T: double stands for floats, Wrapping for the rest.
template <class T>
constexpr bool has_form(ScalarIn in) {
  return std::is_same_v<T, double> ? takes_floats(in) : takes_integers(in) || takes_bool(in);
}

template <class T>
T apply_row(ScalarOp op, T a, [[maybe_unused]] T b) {
  switch (op) {
#define SCALAR_OP(name, arity, in, out, algebra, ulp, ...)          \
  case ScalarOp::name:                                              \
    if constexpr (has_form<T>(ScalarIn::in)) return T(__VA_ARGS__); \
    break;
#include "tessera/base/scalar_ops.def"
#undef SCALAR_OP
    default: break;
  }
  TESSERA_ASSERT(!"a scalar function without an expression for this type");
  return a;
}

}  // namespace

double apply_scalar(ScalarOp op, double a, double b) { return apply_row(op, a, b); }

int64_t apply_scalar(ScalarOp op, DType dtype, int64_t a, int64_t b) {
  return wrap_to(dtype, apply_row<Wrapping>(op, a, b).value);
}

double round_to(DType dtype, double value) {
  return scalar_as_double(dtype, scalar_bits(dtype, value));
}

int64_t wrap_to(DType dtype, int64_t value) {
  return scalar_as_int(dtype, scalar_bits(dtype, value));
}

int64_t truncate_to(DType dtype, double value) {
  if (dtype == DType::boolean) return value != 0;
  return visit(dtype, [value]<class T>() -> int64_t {
    if constexpr (std::is_integral_v<T>) {
      constexpr T low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
      if (value != value) return 0;
      // 2^63 - 1 is no double: compare with >= against what it rounds to.
      if (value >= static_cast<double>(high)) return static_cast<int64_t>(high);
      if (value <= static_cast<double>(low)) return static_cast<int64_t>(low);
      return static_cast<int64_t>(value);
    }
    return 0;
  });
}

}  // namespace tessera
