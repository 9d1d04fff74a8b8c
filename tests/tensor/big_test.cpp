// No wrap above 2^31 elements: views and generated values of that many, which take no memory, and
// shapes near the end of int64_t.
#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "tessera/conformance/reference.h"
#include "tessera/tensor/ops.h"

namespace tessera {
namespace {

constexpr int64_t kMany = (int64_t{1} << 31) + 11;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(NDEBUG)
constexpr bool kSlow = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool kSlow = true;
#else
constexpr bool kSlow = false;
#endif
#else
constexpr bool kSlow = false;
#endif

// Each walks over two thousand million elements.
class BigWalk : public ::testing::Test {
 protected:
  void SetUp() override {
    if (kSlow) GTEST_SKIP() << "2^31 elements take minutes in a debug or sanitizer build";
  }
};

TEST_F(BigWalk, SumCountsThemAll) {
  const Tensor ones = broadcast_to(tensor(std::vector<uint8_t>{1}), {kMany});
  EXPECT_EQ(sum(ones).to_vector<int64_t>()[0], kMany);
}

TEST_F(BigWalk, CoordinatesGoBeyond) {
  const Tensor at = arange(kMany);
  const Tensor last = max(at);
  const Tensor hits = sum(at == (int64_t{1} << 31) + 3);
  const std::vector<Tensor> both = {last, hits};
  eval(both);
  EXPECT_EQ(last.to_vector<int64_t>()[0], kMany - 1);
  EXPECT_EQ(hits.item(), 1);
}

TEST_F(BigWalk, ArgmaxFindsAPlaceBeyond) {
  const int64_t place = (int64_t{1} << 31) + 7;
  const Tensor distance = arange(kMany) - place;
  EXPECT_EQ(argmax(-(distance * distance)).to_vector<int64_t>()[0], place);
}

TEST_F(BigWalk, RowsOfAMatrix) {
  // (2^16, 2^15 + 1) elements, more than 2^31 together, folded along either axis.
  const Shape shape = {1 << 16, (1 << 15) + 1};
  const Tensor row = iota({1, shape[1]}, 1, DType::i32);
  const std::vector<int64_t> sums =
      sum(cast(broadcast_to(row, shape), DType::i64), {1}).to_vector<int64_t>();
  ASSERT_EQ(int64_t(sums.size()), shape[0]);
  EXPECT_EQ(sums.front(), shape[1] * (shape[1] - 1) / 2);
  EXPECT_EQ(sums.back(), sums.front());
}

TEST(Big, IndicesBeyondIntoAView) {
  const Tensor x = broadcast_to(tensor(std::vector<float>{2.5f}), {kMany});
  const Tensor index = tensor(std::vector<int64_t>{0, int64_t{1} << 31, kMany - 1});
  EXPECT_EQ(to_doubles(gather(x, index, 0)), (std::vector<double>{2.5, 2.5, 2.5}));
  EXPECT_EQ(to_doubles(dynamic_slice(x, scalar(kMany - 2), 0, 2)), (std::vector<double>{2.5, 2.5}));
  EXPECT_EQ(error_text([&] { gather(x, tensor(std::vector<int64_t>{kMany}), 0).eval(); }),
            "index 2147483659 is out of range [0, 2147483659) in kernel gather");
}

TEST(Big, SlicesBeyondOfAView) {
  const Tensor x = broadcast_to(tensor(std::vector<float>{2.5f}), {kMany});
  const Tensor rows = broadcast_to(reshape(arange(3), {3, 1}), {3, kMany});
  EXPECT_EQ(to_doubles(slice(x, 0, -2, kMany)), (std::vector<double>{2.5, 2.5}));
  EXPECT_EQ(to_doubles(slice(rows, 1, kMany - 1, 0, -(kMany - 1))), (std::vector<double>{0, 1, 2}));
  EXPECT_EQ(slice(x, 0, 0, kMany, 2).numel(), (kMany + 1) / 2);
}

TEST(Big, ShapesNearTheEndOfInt64) {
  const int64_t half = int64_t{1} << 31;
  const Tensor x = broadcast_to(scalar(1.5f), {half, half});
  EXPECT_EQ(x.numel(), int64_t{1} << 62);
  EXPECT_EQ(reshape(x, {-1, 4}).shape(), (Shape{int64_t{1} << 60, 4}));
  EXPECT_EQ(to_doubles(slice(slice(x, 0, -1, half), 1, -2, half)), (std::vector<double>{1.5, 1.5}));
  EXPECT_EQ(to_doubles(slice(reshape(x, {-1}), 0, -1, INT64_MAX)), (std::vector<double>{1.5}));
  EXPECT_EQ(broadcast_to(scalar(1.5f), {INT64_MAX}).numel(), INT64_MAX);
}

TEST(BigError, MoreElementsThanCanBeCounted) {
  const int64_t half = int64_t{1} << 31;
  EXPECT_EQ(error_text([&] {
              zeros({half, half, 2});
            }),
            "shape: (2147483648, 2147483648, 2) has more than 2^63 - 1 elements");
  const Tensor wide = zeros({INT64_MAX});
  EXPECT_EQ(error_text([&] { concat({wide, wide}); }), "concat: the result is too large");
  EXPECT_EQ(error_text([&] { pad(wide, {1}, {0}); }), "pad: the result is too large");
  EXPECT_EQ(error_text([&] {
              stack({wide, wide});
            }),
            "shape: (2, 9223372036854775807) has more than 2^63 - 1 elements");
  EXPECT_EQ(error_text([&] {
              broadcast_to(unsqueeze(wide, 1), {INT64_MAX, 3});
            }),
            "shape: (9223372036854775807, 3) has more than 2^63 - 1 elements");
  EXPECT_EQ(error_text([&] {
              matmul(reshape(wide, {-1, 1}), zeros({1, 3}));
            }),
            "shape: (9223372036854775807, 3) has more than 2^63 - 1 elements");
  EXPECT_EQ(error_text([&] {
              reshape(zeros({4}), {half, half, 2, -1});
            }),
            "shape: (2147483648, 2147483648, 2) has more than 2^63 - 1 elements");
}

TEST(BigError, MoreMemoryThanThereIs) {
  EXPECT_EQ(error_text([] { (arange(int64_t{1} << 60) * 2).eval(); }),
            "out of memory: a value of i64(1152921504606846976,) has 1152921504606846976 elements");
  const std::string text = error_text([] { (arange(int64_t{1} << 50) * 2).eval(); });
  EXPECT_EQ(text.substr(0, 52), "out of memory: the program needs 9007199254740992 by") << text;
}

}  // namespace
}  // namespace tessera
