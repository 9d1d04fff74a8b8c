#include "tessera/lattice/search.h"

#include <algorithm>
#include <set>

#include "code_fixture.h"
#include "support/expect_error.h"
#include "tessera/lattice/recall.h"

namespace tessera::lattice {
namespace {

// An index in memory with all it refers to.
struct Built {
  Built(std::vector<float> rows, int32_t dimensions, int32_t cell_count, int32_t bits,
        Metric measure = Metric::l2)
      : points(std::move(rows)),
        dim(dimensions),
        cells(make_cells(points, dim, cell_count)),
        coder(rotation_spec(dim, bits, 1, cells.mean_n2)),
        lists(coder, measure, cells.anchors, points, cells.of_point),
        searcher(lists.index()),
        metric(measure) {}

  void original(int64_t id, std::span<float> x) const {
    std::copy_n(&points[size_t(id * dim)], dim, x.begin());
  }
  double recall_of(const SearchResult& found, std::span<const float> queries) const {
    const auto get = [this](int64_t id, std::span<float> x) { original(id, x); };
    const auto nearest = true_nearest(metric, dim, points, queries, found.k);
    return recall(metric, found.k, true_distances(metric, dim, queries, found.ids, get), nearest,
                  found.k);
  }

  std::vector<float> points;
  int32_t dim;
  Cells cells;
  Coder coder;
  MemoryLists lists;
  Searcher searcher;
  Metric metric;
};

std::vector<float> scaled_to_one(std::vector<float> rows, size_t dim) {
  for (size_t i = 0; i < rows.size(); i += dim) {
    double n2 = 0;
    for (size_t j = 0; j < dim; ++j) n2 += double(rows[i + j]) * rows[i + j];
    for (size_t j = 0; j < dim; ++j) rows[i + j] = float(rows[i + j] / std::sqrt(n2));
  }
  return rows;
}

constexpr int64_t kPoints = 1500;
constexpr int32_t kDim = 40;

// Every estimate by the plain formula, sorted: what a search of all cells must find.
std::vector<std::pair<float, int64_t>> all_estimates(const Built& b, std::span<const float> query) {
  const CodeSpec& spec = b.coder.spec();
  std::vector<std::pair<float, int64_t>> result;
  std::vector<uint8_t> codes(size_t(spec.padded_dim));
  for (int64_t i = 0; i < kPoints; ++i) {
    const float* anchor = &b.cells.anchors[size_t(b.cells.of_point[size_t(i)] * kDim)];
    std::vector<float> residual(size_t(spec.padded_dim), 0.f), q = padded_row(spec, query);
    float base = 0;
    for (size_t j = 0; j < size_t(kDim); ++j) {
      residual[j] = b.points[size_t(i) * size_t(kDim) + j] - anchor[j];
      if (b.metric == Metric::l2) {
        q[j] -= anchor[j];
        base += q[j] * q[j];
      } else {
        base -= q[j] * anchor[j];
      }
    }
    b.coder.transform(residual.data());
    b.coder.transform(q.data());
    const Encoded e = b.coder.encode(residual, {}, codes);
    const float key = estimate_key(b.metric, base, round_factors(spec, {e.n2, e.g}),
                                   code_product(spec, codes, q, {}));
    result.push_back({key_of(b.metric, key), i});
  }
  std::sort(result.begin(), result.end(), [&](const auto& x, const auto& y) {
    return key_of(b.metric, x.first) < key_of(b.metric, y.first);
  });
  return result;
}

TEST(Search, AllCellsGiveWhatBruteForceOverTheEstimatesGives) {
  for (const Metric metric : {Metric::l2, Metric::inner_product, Metric::cosine}) {
    for (const int32_t bits : {1, 3, 4, 8}) {
      std::vector<float> rows = mixture(1, kPoints, kDim), queries = mixture(2, 20, kDim);
      if (metric == Metric::cosine) {
        rows = scaled_to_one(std::move(rows), kDim);
        queries = scaled_to_one(std::move(queries), kDim);
      }
      const Built b(std::move(rows), kDim, 24, bits, metric);
      const SearchResult found =
          b.searcher.search(queries, {.k = 12, .nprobe = 24, .refine_from = 1});
      int64_t same = 0;
      for (size_t q = 0; q < 20; ++q) {
        const auto expected = all_estimates(b, std::span(queries).subspan(q * kDim, kDim));
        std::set<int64_t> best;
        for (size_t i = 0; i < 12; ++i) best.insert(expected[i].second);
        for (size_t i = 0; i < 12; ++i) {
          same += int64_t(best.count(found.ids[q * 12 + i]));
          const float want = expected[i].first;
          EXPECT_NEAR(found.distances[q * 12 + i], want, 2e-3f * (1 + std::fabs(want)))
              << name(metric) << " " << bits << " bits, query " << q << " rank " << i;
        }
      }
      // 8-bit queries choose the candidates, f32 their order: the last places may differ.
      EXPECT_GE(same, 237) << name(metric) << " " << bits << " bits";
    }
  }
}

TEST(Search, EqualOnEveryInstructionSetAndForOneQueryOrMany) {
  const Built b(mixture(1, kPoints, kDim), kDim, 24, 4);
  const std::vector<float> queries = mixture(2, 70, kDim);
  const SearchOptions options = {.k = 10, .nprobe = 6};
  std::optional<SearchResult> expected;
  with_each_kernels([&] {
    const SearchResult all = b.searcher.search(queries, options);
    if (!expected) expected = all;
    EXPECT_EQ(all.ids, expected->ids);
    EXPECT_EQ(all.distances, expected->distances);
    for (size_t q = 0; q < 70; ++q) {
      const SearchResult one =
          b.searcher.search(std::span(queries).subspan(q * kDim, kDim), options);
      ASSERT_TRUE(std::equal(one.ids.begin(), one.ids.end(), &all.ids[q * 10])) << "query " << q;
    }
  });
}

TEST(Search, MoreQueriesThanOneBatchHolds) {
  const Built b(gaussians(1, 200 * 4), 4, 8, 4);
  const std::vector<float> queries = gaussians(2, 5000 * 4);
  const SearchResult all = b.searcher.search(queries, {.k = 3, .nprobe = 2});
  ASSERT_EQ(all.ids.size(), 15000u);
  const SearchResult last =
      b.searcher.search(std::span(queries).subspan(4999 * 4), {.k = 3, .nprobe = 2});
  EXPECT_TRUE(std::equal(last.ids.begin(), last.ids.end(), &all.ids[4999 * 3]));
}

TEST(Search, NoCodesRankByTheAnchors) {
  const Built b(mixture(1, kPoints, kDim), kDim, 24, 0);
  EXPECT_EQ(b.lists.bytes(), 0);
  const std::vector<float> queries = mixture(2, 5, kDim);
  const SearchResult found = b.searcher.search(queries, {.k = 10, .nprobe = 24});
  for (size_t q = 0; q < 5; ++q) {
    const auto query = std::span(queries).subspan(q * kDim, kDim);
    for (size_t i = 0; i < 10; ++i) {
      const int32_t cell = b.cells.of_point[size_t(found.ids[q * 10 + i])];
      const auto anchor = std::span(b.cells.anchors).subspan(size_t(cell * kDim), kDim);
      const float d = true_distance(Metric::l2, query, anchor);
      EXPECT_NEAR(found.distances[q * 10 + i], d, 1e-3f * d);
      if (i == 0) EXPECT_EQ(cell, nearest_row(b.cells.anchors, query));
    }
  }
}

TEST(Search, FewerThanKIsSaid) {
  const Built b(gaussians(1, 5 * 4), 4, 2, 4);
  const SearchResult found = b.searcher.search(gaussians(2, 4), {.k = 7, .nprobe = 9});
  EXPECT_GE(found.ids[4], 0);
  EXPECT_EQ(found.ids[5], -1);
  EXPECT_EQ(found.distances[6], INFINITY);
}

TEST(Search, FilterWidensUntilKPass) {
  const Built b(mixture(1, kPoints, kDim), kDim, 24, 8);
  const std::vector<float> queries = mixture(2, 10, kDim);
  std::vector<int64_t> few;
  std::vector<uint64_t> words(kPoints / 64 + 1, 0);
  for (int64_t id = 3; id < kPoints; id += 60) {
    few.push_back(id);
    words[size_t(id / 64)] |= uint64_t(1) << (id % 64);
  }
  const IdSet sorted = IdSet::sorted(few), bitmap = IdSet::bitmap(words);
  const SearchResult all = b.searcher.search(queries, {.k = 25, .nprobe = 1, .allow = &sorted});
  EXPECT_EQ(all.ids, b.searcher.search(queries, {.k = 25, .nprobe = 1, .allow = &bitmap}).ids);
  for (size_t q = 0; q < 10; ++q) {  // 25 pass in all: each query must find every one
    const std::set<int64_t> found(&all.ids[q * 25], &all.ids[q * 25] + 25);
    EXPECT_EQ(found, std::set<int64_t>(few.begin(), few.end()));
  }
  const SearchResult denied = b.searcher.search(queries, {.k = 50, .nprobe = 4, .deny = &sorted});
  for (const int64_t id : denied.ids) EXPECT_FALSE(sorted.contains(id));
  const SearchResult none =
      b.searcher.search(queries, {.k = 5, .nprobe = 1, .allow = &sorted, .deny = &bitmap});
  for (const int64_t id : none.ids) EXPECT_EQ(id, -1);
}

TEST(Search, RangeFindsAllWithinTheRadius) {
  for (const Metric metric : {Metric::l2, Metric::inner_product}) {
    const Built b(mixture(1, kPoints, kDim), kDim, 24, 8, metric);
    const std::vector<float> queries = mixture(2, 5, kDim);
    const float radius = metric == Metric::l2 ? 40.f : 150.f;
    const RangeResult found = b.searcher.range_search(queries, radius, {.nprobe = 24});
    ASSERT_EQ(found.begin.size(), 6u);
    for (size_t q = 0; q < 5; ++q) {
      const std::set<int64_t> ids(found.ids.begin() + found.begin[q],
                                  found.ids.begin() + found.begin[q + 1]);
      const auto sorted = all_estimates(b, std::span(queries).subspan(q * kDim, kDim));
      for (const auto& [value, id] : sorted) {
        if (std::fabs(value - radius) < 0.01f * radius) continue;
        EXPECT_EQ(ids.count(id) == 1, key_of(metric, value) < key_of(metric, radius)) << value;
      }
      EXPECT_TRUE(std::is_sorted(
          found.distances.begin() + found.begin[q], found.distances.begin() + found.begin[q + 1],
          [&](float x, float y) { return key_of(metric, x) < key_of(metric, y); }));
    }
  }
}

TEST(Search, RerankGivesTrueDistances) {
  for (const Metric metric : {Metric::l2, Metric::inner_product}) {
    const Built b(mixture(1, kPoints, kDim), kDim, 24, 2, metric);
    const std::vector<float> queries = mixture(2, 30, kDim);
    SearchOptions options = {.k = 10, .nprobe = 24, .rerank = 8};
    const double by_codes = b.recall_of(b.searcher.search(queries, options), queries);
    options.original = [&](int64_t id, std::span<float> x) { b.original(id, x); };
    const SearchResult found = b.searcher.search(queries, options);
    EXPECT_GT(b.recall_of(found, queries), 0.97);
    EXPECT_LT(by_codes, 0.9);
    const std::vector<float> nearest = true_nearest(metric, kDim, b.points, queries, 1);
    for (size_t q = 0; q < 30; ++q) EXPECT_EQ(found.distances[q * 10], nearest[q]);
  }
}

TEST(Search, SeveralListsOfOneCellAreOneList) {
  const Built b(mixture(1, kPoints, kDim), kDim, 8, 5);
  const SearchIndex whole = b.lists.index();
  std::vector<std::vector<ListView>> parts(8);
  for (int32_t cell = 0; cell < 8; ++cell) {
    const ListView view = whole.lists(cell)[0];
    const int64_t cut = std::min<int64_t>(64, view.count / 32 * 32);
    parts[size_t(cell)] = {
        {cut, view.blocks},
        {view.count - cut, view.blocks + cut / 32 * block_bytes(b.coder.spec())}};
  }
  SearchIndex split = whole;
  split.lists = [&](int32_t cell) { return std::span<const ListView>(parts[size_t(cell)]); };
  const std::vector<float> queries = mixture(2, 10, kDim);
  const SearchOptions options = {.k = 10, .nprobe = 8};
  EXPECT_EQ(Searcher(split).search(queries, options).ids, b.searcher.search(queries, options).ids);
}

TEST(Search, Mistakes) {
  const Built b(gaussians(1, 40), 4, 2, 4);
  const std::vector<float> q = gaussians(2, 4), odd = gaussians(2, 5);
  const auto text = [&](std::span<const float> queries, const SearchOptions& options) {
    return error_text([&] { b.searcher.search(queries, options); });
  };
  EXPECT_EQ(text(odd, {}), "search: expected queries of 4 dimensions, got 5 numbers");
  EXPECT_EQ(text(q, {.k = 1001}), "search: expected k from 1 to 1000, got 1001");
  EXPECT_EQ(text(q, {.nprobe = 0}), "search: expected nprobe of at least 1, got 0");
  EXPECT_EQ(text(q, {.rerank = 0}), "search: expected rerank of at least 1, got 0");
  std::vector<float> holes = gaussians(2, 12);
  holes[9] = NAN;
  EXPECT_EQ(text(holes, {}), "search: query 2 holds a number that is not finite");
  EXPECT_TRUE(b.searcher.search({}, {}).ids.empty());
}

}  // namespace
}  // namespace tessera::lattice
