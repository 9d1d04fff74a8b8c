#include "tessera/kernel/view.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

TEST(View, ContiguousIsRowMajorFromZero) {
  const View view = contiguous_view({2, 3, 4});
  EXPECT_EQ(view.strides, (Dims{12, 4, 1}));
  EXPECT_EQ(view.offset, 0);
  EXPECT_TRUE(is_contiguous(view));
  EXPECT_FALSE(is_contiguous({{2, 3}, {3, 1}, 1}));
  EXPECT_FALSE(is_contiguous({{2, 3}, {1, 2}, 0}));
  EXPECT_FALSE(is_contiguous({{2, 3}, {0, 1}, 0}));
}

TEST(View, ExtentsOfOneMayHaveAnyStride) {
  EXPECT_TRUE(is_contiguous({{2, 1, 3}, {3, 99, 1}, 0}));
  EXPECT_TRUE(is_contiguous({{1, 3}, {0, 1}, 0}));
  EXPECT_TRUE(is_contiguous({{0, 3}, {7, 7}, 0}));
}

TEST(View, SpanCoversReversedAndBroadcastDimensions) {
  const auto expect_span = [](const View& view, int64_t begin, int64_t end) {
    const ViewSpan span = span_of(view);
    EXPECT_EQ(span.begin, begin);
    EXPECT_EQ(span.end, end);
  };
  expect_span(contiguous_view({2, 3}), 0, 6);
  expect_span({{2, 3}, {3, -1}, 2}, 0, 6);
  expect_span({{4, 3}, {0, 2}, 5}, 5, 10);
  expect_span({{}, {}, 7}, 7, 8);
  expect_span({{0, 3}, {3, 1}, 7}, 0, 0);
}

TEST(View, RowsThatLieEquallyFarApart) {
  EXPECT_EQ(row_step(contiguous_view({2, 3, 4})), 4);
  EXPECT_EQ(row_step({{2, 3, 4}, {24, 8, 1}, 5}), 8);
  EXPECT_EQ(row_step({{2, 1, 3, 1}, {24, 7, 8, 9}, 0}), 8);
  EXPECT_EQ(row_step({{2, 3, 4}, {0, 0, 1}, 0}), 0);
  EXPECT_EQ(row_step({{1, 5}, {99, 1}, 0}), 5);
  EXPECT_EQ(row_step({{5}, {1}, 0}), 5);
  EXPECT_FALSE(row_step({{2, 3, 4}, {20, 4, 1}, 0}));
  EXPECT_FALSE(row_step({{2, 3, 4}, {0, 4, 1}, 0}));
  EXPECT_FALSE(row_step({{4, 3}, {1, 4}, 0}));
}

}  // namespace
}  // namespace tessera
