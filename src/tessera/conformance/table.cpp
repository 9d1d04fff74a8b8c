#include "tessera/conformance/table.h"

#include <cmath>
#include <numbers>

#include "tessera/conformance/cases.h"
#include "tessera/graph/build.h"

namespace tessera {

namespace {

// Ranks 0 to 4; extents 0, 1 and primes; the last two are longer than a vector and than a tile.
const Shape kShapes[] = {{},        {0},          {1},          {7},      {3, 5},
                         {5, 0, 2}, {1, 3, 1, 7}, {2, 3, 5, 7}, {31, 37}, {1031}};

Row scalar(Op op, Domain a, Domain b, Exact exact) {
  auto cases = [op, a, b](DType) {
    std::vector<Case> result;
    for (const Shape& shape : kShapes) {
      std::vector<Input> inputs = {{shape, a}, {shape, b}};
      inputs.resize(size_t(info(op).arity));
      result.push_back({to_string(shape), inputs, [op](const std::vector<Value>& in) {
                          return std::vector<Value>{Value{make_node(op, in), 0}};
                        }});
    }
    return result;
  };
  return {op, [op](DType dtype) { return accepts(scalar_op(op), dtype); }, cases, exact};
}

Row scalar(Op op, Domain a, Exact exact) { return scalar(op, a, a, exact); }

std::vector<Case> where_cases(DType) {
  std::vector<Case> result;
  for (const Shape& shape : kShapes) {
    const Domain domain = {-2, 2};
    result.push_back({to_string(shape),
                      {{shape, domain, Element::boolean}, {shape, domain}, {shape, domain}},
                      [](const std::vector<Value>& in) {
                        return std::vector<Value>{graph::where(in[0], in[1], in[2])};
                      },
                      0});
  }
  return result;
}

bool any(DType) { return true; }
bool number(DType dtype) { return dtype != DType::boolean; }
bool floating(DType dtype) { return is_float(dtype); }
bool only_f32(DType dtype) { return dtype == DType::f32; }

constexpr Domain kPositive = {0.25, 4};
constexpr Domain kApart = {-2, 2, Pick::apart};
constexpr Domain kBetween = {-2, 2, Pick::between};
// Quotients of kBetween by these are away from every integer. Integers: some are 0.
constexpr Domain kDivisor = {0.5, 4, Pick::coarse};
constexpr Domain kAmount = {0, 40, Pick::index};  // of shifts: more than some types have bits

// Definition (conformance_test.cpp) asks for integers as i32.
double wrapped_to_i32(double x) { return x - 0x1p32 * std::floor((x + 0x1p31) / 0x1p32); }

// GPT-2's gelu is a / 2 · (1 + tanh(w)) = a / (1 + exp(-2 w)) with this w.
double gelu_argument(double a) {
  return std::sqrt(2 / std::numbers::pi) * (a + 0.044715 * std::pow(a, 3));
}

double gelu_slope(double a) {
  const double t = std::tanh(gelu_argument(a));
  const double inner = std::sqrt(2 / std::numbers::pi) * (1 + 3 * 0.044715 * a * a);
  return (1 + t) / 2 + a / 2 * (1 - t * t) * inner;
}

// clang-format off
std::vector<Row> table() {
  return {
    scalar(Op::neg,         kAround,            [](double a, double) { return -a; }),
    scalar(Op::abs,         kApart,             [](double a, double) { return std::fabs(a); }),
    scalar(Op::sign,        kApart,             [](double a, double) { return double(a > 0) - double(a < 0); }),
    scalar(Op::exp,         {-4, 4},            [](double a, double) { return std::exp(a); }),
    scalar(Op::expm1,       {-4, 4},            [](double a, double) { return std::expm1(a); }),
    scalar(Op::log,         kPositive,          [](double a, double) { return std::log(a); }),
    scalar(Op::log1p,       {-0.5, 4},          [](double a, double) { return std::log1p(a); }),
    scalar(Op::log2,        kPositive,          [](double a, double) { return std::log2(a); }),
    scalar(Op::sqrt,        kPositive,          [](double a, double) { return std::sqrt(a); }),
    scalar(Op::rsqrt,       kPositive,          [](double a, double) { return std::pow(a, -0.5); }),
    scalar(Op::reciprocal,  kPositive,          [](double a, double) { return std::pow(a, -1.0); }),
    scalar(Op::sin,         {-8, 8},            [](double a, double) { return std::sin(a); }),
    scalar(Op::cos,         {-8, 8},            [](double a, double) { return std::cos(a); }),
    scalar(Op::tan,         {-1, 1},            [](double a, double) { return std::sin(a) / std::cos(a); }),
    scalar(Op::asin,        {-0.75, 0.75},      [](double a, double) { return std::asin(a); }),
    scalar(Op::acos,        {-0.75, 0.75},      [](double a, double) { return std::acos(a); }),
    scalar(Op::atan,        {-4, 4},            [](double a, double) { return std::atan(a); }),
    scalar(Op::sinh,        {-4, 4},            [](double a, double) { return std::sinh(a); }),
    scalar(Op::cosh,        {-4, 4},            [](double a, double) { return (std::exp(a) + std::exp(-a)) / 2; }),
    scalar(Op::tanh,        kAround,            [](double a, double) { return std::tanh(a); }),
    scalar(Op::erf,         kAround,            [](double a, double) { return std::erf(a); }),
    scalar(Op::sigmoid,     {-8, 8},            [](double a, double) { return std::exp(a) / (std::exp(a) + 1); }),
    scalar(Op::gelu_tanh,   {-1, 4},            [](double a, double) { return a / (1 + std::exp(-2 * gelu_argument(a))); }),
    scalar(Op::gelu_tanh_slope, {-0.5, 4},      [](double a, double) { return gelu_slope(a); }),
    scalar(Op::floor,       kBetween,           [](double a, double) { return std::floor(a); }),
    scalar(Op::ceil,        kBetween,           [](double a, double) { return -std::floor(-a); }),
    scalar(Op::round,       kBetween,           [](double a, double) { return a - std::remainder(a, 1.0); }),
    scalar(Op::trunc,       kBetween,           [](double a, double) { return std::copysign(std::floor(std::fabs(a)), a); }),
    scalar(Op::isnan,       kAround,            [](double a, double) { return double(std::isnan(a)); }),
    scalar(Op::isinf,       kAround,            [](double a, double) { return double(std::isinf(a)); }),
    scalar(Op::isfinite,    kAround,            [](double a, double) { return double(std::isfinite(a)); }),
    scalar(Op::bitwise_not, kAround,            [](double a, double) { return -1 - a; }),
    scalar(Op::logical_not, kAround,            [](double a, double) { return 1 - a; }),

    scalar(Op::add,         kAround,            [](double a, double b) { return a + b; }),
    scalar(Op::sub,         kAround,            [](double a, double b) { return a - b; }),
    scalar(Op::mul,         kAround,            [](double a, double b) { return a * b; }),
    scalar(Op::div,         kAround, kApart,    [](double a, double b) { return a / b; }),
    scalar(Op::floor_div,   kBetween, kDivisor, [](double a, double b) { return b == 0 ? 0 : std::floor(a / b); }),
    scalar(Op::mod,         kBetween, kDivisor, [](double a, double b) { return b == 0 ? 0 : a - b * std::floor(a / b); }),
    scalar(Op::atan2,       kApart,             [](double a, double b) { return std::atan2(a, b); }),
    scalar(Op::pow,         kPositive, kAround, [](double a, double b) { return std::pow(a, b); }),
    scalar(Op::maximum,     kAround,            [](double a, double b) { return std::fmax(a, b); }),
    scalar(Op::minimum,     kAround,            [](double a, double b) { return std::fmin(a, b); }),
    scalar(Op::eq,          kCoarse,            [](double a, double b) { return double(a == b); }),
    scalar(Op::ne,          kCoarse,            [](double a, double b) { return double(a != b); }),
    scalar(Op::lt,          kCoarse,            [](double a, double b) { return double(a < b); }),
    scalar(Op::le,          kCoarse,            [](double a, double b) { return double(a <= b); }),
    scalar(Op::gt,          kCoarse,            [](double a, double b) { return double(a > b); }),
    scalar(Op::ge,          kCoarse,            [](double a, double b) { return double(a >= b); }),
    scalar(Op::logical_and, kAround,            [](double a, double b) { return a * b; }),
    scalar(Op::logical_or,  kAround,            [](double a, double b) { return std::fmax(a, b); }),
    scalar(Op::bitwise_and, kAround,            [](double a, double b) { return double(int64_t(a) & int64_t(b)); }),
    scalar(Op::bitwise_or,  kAround,            [](double a, double b) { return double(int64_t(a) | int64_t(b)); }),
    scalar(Op::bitwise_xor, kAround,            [](double a, double b) { return double(int64_t(a) ^ int64_t(b)); }),
    scalar(Op::shift_left,  kAround, kAmount,   [](double a, double b) { return wrapped_to_i32(std::ldexp(a, int(b))); }),
    scalar(Op::shift_right, kAround, kAmount,   [](double a, double b) { return std::floor(std::ldexp(a, -int(b))); }),
    {Op::where, any, where_cases},

    {Op::leaf,                 any,      leaf_cases},
    {Op::constant,             any,      constant_cases},
    {Op::iota,                 number,   iota_cases},
    {Op::uniform,              only_f32, uniform_cases},
    {Op::cast,                 any,      cast_cases, nullptr, 0.25},
    {Op::sum,                  number,   sum_cases},
    {Op::prod,                 number,   prod_cases},
    {Op::max,                  any,      max_cases},
    {Op::min,                  any,      min_cases},
    {Op::argmax,               any,      argmax_cases},
    {Op::reshape,              any,      reshape_cases},
    {Op::permute,              any,      permute_cases},
    {Op::expand,               any,      expand_cases},
    {Op::slice,                any,      slice_cases},
    {Op::window,               any,      window_cases},
    {Op::pad,                  any,      pad_cases},
    {Op::concat,               any,      concat_cases},
    {Op::gather,               any,      gather_cases},
    {Op::dynamic_slice,        any,      dynamic_slice_cases},
    {Op::scatter_add,          number,   scatter_add_cases},
    {Op::scatter,              any,      scatter_cases},
    {Op::dynamic_update_slice, any,      dynamic_update_slice_cases},
    {Op::matmul,               number,   matmul_cases},
    {Op::stop_gradient,        any,      stop_gradient_cases, nullptr, kStep, true},
    {Op::region_enter,         number,   region_cases},
    {Op::region_exit,          number,   region_cases},
    {Op::custom_vjp,           number,   custom_vjp_cases},
    {Op::cumsum,               number,   cumsum_cases},
    {Op::cumprod,              number,   cumprod_cases},
    {Op::sort,                 any,      sort_cases},
    {Op::topk,                 any,      topk_cases},
    {Op::softmax,              floating, softmax_cases},
    {Op::layer_norm,           floating, layer_norm_cases},
    {Op::layer_norm_backward,  floating, layer_norm_backward_cases},
    {Op::linear,               floating, linear_cases},
    {Op::linear_slope,         floating, linear_slope_cases},
    {Op::matmul_add,           floating, matmul_add_cases},
    {Op::matmul_sums,          floating, matmul_sums_cases},
    {Op::cross_entropy,        floating, cross_entropy_cases},
    {Op::attention,            floating, attention_cases},
    {Op::attention_backward,   floating, attention_backward_cases},
    {Op::custom,               floating, custom_cases},
  };
}
// clang-format on

}  // namespace

const std::vector<Row>& rows() {
  static const std::vector<Row> all = table();
  return all;
}

}  // namespace tessera
