#include "tessera/lattice/points.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "io/temp_folder.h"
#include "lattice_data.h"
#include "support/expect_error.h"
#include "tessera/io/npy.h"

namespace tessera::lattice {
namespace {

TEST(Metric, HasNames) {
  EXPECT_EQ(name(Metric::l2), "l2");
  EXPECT_EQ(name(Metric::inner_product), "inner_product");
  EXPECT_EQ(name(Metric::cosine), "cosine");
}

TEST(Points, CosineScalesToLengthOne) {
  std::vector<float> rows = {3, 4, 0, -2, 3e-30f, 4e-30f, 3e37f, 4e37f};
  const std::vector<float> before = rows;
  prepare_points(Metric::l2, rows, 2);
  prepare_points(Metric::inner_product, rows, 2);
  EXPECT_EQ(rows, before);
  prepare_points(Metric::cosine, rows, 2);
  const std::vector<float> expected = {0.6f, 0.8f, 0, -1, 0.6f, 0.8f, 0.6f, 0.8f};
  for (size_t i = 0; i < rows.size(); ++i) EXPECT_FLOAT_EQ(rows[i], expected[i]);
}

TEST(Points, AZeroRowHasNoCosine) {
  std::vector<float> rows(2000, 1.0f);
  std::fill_n(rows.begin() + 500, 2, 0.0f);
  std::fill_n(rows.begin() + 1500, 2, 0.0f);
  EXPECT_EQ(error_text([&] { prepare_points(Metric::cosine, rows, 2, 1000); }),
            "points: expected vectors with a direction for cosine, got zeros in row 1250");
}

TEST(Points, SamplesAreDifferentRowsInOrder) {
  for (const int64_t n : {1, 7, 100, 1001}) {
    for (const int64_t count : {int64_t(1), n / 2 + 1, n}) {
      const auto rows = sample_rows(n, std::min(count, n), 5);
      EXPECT_TRUE(std::ranges::is_sorted(rows));
      EXPECT_EQ(std::set<int64_t>(rows.begin(), rows.end()).size(), rows.size());
      EXPECT_GE(rows.front(), 0);
      EXPECT_LT(rows.back(), n);
    }
  }
  EXPECT_EQ(sample_rows(1000, 30, 5), sample_rows(1000, 30, 5));
  EXPECT_NE(sample_rows(1000, 30, 5), sample_rows(1000, 30, 6));
  std::vector<int64_t> times(10);
  for (uint64_t seed = 0; seed < 5000; ++seed) {
    for (const int64_t row : sample_rows(10, 2, seed)) ++times[size_t(row)];
  }
  for (const int64_t count : times) EXPECT_NEAR(double(count), 1000, 150);
}

class PointFile : public testing::Test {
 protected:
  VectorFile open() const {
    write_npy(folder_ / "p.npy", DType::f32, {50, 3}, std::as_bytes(std::span(points_)));
    return VectorFile::open(folder_ / "p.npy");
  }

  TempFolder folder_;
  std::vector<float> points_ = normal_points(50, 3, 1);
};

TEST_F(PointFile, ComesInChunks) {
  const VectorFile file = open();
  std::vector<float> all = points_;
  prepare_points(Metric::cosine, all, 3);
  for (const int64_t memory : {0, 12, 100, 1 << 20}) {
    std::vector<float> seen;
    for_each_chunk(file, Metric::cosine, memory, [&](int64_t first, std::span<const float> rows) {
      EXPECT_EQ(first * 3, int64_t(seen.size()));
      EXPECT_LE(rows.size_bytes(), size_t(std::max<int64_t>(memory, 12)));
      seen.insert(seen.end(), rows.begin(), rows.end());
    });
    EXPECT_EQ(seen, all);
  }
}

TEST_F(PointFile, ErrorsNameTheRowOfTheFile) {
  std::fill_n(points_.begin() + 3 * 41, 3, 0.0f);
  const VectorFile file = open();
  const std::string expected =
      "points: expected vectors with a direction for cosine, got zeros in row 41";
  EXPECT_EQ(error_text([&] { for_each_chunk(file, Metric::cosine, 240, [](auto...) {}); }),
            expected);
  const std::vector<int64_t> numbers = {3, 41};
  EXPECT_EQ(error_text([&] { read_points(file, Metric::cosine, numbers); }), expected);
  EXPECT_EQ(read_points(file, Metric::l2, numbers).size(), 6u);
}

}  // namespace
}  // namespace tessera::lattice
