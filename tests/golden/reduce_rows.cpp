#include "tessera/tensor/reduce.h"

#include <limits>

#include "golden/golden.h"
#include "tessera/tensor/order.h"

namespace tessera::golden {

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

Outputs both(const Ordered& ordered) { return {ordered.values, ordered.indices}; }

}  // namespace

// clang-format off
std::vector<Row> reduce_rows() {
  return {
    {"sum", [](X x) { return sum(x[0]); }},
    {"sum_first", [](X x) { return sum(x[0], {0}); }},
    {"sum_last", [](X x) { return sum(x[0], {-1}); }},
    {"sum_middle_keepdims", [](X x) { return sum(x[0], {1}, true); }},
    {"sum_two_axes", [](X x) { return sum(x[0], {0, 2}); }},
    {"sum_two_axes_keepdims", [](X x) { return sum(x[0], {-1, 0}, true); }},
    {"mean", [](X x) { return mean(x[0]); }},
    {"mean_last", [](X x) { return mean(x[0], {-1}); }},
    {"mean_two_axes_keepdims", [](X x) { return mean(x[0], {0, 1}, true); }},
    {"prod", [](X x) { return prod(x[0]); }},
    {"prod_first", [](X x) { return prod(x[0], {0}); }},
    {"prod_keepdims", [](X x) { return prod(x[0], {1}, true); }},
    {"prod_two_axes", [](X x) { return prod(x[0], {0, 2}); }},
    {"prod_one_zero", [](X x) { return prod(x[0], {1}); }},
    {"prod_two_zeros", [](X x) { return prod(x[0]); }},
    {"max", [](X x) { return max(x[0]); }},
    {"max_first", [](X x) { return max(x[0], {0}); }},
    {"max_two_axes_keepdims", [](X x) { return max(x[0], {0, 2}, true); }},
    {"max_ties", [](X x) { return max(x[0], {1}); }},
    {"min", [](X x) { return min(x[0]); }},
    {"min_last_keepdims", [](X x) { return min(x[0], {-1}, true); }},
    {"min_two_axes", [](X x) { return min(x[0], {1, 2}); }},
    {"min_ties", [](X x) { return min(x[0], {0}); }},
    {"var", [](X x) { return var(x[0]); }},
    {"var_last", [](X x) { return var(x[0], {-1}); }},
    {"var_population", [](X x) { return var(x[0], {0}, true, 0); }},
    {"var_two_axes", [](X x) { return var(x[0], {0, 2}); }},
    {"var_offset", [](X x) { return var(x[0], {-1}); }},
    {"std", [](X x) { return stddev(x[0]); }},
    {"std_last", [](X x) { return stddev(x[0], {-1}, true); }},
    {"std_population", [](X x) { return stddev(x[0], {0}, false, 0); }},
    {"norm", [](X x) { return norm(x[0]); }},
    {"norm_last", [](X x) { return norm(x[0], 2, {-1}, true); }},
    {"norm_one", [](X x) { return norm(x[0], 1, {0}); }},
    {"norm_three", [](X x) { return norm(x[0], 3, {1}); }},
    {"norm_half", [](X x) { return norm(x[0], 0.5, {1}); }},
    {"norm_inf", [](X x) { return norm(x[0], kInf, {1}); }},
    {"norm_zero", [](X x) { return norm(x[0], 0, {1}); }},
    {"norm_two_axes", [](X x) { return norm(x[0], 2, {0, 2}); }},
    {"norm_of_zeros", [](X x) { return norm(x[0]); }},
    {"logsumexp", [](X x) { return logsumexp(x[0]); }},
    {"logsumexp_last", [](X x) { return logsumexp(x[0], {-1}, true); }},
    {"logsumexp_two_axes", [](X x) { return logsumexp(x[0], {0, 2}); }},
    {"logsumexp_large", [](X x) { return logsumexp(x[0], {1}); }},
    {"logsumexp_ends", [](X x) { return logsumexp(x[0], {1}); }},
    {"argmax", [](X x) { return argmax(x[0]); }},
    {"argmax_first_keepdims", [](X x) { return argmax(x[0], 0, true); }},
    {"argmin", [](X x) { return argmin(x[0]); }},
    {"argmin_middle", [](X x) { return argmin(x[0], 1); }},
    {"any", [](X x) { return Outputs{any(x[0]), any(x[0], {1}), any(x[0], {0}, true)}; }},
    {"all", [](X x) { return Outputs{all(x[0]), all(x[0], {1}), all(x[0], {0}, true)}; }},

    {"cumsum", [](X x) { return cumsum(x[0]); }},
    {"cumsum_first", [](X x) { return cumsum(x[0], 0); }},
    {"cumsum_middle", [](X x) { return cumsum(x[0], 1); }},
    {"cumprod", [](X x) { return cumprod(x[0]); }},
    {"cumprod_first", [](X x) { return cumprod(x[0], 0); }},
    {"cumprod_zero", [](X x) { return cumprod(x[0], 1); }},

    {"sort", [](X x) { return both(sort(x[0])); }},
    {"sort_descending", [](X x) { return both(sort(x[0], -1, true)); }},
    {"sort_first", [](X x) { return both(sort(x[0], 0)); }},
    {"sort_ties", [](X x) {
       const Ordered up = sort(x[0], 1), down = sort(x[0], 1, true);
       return Outputs{up.values, up.indices, down.values, down.indices}; }},
    {"argsort", [](X x) { return argsort(x[0], 1); }},
    {"argsort_descending_first", [](X x) { return argsort(x[0], 0, true); }},
    {"topk", [](X x) { return both(topk(x[0], 3)); }},
    {"topk_smallest", [](X x) { return both(topk(x[0], 2, -1, false)); }},
    {"topk_first", [](X x) { return both(topk(x[0], 4, 0)); }},
    {"unique_counts", [](X x) {
       const UniqueCounts unique = unique_counts(x[0]);
       return Outputs{unique.values, unique.counts, unique.inverse}; }},
  };
}
// clang-format on

}  // namespace tessera::golden
