// Codes whose top bits lie apart: what they promise of the whole code, and that searches keep it.
#include <numeric>

#include "code_fixture.h"
#include "io/temp_folder.h"
#include "support/expect_error.h"
#include "tessera/base/thread_pool.h"
#include "tessera/io/npy.h"
#include "tessera/lattice/build_index.h"
#include "tessera/lattice/recall.h"
#include "tessera/lattice/search.h"
#include "tessera/lattice/transform.h"
#include "tessera/lattice/vector_index.h"

namespace tessera::lattice {
namespace {

struct Groups {
  int32_t dim;
  std::vector<uint8_t> bits;
};

TEST(Planes, CodesComeBackFromABlock) {
  const Groups cases[] = {{128, {4, 4, 4, 4}}, {100, {8, 5, 2, 1}}, {7, {3}}, {90, {6, 0, 1}}};
  for (const auto& [dim, group_bits] : cases) {
    CodeSpec spec = rotation_spec(dim, 4, 1, dim);
    spec.planes = true;
    spec.group_bits = group_bits;
    EXPECT_EQ(code_spec_from_bytes(to_bytes(spec)), spec);
    std::vector<std::byte> block(size_t(block_bytes(spec)));
    EXPECT_EQ(block.size() % 64, 0u);
    const auto codes_of = [&](int slot) {
      std::vector<uint8_t> codes(size_t(spec.padded_dim));
      for (int32_t j = 0; j < dim; ++j) {
        const uint32_t mask = (1u << group_bits[size_t(j / 32)]) - 1;
        codes[size_t(j)] = uint8_t(philox(1, uint64_t(slot), uint64_t(j))[0] & mask);
      }
      return codes;
    };
    const auto factors_of = [](int slot) {
      return CodeFactors{1.f + float(slot), 0.25f * float(slot + 1), 0.5f + float(slot)};
    };
    for (int slot = 0; slot < kBlock; ++slot) {
      pack_code(spec, block.data(), slot, codes_of(slot), factors_of(slot));
    }
    std::vector<uint8_t> codes(size_t(spec.padded_dim));
    for (int slot = 0; slot < kBlock; ++slot) {
      const CodeFactors found = unpack_code(spec, block.data(), slot, codes);
      EXPECT_EQ(codes, codes_of(slot));
      EXPECT_EQ(found.n2, factors_of(slot).n2);
      EXPECT_EQ(found.g, factors_of(slot).g);
      EXPECT_EQ(found.hot, factors_of(slot).hot);
    }
  }
}

// Each pair has a rotation of its own.
TEST(Planes, TheBoundOfTopBitsHoldsOver10000Pairs) {
  for (const int32_t bits : {2, 4, 7}) {
    constexpr int kPairs = 10000, kDim = 64;
    int below = 0;
    double sum = 0, squares = 0;
    for (uint64_t i = 0; i < kPairs; ++i) {
      CodeSpec spec = rotation_spec(kDim, bits, i, 2 * kDim);
      spec.planes = true;
      const Coder coder(spec);
      std::vector<float> r = gaussians(2 * i, kDim), p = gaussians(2 * i + 1, kDim);
      const float truth = true_distance(Metric::l2, r, p);
      coder.transform(r.data());
      coder.transform(p.data());
      std::vector<uint8_t> codes(kDim);
      const Encoded e = coder.encode(r, {}, codes);
      float product = 0, p2 = 0;
      for (size_t j = 0; j < kDim; ++j) {
        product += p[j] * std::ldexp((codes[j] >> (bits - 1)) != 0 ? 0.5f : -0.5f, bits - 1);
        p2 += p[j] * p[j];
      }
      const float estimate = p2 + e.n2 - 2 * e.hot * product;
      const float across = std::sqrt(std::max(0.f, e.hot * e.hot * coder.hot_n2({}) - e.n2));
      const float bound = 2 * kHotEpsilon * across * std::sqrt(p2 / kDim);
      below += truth < estimate - bound ? 1 : 0;
      const double error = (estimate - truth) / (across * std::sqrt(p2));
      sum += error;
      squares += error * error;
    }
    EXPECT_LT(std::fabs(sum / kPairs), 4 * std::sqrt(squares / kPairs) / 100) << bits;
    // Of a Gaussian 0.6 % lie beyond 2.5 deviations on one side.
    EXPECT_LT(below, kPairs * 0.01) << bits << " bits";
    EXPECT_GT(below, 0) << bits << " bits: a bound that never fails is wider than it says";
  }
}

struct Built {
  Cells cells;
  std::vector<float> diagonals;
  Coder coder;
  MemoryLists lists;

