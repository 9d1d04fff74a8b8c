// Each op of the table against values computed by hand.
#include "tessera/graph/interpret.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "graph/graph_data.h"
#include "support/expect_error.h"
#include "tessera/base/philox.h"
#include "tessera/graph/build.h"

namespace tessera {
namespace {

using namespace graph;
using Reals = std::vector<double>;
using Integers = std::vector<int64_t>;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

class Interpret : public testing::Test {
 protected:
  GraphData data;
  Reals real(const Value& value) const { return data.evaluate(value).real; }
  Integers integer(const Value& value) const { return data.evaluate(value).integer; }
};

// --- Moves --------------------------------------------------------------------------------------

TEST_F(Interpret, ReshapeAndPermute) {
  const Value x = data.integer({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(integer(reshape(x, {3, 2})), (Integers{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(integer(permute(x, {1, 0})), (Integers{1, 4, 2, 5, 3, 6}));
  const Value y = data.real({2, 1, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(real(permute(y, {2, 0, 1})), (Reals{1, 4, 2, 5, 3, 6}));
}

TEST_F(Interpret, Expand) {
  const Value x = data.real({2, 1}, {1, 2});
  EXPECT_EQ(real(expand(x, {2, 3})), (Reals{1, 1, 1, 2, 2, 2}));
  EXPECT_EQ(real(expand(data.real({1, 2}, {1, 2}), {3, 2})), (Reals{1, 2, 1, 2, 1, 2}));
  EXPECT_EQ(real(expand(x, {2, 0})), Reals{});
}

TEST_F(Interpret, Slice) {
  const Value x = data.integer({3, 4}, {0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23});
  EXPECT_EQ(integer(slice(x, {2, 0}, {2, 2}, {-2, 3})), (Integers{20, 23, 0, 3}));
  EXPECT_EQ(integer(slice(x, {1, 1}, {1, 2}, {1, 1})), (Integers{11, 12}));
  EXPECT_EQ(integer(slice(x, {3, 0}, {0, 4}, {1, 1})), Integers{});
}

TEST_F(Interpret, PadAndConcat) {
  const Value x = data.real({1, 2}, {1, 2});
  EXPECT_EQ(real(pad(x, {1, 0}, {0, 1}, 9)), (Reals{9, 9, 9, 1, 2, 9}));
  EXPECT_EQ(integer(pad(data.integer({1}, {5}, DType::i8), {0}, {2}, -1)), (Integers{5, -1, -1}));
  const Value y = data.real({1, 3}, {3, 4, 5}), empty = data.real({1, 0}, {});
  EXPECT_EQ(real(concat({x, empty, y}, 1)), (Reals{1, 2, 3, 4, 5}));
  EXPECT_EQ(real(concat({x, x}, 0)), (Reals{1, 2, 1, 2}));
}

// --- Sources and casts --------------------------------------------------------------------------

TEST_F(Interpret, Constants) {
  EXPECT_EQ(real(constant(DType::f32, 0.1)), Reals{double(0.1f)});
  EXPECT_EQ(integer(constant_int(DType::u8, 257)), Integers{1});
  EXPECT_EQ(data.evaluate(constant(DType::f16, 1)).type, (Type{DType::f16, {}}));
}

TEST_F(Interpret, Iota) {
  EXPECT_EQ(integer(iota(DType::i32, {2, 3}, 1)), (Integers{0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(real(iota(DType::f32, {2, 2}, 0)), (Reals{0, 0, 1, 1}));
  EXPECT_EQ(integer(iota(DType::i8, {130}, 0))[129], -127);
  EXPECT_EQ(real(iota(DType::f16, {2050}, 0))[2049], 2048);
}

TEST_F(Interpret, UniformIsPhilox) {
  const Value key = constant_int(DType::i64, 42), offset = data.integer({}, {7});
  const Reals values = real(uniform(key, offset, {3, 3}));
  ASSERT_EQ(values.size(), 9u);
  for (int64_t i = 0; i < 9; ++i) {
    EXPECT_EQ(values[size_t(i)], double(philox_uniform(i, 42, 7)));
    EXPECT_GE(values[size_t(i)], 0);
    EXPECT_LT(values[size_t(i)], 1);
  }
}

TEST_F(Interpret, LeavesRoundToTheirType) {
  EXPECT_EQ(real(data.real({2}, {0.1, 1e-50}, DType::f32)), (Reals{double(0.1f), 0}));
  EXPECT_EQ(real(data.real({2}, {2049, 1e6}, DType::f16)), (Reals{2048, kInf}));
  EXPECT_EQ(integer(data.integer({1}, {300}, DType::u8)), Integers{44});
}

TEST_F(Interpret, OnlyCastsRoundInBetween) {
  const Value x = data.real({1}, {1}, DType::f32);
  const Value y = x + 1e-9;  // lost in f32
  EXPECT_EQ(real(y - x), Reals{(1 + double(1e-9f)) - 1});
  EXPECT_EQ(real(cast(cast(y, DType::f64), DType::f32)), Reals{1});
}

TEST_F(Interpret, CastBetweenFloats) {
  const Value x = data.real({4}, {0.1, -0.0, kInf, 65504});
  const Reals half = real(cast(x, DType::f16));
  EXPECT_EQ(half[0], double(float(f16(0.1f))));
  EXPECT_TRUE(std::signbit(half[1]));
  EXPECT_EQ(half[2], kInf);
  EXPECT_EQ(half[3], 65504);
  EXPECT_EQ(real(cast(x, DType::bf16))[0], double(float(bf16(0.1f))));
}

TEST_F(Interpret, CastFromFloatTruncatesAndSaturates) {
  const Value x = data.real({7}, {1.9, -1.9, 300, -300, kNan, kInf, -1e30});
  EXPECT_EQ(integer(cast(x, DType::i8)), (Integers{1, -1, 127, -128, 0, 127, -128}));
  EXPECT_EQ(integer(cast(x, DType::u8)), (Integers{1, 0, 255, 0, 0, 255, 0}));
  EXPECT_EQ(integer(cast(x, DType::i64)), (Integers{1, -1, 300, -300, 0, INT64_MAX, INT64_MIN}));
  EXPECT_EQ(integer(cast(x, DType::u32)), (Integers{1, 0, 300, 0, 0, 4294967295, 0}));
  EXPECT_EQ(integer(cast(data.real({3}, {0, 0.25, kNan}), DType::boolean)), (Integers{0, 1, 1}));
}

TEST_F(Interpret, CastFromIntegersWraps) {
  const Value x = data.integer({4}, {300, -1, 0, INT64_MAX});
  EXPECT_EQ(integer(cast(x, DType::i8)), (Integers{44, -1, 0, -1}));
  EXPECT_EQ(integer(cast(x, DType::u32)), (Integers{300, 4294967295, 0, 4294967295}));
  EXPECT_EQ(integer(cast(x, DType::boolean)), (Integers{1, 1, 0, 1}));
  EXPECT_EQ(real(cast(x, DType::f32)), (Reals{300, -1, 0, 0x1p63}));
}

// --- Reductions and products --------------------------------------------------------------------

TEST_F(Interpret, Reductions) {
  const Value x = data.real({2, 3}, {1, 5, 3, 4, -2, 6});
  EXPECT_EQ(real(reduce(Op::sum, x, {0})), (Reals{5, 3, 9}));
  EXPECT_EQ(real(reduce(Op::sum, x, {1})), (Reals{9, 8}));
  EXPECT_EQ(real(reduce(Op::sum, x, {0, 1})), Reals{17});
  EXPECT_EQ(real(reduce(Op::prod, x, {1})), (Reals{15, -48}));
  EXPECT_EQ(real(reduce(Op::prod, data.real({2, 0}, {}), {1})), (Reals{1, 1}));
  EXPECT_EQ(real(reduce(Op::max, x, {1})), (Reals{5, 6}));
  EXPECT_EQ(real(reduce(Op::min, x, {0})), (Reals{1, -2, 3}));
  EXPECT_EQ(real(reduce(Op::sum, data.real({2, 0}, {}), {1})), (Reals{0, 0}));
  EXPECT_EQ(real(reduce(Op::max, data.real({0, 2}, {}), {1})), Reals{});
  // A maximum below 0 shows that nothing starts from 0.
  EXPECT_EQ(real(reduce(Op::max, data.real({2}, {-3, -2}), {0})), Reals{-2});
}

TEST_F(Interpret, ReductionsOfIntegersWrap) {
  const Value x = data.integer({3}, {100, 100, 100}, DType::i8);
  EXPECT_EQ(integer(reduce(Op::sum, x, {0})), Integers{44});
  EXPECT_EQ(integer(reduce(Op::sum, data.integer({2}, {INT64_MAX, 1}), {0})), Integers{INT64_MIN});
  const Value b = data.integer({2, 2}, {0, 1, 0, 0}, DType::boolean);
  EXPECT_EQ(integer(reduce(Op::max, b, {1})), (Integers{1, 0}));
}

TEST_F(Interpret, ReductionsKeepNan) {
  const Value x = data.real({2, 3}, {1, kNan, 3, kNan, 2, 1});
  for (const Op op : {Op::sum, Op::max, Op::min}) {
    for (const double value : real(reduce(op, x, {1}))) EXPECT_TRUE(std::isnan(value));
  }
}

TEST_F(Interpret, ArgmaxTakesTheFirstGreatest) {
  const Value x = data.real({4, 3}, {1, 3, 3, 2, kNan, kNan, -5, -4, -6, kInf, 1, kNan});
  EXPECT_EQ(integer(reduce(Op::argmax, x, {1})), (Integers{1, 1, 1, 2}));
  const Value i = data.integer({2, 2}, {-7, 5, -7, 6}, DType::i32);
  EXPECT_EQ(integer(reduce(Op::argmax, i, {0})), (Integers{0, 1}));
}

TEST_F(Interpret, Matmul) {
  const Value a = data.real({2, 3}, {1, 2, 3, 4, 5, 6});
  const Value b = data.real({3, 2}, {7, 8, 9, 10, 11, 12});
  EXPECT_EQ(real(matmul(a, b)), (Reals{58, 64, 139, 154}));
  const Value batch = data.real({2, 1, 2}, {1, 2, 3, 4}), column = data.real({2, 1}, {10, 1});
  EXPECT_EQ(real(matmul(batch, column)), (Reals{12, 34}));
  EXPECT_EQ(real(matmul(data.real({2, 0}, {}), data.real({0, 1}, {}))), (Reals{0, 0}));
  const Value i = data.integer({1, 2}, {100, 2}, DType::i8);
  EXPECT_EQ(integer(matmul(i, data.integer({2, 1}, {3, 4}, DType::i8))), Integers{52});
}

// --- Indices and updates ------------------------------------------------------------------------

TEST_F(Interpret, Gather) {
  const Value x = data.real({3, 2}, {1, 2, 3, 4, 5, 6});
  const Value rows = data.integer({2, 2}, {2, 0, 1, 1}, DType::i32);
  EXPECT_EQ(real(gather(x, rows, 0)), (Reals{5, 2, 3, 4}));
  const Value columns = data.integer({3, 1}, {1, 0, 1}, DType::u8);
  EXPECT_EQ(real(gather(x, columns, 1)), (Reals{2, 3, 6}));
}

TEST_F(Interpret, ScatterAdd) {
  const Value x = data.real({2, 2}, {1, 1, 1, 1});
  const Value index = data.integer({3, 2}, {0, 1, 0, 1, 1, 0});
  const Value source = data.real({3, 2}, {10, 20, 30, 40, 50, 60});
  EXPECT_EQ(real(scatter_add(x, index, source, 0)), (Reals{41, 61, 51, 61}));
  const Value bytes = data.integer({1}, {200}, DType::u8);
  EXPECT_EQ(integer(scatter_add(bytes, data.integer({1}, {0}), bytes, 0)), Integers{144});
}

TEST_F(Interpret, ScatterKeepsTheLast) {
  const Value x = data.real({2, 2}, {1, 1, 1, 1});
  const Value index = data.integer({3, 2}, {0, 1, 0, 1, 1, 1});
  const Value source = data.real({3, 2}, {10, 20, 30, 40, 50, 60});
  EXPECT_EQ(real(scatter(x, index, source, 0)), (Reals{30, 1, 50, 60}));
  const Value flags = data.integer({2}, {1, 0}, DType::boolean);
  EXPECT_EQ(
      integer(scatter(flags, data.integer({1}, {0}), data.integer({1}, {0}, DType::boolean), 0)),
      (Integers{0, 0}));
}

TEST_F(Interpret, Windows) {
  const Value x = data.real({5}, {1, 2, 3, 4, 5});
  EXPECT_EQ(real(window(x, 0, 3, 1)), (Reals{1, 2, 3, 2, 3, 4, 3, 4, 5}));
  EXPECT_EQ(real(window(x, 0, 2, 2)), (Reals{1, 2, 3, 4}));
  EXPECT_EQ(real(window(x, 0, 2, INT64_MAX)), (Reals{1, 2}));
  const Value table = data.real({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(window(table, 0, 2, 1).shape(), (Shape{1, 3, 2}));
  EXPECT_EQ(real(window(table, 0, 2, 1)), (Reals{1, 4, 2, 5, 3, 6}));
}

TEST_F(Interpret, DynamicSliceAndUpdate) {
  const Value x = data.real({3, 2}, {1, 2, 3, 4, 5, 6}), start = data.integer({}, {1});
  EXPECT_EQ(real(dynamic_slice(x, start, 0, 2)), (Reals{3, 4, 5, 6}));
  EXPECT_EQ(real(dynamic_slice(x, start, 1, 1)), (Reals{2, 4, 6}));
  const Value update = data.real({1, 2}, {8, 9});
  EXPECT_EQ(real(dynamic_update_slice(x, update, start, 0)), (Reals{1, 2, 8, 9, 5, 6}));
}

TEST_F(Interpret, IndicesOutOfRange) {
  const Value x = data.real({5}, {1, 2, 3, 4, 5});
  const Value high = data.integer({1}, {7}), low = data.integer({1}, {-1});
  const Value source = data.real({1}, {1});
  const auto text = [&](const Value& value) { return error_text([&] { data.evaluate(value); }); };
  EXPECT_EQ(text(gather(x, high, 0)), "gather: index 7 is out of range [0, 5)");
  EXPECT_EQ(text(gather(x, low, 0)), "gather: index -1 is out of range [0, 5)");
  EXPECT_EQ(text(scatter_add(x, high, source, 0)), "scatter_add: index 7 is out of range [0, 5)");
  EXPECT_EQ(text(dynamic_slice(x, data.integer({}, {4}), 0, 2)),
            "dynamic_slice: start 4 is out of range [0, 3]");
  EXPECT_EQ(text(dynamic_update_slice(x, source, data.integer({}, {-2}), 0)),
            "dynamic_update_slice: start -2 is out of range [0, 4]");
}

// --- Markers, kernel ops, the driver ------------------------------------------------------------

TEST_F(Interpret, MarkersPassTheirValue) {
  const Value x = data.real({2}, {1, 2}), y = data.real({1}, {5});
  EXPECT_EQ(real(stop_gradient(x)), (Reals{1, 2}));
  EXPECT_EQ(real({make_node(Op::region_enter, {x}), 0}), (Reals{1, 2}));
  EXPECT_EQ(real({make_node(Op::region_exit, {x}), 0}), (Reals{1, 2}));
  Attrs attrs;
  attrs.axis = 1;
  const NodePtr custom =
      make_node(Op::custom_vjp, {x, y, x * 2.0}, attrs, std::make_shared<const VjpFunction>());
  EXPECT_EQ(real({custom, 0}), Reals{5});
  EXPECT_EQ(real({custom, 1}), (Reals{2, 4}));
}

TEST_F(Interpret, KernelOpsByTheirComposite) {
  const Value x = data.real({1, 2}, {0, std::log(3.0)});
  const Reals y = real(softmax(x));
  EXPECT_NEAR(y[0], 0.25, 1e-15);
  EXPECT_NEAR(y[1], 0.75, 1e-15);
}

TEST_F(Interpret, SeveralOutputsAndRepeats) {
  const Value x = data.real({2}, {1, 2});
  const Value y = x + x;
  const std::vector<Array> results = data.evaluate_all({y, x, y});
  ASSERT_EQ(results.size(), 3u);
  EXPECT_EQ(results[0].real, (Reals{2, 4}));
  EXPECT_EQ(results[1].real, (Reals{1, 2}));
  EXPECT_EQ(results[2].real, (Reals{2, 4}));
  EXPECT_EQ(results[0].type, (Type{DType::f64, {2}}));
}

TEST_F(Interpret, DeepGraphsDoNotRecurse) {
  Value x = data.integer({}, {0});
  const Value one = constant_int(DType::i64, 1);
  for (int i = 0; i < 100'000; ++i) x = x + one;
  EXPECT_EQ(integer(x), Integers{100'000});
}

TEST_F(Interpret, LeavesAreAskedOnce) {
  const Value x = make_leaf({DType::f32, {1}});
  int asked = 0;
  const std::vector<Value> outputs = {x + x, apply(Op::exp, x)};
  interpret(outputs, [&](const Node& leaf) {
    ++asked;
    return Array{leaf.types[0], {1}, {}};
  });
  EXPECT_EQ(asked, 1);
}

TEST_F(Interpret, RefusesAWrongLeaf) {
  const std::vector<Value> outputs = {make_leaf({DType::f32, {2}})};
  const auto text = [&](const Array& array) {
    return error_text([&] { interpret(outputs, [&](const Node&) { return array; }); });
  };
  EXPECT_EQ(
      text({{DType::f64, {2}}, {1, 2}, {}}),
      "interpret: expected a leaf of f32(2,), got f64(2,) with 2 real and 0 integer elements");
  EXPECT_EQ(
      text({{DType::f32, {2}}, {1}, {}}),
      "interpret: expected a leaf of f32(2,), got f32(2,) with 1 real and 0 integer elements");
  EXPECT_EQ(
      text({{DType::f32, {2}}, {}, {1, 2}}),
      "interpret: expected a leaf of f32(2,), got f32(2,) with 0 real and 2 integer elements");
}

}  // namespace
}  // namespace tessera
