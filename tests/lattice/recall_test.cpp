#include "tessera/lattice/recall.h"

#include "code_fixture.h"
#include "support/expect_error.h"
#include "tessera/lattice/lists.h"

namespace tessera::lattice {
namespace {

TEST(Recall, CountsTiesAndMissingResults) {
  const std::vector<float> nearest = {1, 2, 4, 1, 2, 4};
  EXPECT_DOUBLE_EQ(recall(Metric::l2, 2, std::vector<float>{1, 2.001f, 1, 2.1f}, nearest, 3), 0.75);
  EXPECT_DOUBLE_EQ(recall(Metric::l2, 2, std::vector<float>{2, 2, NAN, 1}, nearest, 3), 0.75);
  const std::vector<float> scores = {9, 8};
  EXPECT_DOUBLE_EQ(recall(Metric::inner_product, 2, std::vector<float>{8, 7}, scores, 2), 0.5);
}

TEST(Recall, PickNprobeIsTheFewestThatReachTheTarget) {
  const auto measure = [](int32_t nprobe) { return 1 - 1.0 / (nprobe + 1); };
  const int32_t picked = pick_nprobe(0.9, 100, 1000, 10, measure);
  EXPECT_EQ(picked, 12);  // 8 gives 0.889
  EXPECT_EQ(pick_nprobe(1, 100, 1000, 10, measure), 100);
  EXPECT_EQ(pick_nprobe(0.1, 100, 1000, 10, measure), 1);
  EXPECT_EQ(pick_nprobe(0.5, 1, 10, 10, measure), 1);
  EXPECT_EQ(error_text([&] { pick_nprobe(1.5, 9, 9, 9, measure); }),
            "recall: expected a target from 0 to 1, got 1.5");
  EXPECT_EQ(error_text([&] { pick_nprobe(0.5, 9, 0, 9, measure); }),
            "recall: expected held-out queries to pick nprobe by, got none");
}

TEST(Recall, PickedNprobeKeepsItsWordOnOtherQueries) {
  constexpr int64_t kDim = 24, kPoints = 6000, kHeldOut = 300;
  const std::vector<float> points = mixture(1, kPoints, kDim);
  const Cells made = make_cells(points, kDim, 64, 3);
  const Coder coder(rotation_spec(kDim, 8, 1, made.mean_n2));
  const MemoryLists lists(coder, Metric::l2, made.anchors, points, made.of_point);
  const Searcher searcher(lists.index());
  const Originals original = [&](int64_t id, std::span<float> x) {
    std::copy_n(&points[size_t(id * kDim)], kDim, x.begin());
  };
  const std::vector<float> queries = mixture(2, kHeldOut, kDim), others = mixture(3, 1000, kDim);
  const auto nearest = true_nearest(Metric::l2, kDim, points, queries, 10);
  const auto others_nearest = true_nearest(Metric::l2, kDim, points, others, 10);
  for (const double target : {0.8, 0.9, 0.95}) {
    const int32_t nprobe = pick_nprobe(searcher, target, queries, nearest, 10, original);
    EXPECT_GT(search_recall(searcher, nprobe, others, others_nearest, 10, original), target - 0.01)
        << target;
    EXPECT_LT(nprobe, 64) << target;
  }
}

// Recall@10 of an index over all but the last `held_out` rows of `data`, all cells looked into.
struct Measured {
  double recall, eight_bit_recall, share_of_f32;
};

Measured measure(const Vectors& data, std::span<const float> queries, int32_t cells, int32_t bits) {
  const Cells made = make_cells(data.rows, data.dim, cells, 2);
  const Coder coder(rotation_spec(int32_t(data.dim), bits, 1, made.mean_n2));
  const MemoryLists lists(coder, Metric::l2, made.anchors, data.rows, made.of_point);
  const Searcher searcher(lists.index());
  const auto original = [&](int64_t id, std::span<float> x) {
    std::copy_n(&data.rows[size_t(id * data.dim)], data.dim, x.begin());
  };
  const auto nearest = true_nearest(Metric::l2, data.dim, data.rows, queries, 10);
  const auto recall_of = [&](bool refine) {
    const SearchResult found =
        searcher.search(queries, {.k = 10, .nprobe = cells, .refine_from = refine ? 1 : 9});
    return recall(Metric::l2, 10,
                  true_distances(Metric::l2, data.dim, queries, found.ids, original), nearest, 10);
  };
  const double bytes = double(lists.bytes()) + double(cells * data.dim) * 4;
  return {recall_of(true), recall_of(false), bytes / double(data.rows.size() * 4)};
}

TEST(Recall, Sift) {
  const auto data = shared_u8bin("sift10k_base.u8bin"),
             queries = shared_u8bin("sift10k_query.u8bin");
  if (!data || !queries) GTEST_SKIP() << "../shared/data/sift10k_*.u8bin is not there";
  const Measured m = measure(*data, queries->rows, 16, 5);
  printf("sift10k, 5 bits: recall@10 %.3f (8-bit queries alone %.3f) at %.1f %% of f32\n", m.recall,
         m.eight_bit_recall, 100 * m.share_of_f32);
  EXPECT_GE(m.recall, 0.95);
  EXPECT_LE(m.share_of_f32, 0.18);
}

TEST(Recall, Mnist) {
  const auto all = shared_u8bin("mnist10k.u8bin");
  if (!all) GTEST_SKIP() << "../shared/data/mnist10k.u8bin is not there";
  const Vectors data = {9900, all->dim, {all->rows.begin(), all->rows.begin() + 9900 * all->dim}};
  const Measured m = measure(data, all->part(9900, 100), 16, 4);
  printf("mnist10k, 4 bits: recall@10 %.3f (8-bit queries alone %.3f) at %.1f %% of f32\n",
         m.recall, m.eight_bit_recall, 100 * m.share_of_f32);
  EXPECT_GE(m.recall, 0.96);
  EXPECT_LE(m.share_of_f32, 0.15);
}

TEST(Recall, IsotropicNoise) {
  const Vectors data = {5000, 64, gaussians(1, 5000 * 64)};
  const Measured m = measure(data, gaussians(2, 100 * 64), 16, 8);
  printf("noise, 8 bits: recall@10 %.3f (8-bit queries alone %.3f) at %.1f %% of f32\n", m.recall,
         m.eight_bit_recall, 100 * m.share_of_f32);
  EXPECT_GE(m.recall, 0.97);
  EXPECT_LE(m.share_of_f32, 0.30);
}

}  // namespace
}  // namespace tessera::lattice