  Built(const Cells& cells_, Metric metric, CodeSpec spec, bool planes,
        std::span<const float> points, std::vector<float> diagonals_)
      : cells(cells_),
        diagonals(std::move(diagonals_)),
        coder([&] {
          spec.planes = planes;
          return spec;
        }()),
        lists(coder, metric, cells.anchors, points, cells.of_point, {}, diagonals) {}
};

// One query at a time.
SearchResult search_singly(const Searcher& searcher, std::span<const float> queries, int64_t dim,
                           const SearchOptions& options) {
  SearchResult all;
  for (size_t q = 0; q < queries.size(); q += size_t(dim)) {
    const SearchResult one = searcher.search(queries.subspan(q, size_t(dim)), options);
    all.ids.insert(all.ids.end(), one.ids.begin(), one.ids.end());
    all.distances.insert(all.distances.end(), one.distances.begin(), one.distances.end());
    all.planes.add(one.planes);
  }
  return all;
}

TEST(Planes, SearchesFindWhatWholeCodesFind) {
  constexpr int64_t kDim = 96, kPoints = 6000, kQueries = 100, kK = 10;
  const std::vector<float> points = mixture(1, kPoints, kDim), queries = mixture(2, kQueries, kDim);
  const Cells cells = make_cells(points, kDim, 20);
  const TransformSample sample = {Metric::l2, kDim, cells.anchors, points, cells.of_point, queries};
  const CodeSpec pca = pca_spec(sample, 4, 1);
  const std::vector<float> diagonals =
      train_diagonals(Coder(pca), cells.anchors, points, cells.of_point);
  const auto original = [&](int64_t id, std::span<float> x) {
    std::copy_n(&points[size_t(id * kDim)], kDim, x.begin());
  };
  for (const Metric metric : {Metric::l2, Metric::inner_product}) {
    const std::vector<float> nearest = true_nearest(metric, kDim, points, queries, kK);
    for (const bool is_pca : {false, true}) {
      const CodeSpec spec = is_pca ? pca : rotation_spec(kDim, 4, 1, cells.mean_n2);
      const auto scales = is_pca ? diagonals : std::vector<float>();
      const Built whole(cells, metric, spec, false, points, scales);
      const Built split(cells, metric, spec, true, points, scales);
      const Searcher by_whole(whole.lists.index()), by_split(split.lists.index());
      const SearchOptions options = {.k = kK, .nprobe = 8};
      const SearchResult expected = by_whole.search(queries, options);
      const SearchResult batch = by_split.search(queries, options);
      EXPECT_EQ(batch.ids, expected.ids);
      EXPECT_EQ(batch.distances, expected.distances);
      const SearchResult found = search_singly(by_split, queries, kDim, options);
      const auto recall_of = [&](const std::vector<int64_t>& ids) {
        return recall(metric, kK, true_distances(metric, kDim, queries, ids, original), nearest,
                      kK);
      };
      EXPECT_NEAR(recall_of(found.ids), recall_of(expected.ids), 0.005)
          << name(metric) << (is_pca ? " pca" : " rotation");
      const double share = double(found.planes.refined) / double(found.planes.scanned);
      RecordProperty(cat(name(metric), is_pca ? " pca" : " rotation", " refined"), cat(share));
      EXPECT_GT(found.planes.scanned, kQueries * 100);
      EXPECT_LT(share, 0.5) << name(metric) << (is_pca ? " pca" : " rotation");
      EXPECT_EQ(expected.planes.scanned, 0);
      // However far the threshold had come down for some thread: the same again.
      for (int again = 0; again < 3; ++again) {
        const SearchResult same = search_singly(by_split, queries, kDim, options);
        EXPECT_EQ(same.ids, found.ids);
        EXPECT_EQ(same.distances, found.distances);
      }
    }
  }
}

TEST(Planes, AnIndexFileKeepsThem) {
  constexpr int64_t kDim = 40, kPoints = 1500;
  const TempFolder folder;
  const std::vector<float> points = mixture(1, kPoints, kDim), more = mixture(5, 70, kDim);
  write_npy(folder / "v.npy", DType::f32, {kPoints, kDim}, std::as_bytes(std::span(points)));
  const VectorFile vectors = VectorFile::open(folder / "v.npy");
  BuildOptions options;
  options.anchors.anchors = 12;
  build_index(vectors, folder / "whole.tsr", options);
  options.split_planes = true;
  build_index(vectors, folder / "split.tsr", options);
  VectorIndex whole(folder / "whole.tsr"), split(folder / "split.tsr");
  EXPECT_TRUE(split.spec().planes);
  std::vector<int64_t> ids(70);
  std::iota(ids.begin(), ids.end(), 1480);
  const auto compare = [&] {
    for (VectorIndex* index : {&whole, &split}) index->snapshot().verify();
    const QueryOptions query = {.k = 10, .nprobe = 6};
    const SearchResult expected = whole.search(more, query), found = split.search(more, query);
    EXPECT_EQ(found.ids, expected.ids);
    EXPECT_EQ(found.distances, expected.distances);
    for (const int64_t id : {3, 700, 1499}) EXPECT_EQ(split.decode(id), whole.decode(id));
  };
  compare();
  for (VectorIndex* index : {&whole, &split}) index->upsert(ids, more);
  compare();
  for (VectorIndex* index : {&whole, &split}) index->erase(std::vector<int64_t>{0, 1490, 20});
  compare();
  for (VectorIndex* index : {&whole, &split}) index->compact();
  compare();
  options.bits = 1;
  EXPECT_EQ(error_text([&] { build_index(vectors, folder / "no.tsr", options); }),
            "compress: split planes need at least 2 bits, got 1");
}

}  // namespace
}  // namespace tessera::lattice
