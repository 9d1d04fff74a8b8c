#include "golden/golden.h"
#include "tessera/tensor/ops.h"

namespace tessera::golden {

namespace {

Outputs arithmetic(X x) {
  return {x[0] + x[1], x[0] - x[1], x[0] * x[1], maximum(x[0], x[1]), minimum(x[0], x[1])};
}
Outputs division(X x) { return {floor_div(x[0], x[1]), mod(x[0], x[1])}; }
Outputs bitwise(X x) {
  return {bitwise_and(x[0], x[1]), bitwise_or(x[0], x[1]), bitwise_xor(x[0], x[1]),
          bitwise_not(x[0])};
}
Outputs shifts(X x) { return {shift_left(x[0], x[1]), shift_right(x[0], x[1])}; }
Outputs comparisons(X x) {
  return {x[0] == x[1], x[0] != x[1], x[0]<x[1], x[0] <= x[1], x[0]> x[1], x[0] >= x[1]};
}
Outputs reductions(X x) {
  return {sum(x[0]),      sum(x[0], {0}), prod(slice(x[0], 1, 0, 2), {1}),
          max(x[0], {1}), min(x[0], {0}), cumsum(x[0], 1)};
}
Outputs order(X x) {
  const Ordered sorted = sort(x[0], 1);
  return {sorted.values, sorted.indices, argsort(x[0], 0, true)};
}
Outputs as_numbers(X x) { return {x[0] + 2, x[0] * 0.5, x[0] / 2, x[0] > 3, x[0] == 4}; }

// The first operand beside each of the others.
Outputs chosen(X x) {
  Outputs results;
  for (size_t i = 1; i < x.tensors.size(); ++i) {
    results.push_back(where(x[i] == x[i], x[0], x[i]));
  }
  return results;
}
Outputs added(X x) {
  Outputs results;
  for (size_t i = 1; i < x.tensors.size(); ++i) results.push_back(x[0] + x[i]);
  return results;
}

}  // namespace

// clang-format off
std::vector<Row> creation_rows() {
  return {
    {"zeros", [](X x) { return zeros({2, 3}, x.dtype); }},
    {"ones", [](X x) { return ones({4}, x.dtype); }},
    {"full", [](X x) { return full({2, 2}, -1.625, x.dtype); }},
    {"arange_fractions", [](X x) { return arange(-1, 2, 0.375, x.dtype); }},
    {"linspace", [](X x) { return linspace(-1, 2, 7, x.dtype); }},
    {"linspace_downwards", [](X x) { return linspace(3, -0.5, 8, x.dtype); }},
    {"linspace_one", [](X x) { return linspace(0.75, 2, 1, x.dtype); }},
    {"eye", [](X x) { return eye(3, x.dtype); }},
    {"eye_wide", [](X x) { return eye(2, 4, x.dtype); }},
  };
}

const std::vector<Row>& exact_rows() {
  static const std::vector<Row> rows = {
    {"arange", [](X) {
       return Outputs{arange(5), arange(2, 9), arange(1, 10, 3), arange(4, -5, -2)}; }},
    {"eye_of_integers", [](X) { return eye(3, 2, DType::i64); }},
    {"ones_like", [](X x) {
       return Outputs{ones_like(x[0]), zeros_like(x[0]), full_like(x[0], 7)}; }},
    {"one_hot", [](X x) { return one_hot(x[0], 4, DType::i64); }},

    {"i8_arithmetic", arithmetic}, {"i32_arithmetic", arithmetic},
    {"i64_arithmetic", arithmetic}, {"u8_arithmetic", arithmetic},
    {"i8_division", division}, {"i32_division", division},
    {"i64_division", division}, {"u8_division", division},
    {"i8_bitwise", bitwise}, {"i32_bitwise", bitwise},
    {"i64_bitwise", bitwise}, {"u8_bitwise", bitwise},
    {"i8_shifts", shifts}, {"i32_shifts", shifts},
    {"i64_shifts", shifts}, {"u8_shifts", shifts},
    {"i8_comparisons", comparisons}, {"i32_comparisons", comparisons},
    {"i64_comparisons", comparisons}, {"u8_comparisons", comparisons},
    {"i8_reductions", reductions}, {"i32_reductions", reductions},
    {"i64_reductions", reductions}, {"u8_reductions", reductions},
    {"i8_order", order}, {"i32_order", order},
    {"i64_order", order}, {"u8_order", order},
    {"i8_as_numbers", as_numbers}, {"i32_as_numbers", as_numbers},
    {"i64_as_numbers", as_numbers}, {"u8_as_numbers", as_numbers},
    {"integer_abs_and_sign", [](X x) { return Outputs{abs(x[0]), sign(x[0]), -x[0]}; }},
    {"integer_product", matmul},
    {"integer_structure", [](X x) {
       return Outputs{transpose(x[0]), x[0][{Slice{1}, Slice{{}, {}, 2}}], flip(x[0], 0),
                      tril(x[0]), roll(x[0], 1, 1)}; }},

    {"logical_and", logical_and},
    {"logical_or", logical_or},
    {"logical_xor", logical_xor},
    {"logical_not", logical_not},
    {"bool_bitwise", [](X x) {
       return Outputs{bitwise_and(x[0], x[1]), bitwise_or(x[0], x[1]), bitwise_xor(x[0], x[1])}; }},
    {"bool_reductions", [](X x) {
       return Outputs{sum(x[0]), sum(x[0], {1}), any(x[0], {0}), all(x[0], {1}),
                      cumsum(x[0], 1)}; }},
    {"bool_sort", [](X x) {
       const Ordered sorted = sort(x[0], 1);
       return Outputs{sorted.values, sorted.indices}; }},
    {"bool_where", [](X x) { return where(x[0], x[1], x[2]); }},

    {"promote_f32", chosen}, {"promote_f64", chosen}, {"promote_f16", chosen},
    {"promote_bf16", chosen}, {"promote_i8", chosen}, {"promote_i32", chosen},
    {"promote_i64", chosen}, {"promote_u8", chosen}, {"promote_bool", chosen},
    {"promote_sum_f32", added}, {"promote_sum_f64", added}, {"promote_sum_f16", added},
    {"promote_sum_bf16", added}, {"promote_sum_i8", added}, {"promote_sum_i32", added},
    {"promote_sum_i64", added}, {"promote_sum_u8", added},
  };
  return rows;
}
// clang-format on

}  // namespace tessera::golden
