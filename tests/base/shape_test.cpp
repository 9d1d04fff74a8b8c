#include "tessera/base/shape.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "support/expect_error.h"

namespace tessera {
namespace {

constexpr int64_t kBig = int64_t(1) << 40;

TEST(Dims, HoldsUpToEight) {
  Dims dims = {1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_EQ(dims.rank(), 8);
  EXPECT_EQ(dims.back(), 8);
  EXPECT_EQ(error_text([&] { dims.push_back(9); }),
            "shape: expected at most 8 dimensions, got more");
  const std::vector<int64_t> nine(9, 1);
  EXPECT_THROW(Dims(std::span<const int64_t>(nine)), Error);
  EXPECT_THROW(Dims::filled(9, 1), Error);
}

TEST(Dims, InsertEraseContains) {
  Dims dims = {2, 4};
  dims.insert(1, 3);
  dims.insert(0, 1);
  dims.insert(4, 5);
  EXPECT_EQ(dims, (Dims{1, 2, 3, 4, 5}));
  dims.erase(0);
  dims.erase(3);
  EXPECT_EQ(dims, (Dims{2, 3, 4}));
  EXPECT_TRUE(dims.contains(4));
  EXPECT_FALSE(dims.contains(5));  // erased, though its slot still holds it
}

TEST(Dims, EqualityLooksAtRankAndValues) {
  EXPECT_EQ(Dims(), Dims{});
  EXPECT_NE((Dims{2, 3}), (Dims{3, 2}));
  EXPECT_NE((Dims{2}), (Dims{2, 0}));
  EXPECT_EQ(Dims::filled(3, 7), (Dims{7, 7, 7}));
  EXPECT_TRUE(Dims().empty());
}

TEST(Dims, Text) {
  EXPECT_EQ(to_string(Dims{}), "()");
  EXPECT_EQ(to_string(Dims{5}), "(5,)");
  EXPECT_EQ(to_string(Dims{2, 3}), "(2, 3)");
  EXPECT_EQ(to_string(Dims{-1, 0, kBig}), "(-1, 0, 1099511627776)");
}

TEST(Shape, NumberOfElements) {
  EXPECT_EQ(numel({}), 1);
  EXPECT_EQ(numel({2, 3, 5}), 30);
  EXPECT_EQ(numel({65536, 65536}), int64_t(1) << 32);
  EXPECT_EQ(numel({kBig, 0, kBig}), 0);
  EXPECT_EQ(numel({std::numeric_limits<int64_t>::max()}), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(error_text([] {
              numel({kBig, kBig});
            }),
            "shape: (1099511627776, 1099511627776) has more than 2^63 - 1 elements");
}

TEST(Shape, RowMajorStrides) {
  EXPECT_EQ(row_major_strides({}), (Dims{}));
  EXPECT_EQ(row_major_strides({7}), (Dims{1}));
  EXPECT_EQ(row_major_strides({2, 3, 5}), (Dims{15, 5, 1}));
  EXPECT_EQ(row_major_strides({2, 0, 5}), (Dims{5, 5, 1}));
}

TEST(Shape, Broadcasting) {
  const auto both = [](const Shape& a, const Shape& b) {
    const Shape forward = broadcast_shapes("add", a, b);
    EXPECT_EQ(forward, broadcast_shapes("add", b, a));
    return forward;
  };
  EXPECT_EQ(both({}, {}), (Shape{}));
  EXPECT_EQ(both({}, {2, 3}), (Shape{2, 3}));
  EXPECT_EQ(both({2, 3}, {3}), (Shape{2, 3}));
  EXPECT_EQ(both({4, 1, 3}, {2, 1}), (Shape{4, 2, 3}));
  EXPECT_EQ(both({0, 3}, {1, 3}), (Shape{0, 3}));
  EXPECT_EQ(both({1}, {0}), (Shape{0}));
  EXPECT_EQ(error_text([] {
              broadcast_shapes("add", {2, 3}, {2, 4});
            }),
            "add: shapes do not broadcast: (2, 3) and (2, 4)");
  EXPECT_EQ(error_text([] { broadcast_shapes("mul", {0}, {2}); }),
            "mul: shapes do not broadcast: (0,) and (2,)");
}

TEST(Shape, Axis) {
  EXPECT_EQ(normalize_axis("sum", 0, 3), 0);
  EXPECT_EQ(normalize_axis("sum", 2, 3), 2);
  EXPECT_EQ(normalize_axis("sum", -1, 3), 2);
  EXPECT_EQ(normalize_axis("sum", -3, 3), 0);
  EXPECT_EQ(error_text([] { normalize_axis("sum", 3, 3); }),
            "sum: axis 3 is out of range for 3 dimensions");
  EXPECT_EQ(error_text([] { normalize_axis("max", -4, 3); }),
            "max: axis -4 is out of range for 3 dimensions");
  EXPECT_EQ(error_text([] { normalize_axis("max", 0, 0); }),
            "max: axis 0 is out of range for 0 dimensions");
  EXPECT_THROW(normalize_axis("max", std::numeric_limits<int64_t>::min(), 3), Error);
}

TEST(Shape, Axes) {
  EXPECT_EQ(normalize_axes("sum", {}, 3), (Dims{0, 1, 2}));
  EXPECT_EQ(normalize_axes("sum", {}, 0), (Dims{}));
  EXPECT_EQ(normalize_axes("sum", {-1, 0}, 3), (Dims{0, 2}));
  EXPECT_EQ(error_text([] {
              normalize_axes("sum", {1, -2}, 3);
            }),
            "sum: axis -2 is given twice in (1, -2)");
  EXPECT_EQ(error_text([] {
              normalize_axes("sum", {0, 5}, 3);
            }),
            "sum: axis 5 is out of range for 3 dimensions");
}

}  // namespace
}  // namespace tessera
