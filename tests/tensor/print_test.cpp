// The exact texts of printed tensors.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <sstream>

#include "tessera/tensor/ops.h"

namespace tessera {
namespace {

TEST(Print, Scalar) {
  EXPECT_EQ(to_string(scalar(3.5f)), "3.5 f32()");
  EXPECT_EQ(to_string(scalar(int64_t{-7})), "-7 i64()");
}

TEST(Print, Vector) {
  EXPECT_EQ(to_string(arange(3)), "[0, 1, 2] i64(3,)");
  EXPECT_EQ(to_string(tensor(std::vector<int8_t>{-1, 10})), "[-1, 10] i8(2,)");
  EXPECT_EQ(to_string(tensor(std::vector<bool>{true, false})), "[ true, false] bool(2,)");
}

TEST(Print, MatrixAlignsItsColumns) {
  EXPECT_EQ(to_string(tensor(std::vector<float>{1, -2.5f, 3, 100}, {2, 2})),
            "[[   1, -2.5],\n"
            " [   3,  100]] f32(2, 2)");
}

TEST(Print, DeeperShapesIndent) {
  EXPECT_EQ(to_string(reshape(arange(8), {2, 2, 2})),
            "[[[0, 1],\n"
            "  [2, 3]],\n"
            " [[4, 5],\n"
            "  [6, 7]]] i64(2, 2, 2)");
}

TEST(Print, SixDigitsAndSpecialNumbers) {
  const float infinite = std::numeric_limits<float>::infinity();
  EXPECT_EQ(to_string(tensor(std::vector<float>{1.0f / 3, 1e-20f, -infinite, std::nanf("")})),
            "[0.333333,    1e-20,     -inf,      nan] f32(4,)");
  EXPECT_EQ(to_string(tensor(std::vector<f16>{f16(0.1f)})), "[0.0999756] f16(1,)");
  EXPECT_EQ(to_string(tensor(std::vector<double>{0.1})), "[0.1] f64(1,)");
}

TEST(Print, NothingInside) {
  EXPECT_EQ(to_string(zeros({0})), "[] f32(0,)");
  EXPECT_EQ(to_string(zeros({2, 0})), "[[],\n []] f32(2, 0)");
  EXPECT_EQ(to_string(Tensor()), "(empty tensor)");
}

TEST(Print, AThousandElementsAreStillShown) {
  EXPECT_EQ(to_string(arange(1000)).find("..."), std::string::npos);
}

TEST(Print, LongAxesAreCutInTheMiddle) {
  EXPECT_EQ(to_string(arange(1001)), "[   0,    1,    2, ...,  998,  999, 1000] i64(1001,)");
  EXPECT_EQ(to_string(iota({7, 200}, 0)),
            "[[0, 0, 0, ..., 0, 0, 0],\n"
            " [1, 1, 1, ..., 1, 1, 1],\n"
            " [2, 2, 2, ..., 2, 2, 2],\n"
            " ...,\n"
            " [4, 4, 4, ..., 4, 4, 4],\n"
            " [5, 5, 5, ..., 5, 5, 5],\n"
            " [6, 6, 6, ..., 6, 6, 6]] i64(7, 200)");
  EXPECT_EQ(to_string(iota({2, 501}, 0)),
            "[[0, 0, 0, ..., 0, 0, 0],\n"
            " [1, 1, 1, ..., 1, 1, 1]] i64(2, 501)");
}

TEST(Print, Stream) {
  std::ostringstream out;
  out << "x = " << arange(2);
  EXPECT_EQ(out.str(), "x = [0, 1] i64(2,)");
}

}  // namespace
}  // namespace tessera
