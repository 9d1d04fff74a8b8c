// The cases of everything that is no scalar function: which shapes and attributes each op is tried
// on.
#pragma once

#include "tessera/conformance/table.h"

namespace tessera {

using Values = std::vector<Value>;
using Cases = std::vector<Case>;

inline constexpr Domain kAround = {-2, 2};
inline constexpr Domain kCoarse = {-2, 2, Pick::coarse};
inline constexpr Domain kNearOne = {0.875, 1.125};  // a thousand factors stay in every type's range

// One operand around 0. Growth 0: the result is exact.
template <class F>
Case case_of(std::string name, const Shape& shape, F op, double growth = 0) {
  auto build = [op](const Values& in) { return Values{op(in[0])}; };
  return {std::move(name), {{shape, kAround}}, build, growth};
}

// structure_cases.cpp
Cases leaf_cases(DType);
Cases constant_cases(DType);
Cases iota_cases(DType);
Cases uniform_cases(DType);
Cases cast_cases(DType);
Cases reshape_cases(DType);
Cases permute_cases(DType);
Cases expand_cases(DType);
Cases slice_cases(DType);
Cases window_cases(DType);
Cases pad_cases(DType);
Cases concat_cases(DType);
Cases stop_gradient_cases(DType);
Cases region_cases(DType);
Cases custom_vjp_cases(DType);

// custom_cases.cpp
Cases custom_cases(DType);

// compute_cases.cpp
Cases sum_cases(DType);
Cases prod_cases(DType);
Cases max_cases(DType);
Cases min_cases(DType);
Cases argmax_cases(DType);
Cases gather_cases(DType);
Cases scatter_add_cases(DType);
Cases scatter_cases(DType);
Cases dynamic_slice_cases(DType);
Cases dynamic_update_slice_cases(DType);
Cases matmul_cases(DType);
Cases softmax_cases(DType);
Cases layer_norm_cases(DType);
Cases layer_norm_backward_cases(DType);
Cases linear_cases(DType);
Cases linear_slope_cases(DType);
Cases matmul_add_cases(DType);
Cases matmul_sums_cases(DType);
Cases cross_entropy_cases(DType);

// attention_cases.cpp
Cases attention_cases(DType);
Cases attention_backward_cases(DType);

// order_cases.cpp
Cases cumsum_cases(DType);
Cases cumprod_cases(DType);
Cases sort_cases(DType);
Cases topk_cases(DType);

}  // namespace tessera
