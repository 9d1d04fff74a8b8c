#include "tessera/lattice/transform.h"

#include "code_fixture.h"
#include "tessera/lattice/lists.h"
#include "tessera/lattice/quantize.h"
#include "tessera/lattice/symmetric_eigen.h"

namespace tessera::lattice {
namespace {

TEST(SymmetricEigen, VectorsAreOrthonormalAndRebuildTheMatrix) {
  for (const size_t n : {1u, 2u, 3u, 10u, 65u}) {
    std::vector<double> a(n * n);
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j <= i; ++j) a[i * n + j] = a[j * n + i] = gaussian(n, i * n + j);
    }
    const Eigen e = symmetric_eigen(a, int64_t(n));
    EXPECT_TRUE(std::is_sorted(e.values.rbegin(), e.values.rend()));
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j < n; ++j) {
        double rebuilt = 0, dot = 0;
        for (size_t k = 0; k < n; ++k) {
          rebuilt += e.values[k] * e.vectors[k * n + i] * e.vectors[k * n + j];
          dot += e.vectors[i * n + k] * e.vectors[j * n + k];
        }
        ASSERT_NEAR(rebuilt, a[i * n + j], 1e-10) << n;
        ASSERT_NEAR(dot, i == j ? 1 : 0, 1e-11) << n;
      }
    }
  }
}

TEST(SymmetricEigen, EqualValues) {
  const Eigen e = symmetric_eigen({2, 0, 0, 0, 2, 0, 0, 0, 2}, 3);
  EXPECT_EQ(e.values, (std::vector<double>{2, 2, 2}));
}

// Points around 8 anchors, varying by `falloff` from one dimension to the next.
struct Data {
  Data(float falloff, int32_t dimensions) : dim(dimensions) {
    const size_t d = size_t(dim);
    points = gaussians(1, 2100 * dim);
    for (size_t i = 0; i < points.size(); ++i) points[i] *= std::pow(falloff, float(i % d));
    queries.assign(points.begin() + 2000 * dim, points.end());
    points.resize(2000 * d);
    cells = make_cells(points, dim, 8, 2);
  }

  TransformSample sample() const {
    return {Metric::l2, dim, cells.anchors, points, cells.of_point, queries};
  }

  int32_t dim;
  std::vector<float> points, queries;
  Cells cells;
};

TEST(Transform, FlatSpectrumKeepsTheRotation) {
  const Data data(1, 64);
  const TransformChoice choice = choose_transform(data.sample(), 2, 3);
  EXPECT_EQ(choice.spec.transform, TransformKind::rotation);
  EXPECT_LT(choice.coding_gain, 1);
  EXPECT_EQ(choice.pca_recall, 0);
  EXPECT_TRUE(choice.diagonals.empty());
}

TEST(Transform, UnevenSpectrumTakesPrincipalAxes) {
  const Data data(0.93f, 96);
  const TransformChoice choice = choose_transform(data.sample(), 3, 3);
  printf("gain %.1f dB, recall by rotation %.3f, by PCA %.3f\n", choice.coding_gain,
         choice.rotation_recall, choice.pca_recall);
  EXPECT_EQ(choice.spec.transform, TransformKind::pca);
  EXPECT_GT(choice.coding_gain, 5);
  EXPECT_NEAR(choice.coding_gain, coding_gain(data.sample()), 1e-9);
  EXPECT_GT(choice.pca_recall, choice.rotation_recall + 0.02);
  EXPECT_EQ(choice.diagonals.size(), data.cells.anchors.size());
  const auto& bits = choice.spec.group_bits;
  EXPECT_EQ(bits[0] + bits[1] + bits[2], 9);
  EXPECT_TRUE(bits[0] > bits[1] && bits[1] >= bits[2]);
  EXPECT_EQ(code_spec_from_bytes(to_bytes(choice.spec)), choice.spec);
}

// What axes and diagonals take is worth more bits of a rotation where few vectors share it.
TEST(Transform, AxesMustBeWorthTheirBytes) {
  const Data data(0.93f, 96);
  TransformSample sample = data.sample();
  sample.rows = 1'000'000;
  EXPECT_EQ(choose_transform(sample, 3, 3).spec.transform, TransformKind::pca);
  sample.rows = 500;  // three bits and more a dimension
  const TransformChoice few = choose_transform(sample, 3, 3);
  EXPECT_EQ(few.spec.transform, TransformKind::rotation);
  EXPECT_GT(few.pca_recall, few.rotation_recall);
  EXPECT_TRUE(few.diagonals.empty());
}

TEST(Transform, PrincipalAxesAreOrthonormalAndDecode) {
  const Data data(0.93f, 40);
  const CodeSpec spec = pca_spec(data.sample(), 6, 3);
  ASSERT_EQ(spec.transform, TransformKind::pca);
  const Coder coder(spec);
  std::vector<float> x = padded_row(spec, gaussians(5, 40)), y = x;
  coder.transform(y.data());
  EXPECT_NEAR(true_distance(Metric::inner_product, y, y),
              true_distance(Metric::inner_product, x, x), 1e-3);
  coder.transform_back(y.data());
  for (size_t j = 0; j < 64; ++j) EXPECT_NEAR(x[j], y[j], 1e-5);
  EXPECT_TRUE(are_halves(spec.basis));
}

TEST(Transform, TooFewPointsForAxes) {
  const std::vector<float> points = gaussians(1, 10 * 20), anchors(20, 0.f);
  const std::vector<int32_t> cells(10, 0);
  const TransformSample sample = {Metric::l2, 20, anchors, points, cells, points};
  EXPECT_EQ(pca_spec(sample, 4, 1).transform, TransformKind::rotation);
  EXPECT_EQ(choose_transform(sample, 4, 1).spec.transform, TransformKind::rotation);
}

TEST(Transform, RealDescriptors) {
  for (const char* file : {"sift10k_base.u8bin", "mnist10k.u8bin"}) {
    const auto all = shared_u8bin(file);
    if (!all) GTEST_SKIP() << "../shared/data/" << file << " is not there";
    const auto points = all->part(0, 9900), queries = all->part(9900, 100);
    const Cells cells = make_cells(points, all->dim, 16, 2);
    const TransformSample sample = {Metric::l2, int32_t(all->dim), cells.anchors,
                                    points,     cells.of_point,    queries};
    for (const int32_t bits : {2, 4}) {
      const TransformChoice choice = choose_transform(sample, bits, 1);
      printf("%s, %d bits: gain %.1f dB, recall by rotation %.3f, by PCA %.3f\n", file, bits,
             choice.coding_gain, choice.rotation_recall, choice.pca_recall);
      EXPECT_GT(choice.coding_gain, 1);
      EXPECT_GT(std::max(choice.rotation_recall, choice.pca_recall), bits == 2 ? 0.8 : 0.93);
    }
  }
}

}  // namespace
}  // namespace tessera::lattice
