// Every message of graph/infer.cpp, word for word.
#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "tessera/graph/build.h"

namespace tessera {
namespace {

using namespace graph;

Value f32(const Shape& shape) { return make_leaf({DType::f32, shape}); }
Value i64(const Shape& shape) { return make_leaf({DType::i64, shape}); }
Value boolean(const Shape& shape) { return make_leaf({DType::boolean, shape}); }
NodePtr backward(const Value& g, const Value& x, const Value& gamma) {
  const Value statistics = f32({2, 1});
  return make_node(Op::layer_norm_backward, {g, x, gamma, statistics, statistics});
}

struct Case {
  const char* name;
  void (*build)();
  const char* text;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class InferError : public testing::TestWithParam<Case> {};

TEST_P(InferError, HasItsText) { EXPECT_EQ(error_text(GetParam().build), GetParam().text); }

const Case kScalar[] = {
    {"add_dtypes", [] { apply(Op::add, f32({2}), i64({2})); }, "add: dtypes differ: f32 and i64"},
    {"where_dtypes", [] { where(boolean({2}), f32({2}), i64({2})); },
     "where: dtypes differ: f32 and i64"},
    {"where_condition", [] { where(f32({2}), f32({2}), f32({2})); },
     "where: expected a bool condition, got f32"},
    {"add_shapes",
     [] {
       make_node(Op::add, {f32({2}), f32({3})});
     },
     "add: shapes differ: (2,) and (3,)"},
    {"add_broadcast",
     [] {
       f32({2, 3}) + f32({4, 3});
     },
     "add: shapes do not broadcast: (2, 3) and (4, 3)"},
    {"where_broadcast", [] { where(boolean({2}), f32({3}), f32({3})); },
     "where: shapes do not broadcast: (2,) and (3,)"},
    {"exp_integer", [] { apply(Op::exp, i64({2})); }, "exp: not defined for i64"},
    {"div_integer", [] { i64({2}) / i64({2}); }, "div: not defined for i64"},
    {"neg_bool", [] { apply(Op::neg, boolean({2})); }, "neg: not defined for bool"},
    {"not_float", [] { apply(Op::logical_not, f32({2})); }, "logical_not: not defined for f32"},
};

const Case kSources[] = {
    {"uniform_key", [] { uniform(i64({2}), i64({}), {3}); },
     "uniform: expected a 0-d i64, got (2,)"},
    {"uniform_dtype", [] { uniform(constant_int(DType::i32, 1), i64({}), {3}); },
     "uniform: expected i64 key and offset, got i32"},
    {"uniform_count",
     [] {
       uniform(i64({}), i64({}), {int64_t(1) << 40, int64_t(1) << 40});
     },
     "shape: (1099511627776, 1099511627776) has more than 2^63 - 1 elements"},
    {"iota_bool", [] { iota(DType::boolean, {3}, 0); }, "iota: not defined for bool"},
    {"iota_axis", [] { iota(DType::i64, {3}, 1); },
     "iota: axis 1 is out of range for 1 dimensions"},
};

const Case kReduce[] = {
    {"sum_bool", [] { reduce(Op::sum, boolean({2}), {0}); },
     "sum: not defined for bool, cast it first"},
    {"prod_bool", [] { reduce(Op::prod, boolean({2}), {0}); },
     "prod: not defined for bool, cast it first"},
    {"sum_axis",
     [] {
       reduce(Op::sum, f32({2, 3}), {2});
     },
     "sum: axis 2 is out of range for 2 dimensions"},
    {"max_empty",
     [] {
       reduce(Op::max, f32({2, 0}), {1});
     },
     "max: axis 1 of (2, 0) is empty"},
    {"min_empty", [] { reduce(Op::min, f32({0}), {0}); }, "min: axis 0 of (0,) is empty"},
    {"argmax_empty",
     [] {
       reduce(Op::argmax, f32({0, 2}), {0});
     },
     "argmax: axis 0 of (0, 2) is empty"},
};

const Case kMove[] = {
    {"reshape_negative",
     [] {
       reshape(f32({2, 3}), {-2, -3});
     },
     "reshape: expected extents of at least 0, got (-2, -3)"},
    {"reshape_count",
     [] {
       reshape(f32({2, 3}), {7});
     },
     "reshape: cannot turn (2, 3) into (7,): 6 and 7 elements"},
    {"permute_short",
     [] {
       permute(f32({2, 3}), {1});
     },
     "permute: expected a permutation of 2 axes, got (1,)"},
    {"permute_twice",
     [] {
       permute(f32({2, 3}), {1, 1});
     },
     "permute: expected a permutation of 2 axes, got (1, 1)"},
    {"permute_long",
     [] {
       permute(f32({2, 3}), {0, 1, 2});
     },
     "permute: expected a permutation of 2 axes, got (0, 1, 2)"},
    {"expand_extent",
     [] {
       expand(f32({2, 3}), {2, 6});
     },
     "expand: cannot expand (2, 3) to (2, 6)"},
    {"expand_rank",
     [] {
       expand(f32({3}), {2, 3});
     },
     "expand: cannot expand (3,) to (2, 3)"},
    {"expand_negative", [] { expand(f32({1}), {-1}); }, "expand: cannot expand (1,) to (-1,)"},
    {"expand_count",
     [] {
       expand(f32({1, 1}), {int64_t(1) << 40, int64_t(1) << 40});
     },
     "shape: (1099511627776, 1099511627776) has more than 2^63 - 1 elements"},
    {"window_axis", [] { window(f32({3}), 1, 2, 1); },
     "window: axis 1 is out of range for 1 dimensions"},
    {"window_size", [] { window(f32({3}), 0, 0, 1); },
     "window: expected a size and a step of at least 1, got 0 and 1"},
    {"window_step", [] { window(f32({3}), 0, 2, 0); },
     "window: expected a size and a step of at least 1, got 2 and 0"},
    {"window_long",
     [] {
       window(f32({2, 3}), 1, 4, 1);
     },
     "window: size 4 does not fit axis 1 of (2, 3)"},
    {"window_rank", [] { window(f32(Dims::filled(8, 2)), 1, 1, 1); },
     "shape: expected at most 8 dimensions, got more"},
    {"window_count",
     [] {
       window(make_leaf({DType::u8, {int64_t(1) << 40}}), 0, int64_t(1) << 39, 1);
     },
     "shape: (549755813889, 549755813888) has more than 2^63 - 1 elements"},
    {"slice_ranks",
     [] {
       slice(f32({2, 3}), {0}, {1, 1}, {1, 1, 1});
     },
     "slice: expected 2 starts, sizes and steps for (2, 3), got 1, 2 and 3"},
    {"slice_step",
     [] {
       slice(f32({2, 3}), {0, 0}, {1, 1}, {1, 0});
     },
     "slice: step of axis 1 is 0"},
    {"slice_end",
     [] {
       slice(f32({2, 3}), {0, 1}, {2, 2}, {1, 2});
     },
     "slice: start 1, size 2, step 2 leave axis 1 of (2, 3)"},
    {"slice_backwards", [] { slice(f32({3}), {1}, {3}, {-1}); },
     "slice: start 1, size 3, step -1 leave axis 0 of (3,)"},
    {"slice_start", [] { slice(f32({3}), {3}, {1}, {1}); },
     "slice: start 3, size 1, step 1 leave axis 0 of (3,)"},
    {"slice_size", [] { slice(f32({3}), {0}, {-1}, {1}); },
     "slice: start 0, size -1, step 1 leave axis 0 of (3,)"},
};

const Case kAssemble[] = {
    {"pad_ranks",
     [] {
       pad(f32({2, 3}), {1}, {1, 1}, 0);
     },
     "pad: expected 2 amounts before and after for (2, 3), got (1,) and (1, 1)"},
    {"pad_negative",
     [] {
       pad(f32({2, 3}), {0, -1}, {0, 0}, 0);
     },
     "pad: expected amounts of at least 0, got (0, -1) and (0, 0)"},
    {"concat_none", [] { concat({}, 0); }, "concat: expected at least one tensor, got none"},
    {"concat_axis", [] { concat({f32({2})}, 1); },
     "concat: axis 1 is out of range for 1 dimensions"},
    {"concat_dtypes",
     [] {
       concat({f32({2}), i64({2})}, 0);
     },
     "concat: dtypes differ: f32 and i64"},
    {"concat_shapes",
     [] {
       concat({f32({2, 3}), f32({3, 3})}, 1);
     },
     "concat: shapes differ outside axis 1: (2, 3) and (3, 3)"},
    {"concat_ranks",
     [] {
       concat({f32({2, 3}), f32({2})}, 0);
     },
     "concat: shapes differ outside axis 0: (2, 3) and (2,)"},
};

const Case kIndex[] = {
    {"gather_index",
     [] {
       gather(f32({2, 3}), f32({2, 3}), 0);
     },
     "gather: expected integer indices, got f32"},
    {"gather_bool", [] { gather(f32({2}), boolean({2}), 0); },
     "gather: expected integer indices, got bool"},
    {"gather_axis",
     [] {
       gather(f32({2, 3}), i64({2, 3}), 2);
     },
     "gather: axis 2 is out of range for 2 dimensions"},
    {"gather_shapes",
     [] {
       gather(f32({2, 3}), i64({4, 4}), 0);
     },
     "gather: shapes differ outside axis 0: (2, 3) and indices (4, 4)"},
    {"scatter_add_shapes",
     [] {
       scatter_add(f32({2, 3}), i64({4}), f32({4}), 0);
     },
     "scatter_add: shapes differ outside axis 0: (2, 3) and indices (4,)"},
    {"scatter_add_dtypes", [] { scatter_add(f32({2}), i64({4}), i64({4}), 0); },
     "scatter_add: dtypes differ: f32 and i64"},
    {"scatter_add_bool", [] { scatter_add(boolean({2}), i64({4}), boolean({4}), 0); },
     "scatter_add: not defined for bool"},
    {"scatter_add_source", [] { scatter_add(f32({2}), i64({4}), f32({5}), 0); },
     "scatter_add: indices and source differ: (4,) and (5,)"},
    {"scatter_shapes",
     [] {
       scatter(f32({2, 3}), i64({4}), f32({4}), 0);
     },
     "scatter: shapes differ outside axis 0: (2, 3) and indices (4,)"},
    {"scatter_dtypes", [] { scatter(f32({2}), i64({4}), i64({4}), 0); },
     "scatter: dtypes differ: f32 and i64"},
    {"scatter_source", [] { scatter(f32({2}), i64({4}), f32({5}), 0); },
     "scatter: indices and source differ: (4,) and (5,)"},
    {"dynamic_slice_axis", [] { dynamic_slice(f32({2}), i64({}), 1, 1); },
     "dynamic_slice: axis 1 is out of range for 1 dimensions"},
    {"dynamic_slice_start", [] { dynamic_slice(f32({2}), i64({1}), 0, 1); },
     "dynamic_slice: expected a 0-d start, got (1,)"},
    {"dynamic_slice_dtype", [] { dynamic_slice(f32({2}), f32({}), 0, 1); },
     "dynamic_slice: expected integer indices, got f32"},
    {"dynamic_slice_size",
     [] {
       dynamic_slice(f32({2, 3}), i64({}), 1, 4);
     },
     "dynamic_slice: size 4 does not fit axis 1 of (2, 3)"},
    {"dynamic_slice_negative",
     [] {
       dynamic_slice(f32({2, 3}), i64({}), 1, -1);
     },
     "dynamic_slice: size -1 does not fit axis 1 of (2, 3)"},
    {"update_long",
     [] {
       dynamic_update_slice(f32({2, 3}), f32({2, 4}), i64({}), 1);
     },
     "dynamic_update_slice: an update of (2, 4) does not fit (2, 3)"},
    {"update_wide",
     [] {
       dynamic_update_slice(f32({2, 3}), f32({1, 3}), i64({}), 1);
     },
     "dynamic_update_slice: an update of (1, 3) does not fit (2, 3)"},
    {"update_dtype", [] { dynamic_update_slice(f32({2}), i64({1}), i64({}), 0); },
     "dynamic_update_slice: dtypes differ: f32 and i64"},
    {"update_start", [] { dynamic_update_slice(f32({2}), f32({1}), i64({1}), 0); },
     "dynamic_update_slice: expected a 0-d start, got (1,)"},
};

const Case kMatmul[] = {
    {"matmul_inner",
     [] {
       matmul(f32({1024, 512}), f32({1024, 512}));
     },
     "matmul: inner dimensions differ: (1024, 512) @ (1024, 512)"},
    {"matmul_dtypes",
     [] {
       matmul(f32({2, 2}), i64({2, 2}));
     },
     "matmul: dtypes differ: f32 and i64"},
    {"matmul_bool",
     [] {
       matmul(boolean({2, 2}), boolean({2, 2}));
     },
     "matmul: not defined for bool"},
    {"matmul_vector",
     [] {
       matmul(f32({2}), f32({2, 2}));
     },
     "matmul: expected at least 2 dimensions, got (2,) @ (2, 2)"},
    {"matmul_batch",
     [] {
       make_node(Op::matmul, {f32({3, 2, 2}), f32({4, 2, 2})});
     },
     "matmul: batch dimensions differ: (3, 2, 2) @ (4, 2, 2)"},
    {"matmul_broadcast",
     [] {
       matmul(f32({3, 2, 2}), f32({4, 2, 2}));
     },
     "matmul: batch dimensions differ: (3, 2, 2) @ (4, 2, 2)"},
};

const Case kKernels[] = {
    {"softmax_integer", [] { softmax(i64({2})); },
     "softmax: expected a floating-point tensor, got i64"},
    {"softmax_scalar", [] { softmax(f32({})); }, "softmax: expected at least 1 dimension, got ()"},
    {"cumsum_bool", [] { cumsum(boolean({2}), 0); }, "cumsum: not defined for bool, cast it first"},
    {"cumprod_axis", [] { cumprod(f32({2}), 1); },
     "cumprod: axis 1 is out of range for 1 dimensions"},
    {"sort_scalar", [] { sort(f32({}), false); }, "sort: expected at least 1 dimension, got ()"},
    {"topk_scalar", [] { topk(f32({}), 1, true); }, "topk: expected at least 1 dimension, got ()"},
    {"topk_many",
     [] {
       topk(f32({2, 3}), 4, true);
     },
     "topk: expected k from 0 to 3 for (2, 3), got 4"},
    {"topk_negative", [] { topk(f32({3}), -1, true); },
     "topk: expected k from 0 to 3 for (3,), got -1"},
    {"layer_norm_integer", [] { layer_norm(i64({2}), i64({2}), i64({2}), 0); },
     "layer_norm: expected a floating-point tensor, got i64"},
    {"layer_norm_scalar", [] { layer_norm(f32({}), f32({1}), f32({1}), 0); },
     "layer_norm: expected at least 1 dimension, got ()"},
    {"layer_norm_scale",
     [] {
       layer_norm(f32({2, 3}), f32({2}), f32({3}), 0);
     },
     "layer_norm: expected scale and shift of (3,) for (2, 3), got (2,)"},
    {"layer_norm_dtype",
     [] {
       layer_norm(f32({2, 3}), f32({3}), make_leaf({DType::f64, {3}}), 0);
     },
     "layer_norm: dtypes differ: f32 and f64"},
    {"backward_scale",
     [] {
       backward(f32({2, 3}), f32({2, 3}), f32({4}));
     },
     "layer_norm_backward: expected scale and shift of (3,) for (2, 3), got (4,)"},
    {"loss_integer",
     [] {
       cross_entropy(i64({2, 3}), i64({2, 1}), f32({2, 1}));
     },
     "cross_entropy: expected a floating-point tensor, got i64"},
    {"loss_scalar", [] { cross_entropy(f32({}), i64({}), f32({})); },
     "cross_entropy: expected at least 1 class, got ()"},
    {"loss_classes",
     [] {
       cross_entropy(f32({2, 0}), i64({2, 1}), f32({2, 1}));
     },
     "cross_entropy: expected at least 1 class, got (2, 0)"},
    {"loss_index",
     [] {
       cross_entropy(f32({2, 3}), f32({2, 1}), f32({2, 1}));
     },
     "cross_entropy: expected integer indices, got f32"},
    {"loss_targets",
     [] {
       cross_entropy(f32({2, 3}), i64({2}), f32({2, 1}));
     },
     "cross_entropy: expected targets (2, 1) and a gradient f32(2, 1) for f32(2, 3), got (2,) and "
     "f32(2, 1)"},
    {"backward_gradient",
     [] {
       backward(f32({2, 4}), f32({2, 3}), f32({3}));
     },
     "layer_norm_backward: expected gradient, mean and rstd for f32(2, 3), got f32(2, 4), "
     "f32(2, 1) and f32(2, 1)"},
    {"linear_bias",
     [] {
       make_node(Op::linear, {f32({2, 3}), f32({3, 4}), f32({3})});
     },
     "linear: expected matrices and f32(4,), got f32(2, 3), f32(3, 4) and f32(3,)"},
    {"matmul_add_shape",
     [] {
       make_node(Op::matmul_add, {f32({2, 3}), f32({3, 4}), f32({4})});
     },
     "matmul_add: expected matrices and f32(2, 4), got f32(2, 3), f32(3, 4) and f32(4,)"},
    {"matmul_sums_rank",
     [] {
       make_node(Op::matmul_sums, {f32({1, 2, 3}), f32({1, 3, 4})});
     },
     "matmul_sums: expected matrices, got f32(1, 2, 3) and f32(1, 3, 4)"},
    {"linear_slope_rank",
     [] {
       make_node(Op::linear_slope, {f32({1, 2, 3}), f32({1, 3, 4}), f32({2, 4})});
     },
     "linear_slope: expected matrices and f32(1, 2, 4), got f32(1, 2, 3), f32(1, 3, 4) and "
     "f32(2, 4)"},
};

std::string case_name(const testing::TestParamInfo<Case>& param) { return param.param.name; }

INSTANTIATE_TEST_SUITE_P(Scalar, InferError, testing::ValuesIn(kScalar), case_name);
INSTANTIATE_TEST_SUITE_P(Sources, InferError, testing::ValuesIn(kSources), case_name);
INSTANTIATE_TEST_SUITE_P(Reduce, InferError, testing::ValuesIn(kReduce), case_name);
INSTANTIATE_TEST_SUITE_P(Move, InferError, testing::ValuesIn(kMove), case_name);
INSTANTIATE_TEST_SUITE_P(Assemble, InferError, testing::ValuesIn(kAssemble), case_name);
INSTANTIATE_TEST_SUITE_P(Index, InferError, testing::ValuesIn(kIndex), case_name);
INSTANTIATE_TEST_SUITE_P(Matmul, InferError, testing::ValuesIn(kMatmul), case_name);
INSTANTIATE_TEST_SUITE_P(Kernels, InferError, testing::ValuesIn(kKernels), case_name);

}  // namespace
}  // namespace tessera
