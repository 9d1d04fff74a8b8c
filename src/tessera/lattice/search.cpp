#include "tessera/lattice/search.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tessera/base/error.h"
#include "tessera/base/thread_pool.h"
#include "tessera/lattice/coarse.h"
#include "tessera/lattice/estimate.h"

namespace tessera::lattice {

namespace {

constexpr int64_t kBatch = 4096;  // queries whose heaps are in memory at once

// Beyond k, for the order in f32 to choose from.
int64_t spare_results(int64_t k) { return 8 + k / 4; }

// Adds `other`'s results, of queries that come after those here.
void append(SearchResult& to, SearchResult other) {
  to.k = other.k;
  to.ids.insert(to.ids.end(), other.ids.begin(), other.ids.end());
  to.distances.insert(to.distances.end(), other.distances.begin(), other.distances.end());
  to.planes.add(other.planes);
}

void check(const SearchIndex& index, std::span<const float> queries, const SearchOptions& options) {
  const size_t dim = size_t(index.coder->spec().dim);
  if (queries.size() % dim != 0) {
    fail("search: expected queries of ", dim, " dimensions, got ", queries.size(), " numbers");
  }
  for (size_t i = 0; i < queries.size(); ++i) {
    if (!std::isfinite(queries[i]))
      fail("search: query ", i / dim, " holds a number that is not finite");
  }
  if (options.k < 1 || options.k > kMostResults) {
    fail("search: expected k from 1 to ", kMostResults, ", got ", options.k);
  }
  if (options.nprobe < 1) fail("search: expected nprobe of at least 1, got ", options.nprobe);
  if (options.rerank < 1) fail("search: expected rerank of at least 1, got ", options.rerank);
}

}  // namespace

Searcher::Searcher(SearchIndex index) : index_(std::move(index)), anchors_(index_) {}

std::vector<float> Searcher::prepare(std::span<const float> queries) const {
  if (index_.metric != Metric::cosine) return index_.coder->transform_rows(queries);
  std::vector<float> scaled(queries.begin(), queries.end());
  const size_t dim = size_t(index_.coder->spec().dim);
  for (size_t i = 0; i < scaled.size(); i += dim) {
    const float n2 = std::inner_product(&scaled[i], &scaled[i] + dim, &scaled[i], 0.f);
    for (size_t j = i; j < i + dim && n2 > 0; ++j) scaled[j] /= std::sqrt(n2);
  }
  return index_.coder->transform_rows(scaled);
}

// Looks into further cells for queries that have not found enough, twice as many each time.
PlaneCounts Searcher::widen(const SearchOptions& options, std::span<const float> queries,
                            std::span<TopK> best) const {
  PlaneCounts counts;
  const int32_t cells = index_.cells();
  const size_t padded = size_t(anchors_.padded_dim);
  for (int32_t seen = std::min(options.nprobe, cells); seen < cells;) {
    const int32_t wanted = int32_t(std::min<int64_t>(cells, int64_t(seen) * 2));
    std::vector<size_t> hungry;
    std::vector<float> rows;
    std::vector<TopK> tops;
    for (size_t q = 0; q < best.size(); ++q) {
      if (best[q].size() >= options.k) continue;
      hungry.push_back(q);
      rows.insert(rows.end(), &queries[q * padded], &queries[q * padded] + padded);
      tops.push_back(std::move(best[q]));
    }
    if (hungry.empty()) break;
    const std::vector<Probe> all = nearest_cells(
        index_.metric, anchors_.padded_dim, anchors_.anchors, anchors_.anchor_n2, rows, wanted);
    std::vector<Probe> fresh;
    for (size_t i = 0; i < hungry.size(); ++i) {
      const auto begin = all.begin() + int64_t(i) * wanted;
      fresh.insert(fresh.end(), begin + seen, begin + wanted);
    }
    counts.add(scan_cells(index_, anchors_, {options.allow, options.deny}, rows, fresh, tops));
    for (size_t i = 0; i < hungry.size(); ++i) best[hungry[i]] = std::move(tops[i]);
    seen = wanted;
  }
  return counts;
}

void Searcher::refine(std::span<const float> query, std::vector<Candidate>& candidates) const {
  const CodeSpec& spec = index_.coder->spec();
  const int64_t block = index_.coder->shape().block_bytes;
  std::vector<uint8_t> codes(size_t(spec.padded_dim));
  std::vector<float> difference(query.begin(), query.end());
  for (Candidate& c : candidates) {
    int64_t position = c.position;
    const ListView* view = index_.lists(c.cell).data();
    for (; position >= view->count; ++view) position -= view->count;
    const CodeFactors factors =
        unpack_code(spec, view->blocks + position / kBlock * block, int(position % kBlock), codes);
    const std::span<const float> anchor = anchors_.anchor(c.cell);
    float base = 0;
    for (size_t j = 0; j < difference.size(); ++j) {
      if (index_.metric == Metric::l2) {
        difference[j] = query[j] - anchor[j];
        base += difference[j] * difference[j];
      } else {
        base -= query[j] * anchor[j];
      }
    }
    c.key = estimate_key(index_.metric, base, factors,
                         code_product(spec, codes, difference, anchors_.diagonal(c.cell)));
  }
  std::sort(candidates.begin(), candidates.end());
}

// query: (dim), as given.
void Searcher::rerank(std::span<const float> query, const SearchOptions& options,
                      std::span<const int64_t> ids, std::vector<Candidate>& candidates) const {
  std::vector<float> x(query.size());
  for (size_t i = 0; i < candidates.size(); ++i) {
    options.original(ids[i], x);
    candidates[i].key = key_of(index_.metric, true_distance(index_.metric, query, x));
    candidates[i].position = ids[i];  // of equals the lower id first, and the id stays with its key
  }
  std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    return a.key < b.key || (a.key == b.key && a.position < b.position);
  });
}

// In the order of the candidates.
std::vector<int64_t> Searcher::ids_of(std::span<const std::vector<Candidate>> candidates) const {
  std::vector<int64_t> result;
  for (const std::vector<Candidate>& of_query : candidates) {
    for (const Candidate& c : of_query) result.push_back(index_.id(c.cell, c.position));
  }
  return result;
}

SearchResult Searcher::search(std::span<const float> queries, const SearchOptions& options) const {
  check(index_, queries, options);
  const size_t dim = size_t(index_.coder->spec().dim), n = queries.size() / dim;
  if (n > size_t(kBatch)) {
    SearchResult result;
    for (size_t q = 0; q < n; q += size_t(kBatch)) {
      append(result,
             search(queries.subspan(q * dim, std::min(size_t(kBatch), n - q) * dim), options));
    }
    return result;
  }
  const size_t k = size_t(options.k), padded = size_t(anchors_.padded_dim);
  const int32_t bits = index_.coder->spec().bits;
  const bool refines = bits > 0 && bits >= options.refine_from && !options.original;
  const int64_t kept = options.original ? options.k * options.rerank
                                        : options.k + (refines ? spare_results(options.k) : 0);
  const std::vector<float> turned = prepare(queries);
  const std::vector<Probe> probes =
      nearest_cells(index_.metric, anchors_.padded_dim, anchors_.anchors, anchors_.anchor_n2,
                    turned, std::min(options.nprobe, index_.cells()));
  std::vector<TopK> best(n, TopK(kept));
  const ScanFilter filter = {options.allow, options.deny};
  PlaneCounts planes = scan_cells(index_, anchors_, filter, turned, probes, best);
  if (filter.active()) planes.add(widen(options, turned, best));

  std::vector<std::vector<Candidate>> candidates(n);
  thread_pool().parallel_for(int64_t(n), 8, [&](int64_t begin, int64_t end) {
    for (size_t q = size_t(begin); q < size_t(end); ++q) {
      candidates[q] = best[q].take();
      if (refines) refine(std::span(turned).subspan(q * padded, padded), candidates[q]);
      if (!options.original && candidates[q].size() > k) candidates[q].resize(k);
    }
  });
  const std::vector<int64_t> ids = ids_of(candidates);
  std::vector<size_t> first(n + 1, 0);
  for (size_t q = 0; q < n; ++q) first[q + 1] = first[q] + candidates[q].size();

  const float worst = key_of(index_.metric, std::numeric_limits<float>::infinity());
  SearchResult result = {options.k, std::vector<int64_t>(n * k, -1),
                         std::vector<float>(n * k, worst), planes};
  thread_pool().parallel_for(int64_t(n), 8, [&](int64_t begin, int64_t end) {
    for (size_t q = size_t(begin); q < size_t(end); ++q) {
      const auto mine = std::span(ids).subspan(first[q], candidates[q].size());
      if (options.original) rerank(queries.subspan(q * dim, dim), options, mine, candidates[q]);
      for (size_t i = 0; i < std::min(k, candidates[q].size()); ++i) {
        result.ids[q * k + i] = options.original ? candidates[q][i].position : mine[i];
        result.distances[q * k + i] = key_of(index_.metric, candidates[q][i].key);
      }
    }
  });
  return result;
}

RangeResult Searcher::range_search(std::span<const float> queries, float radius,
                                   const SearchOptions& options) const {
  check(index_, queries, options);
  const size_t dim = size_t(index_.coder->spec().dim), n = queries.size() / dim;
  const std::vector<float> turned = prepare(queries);
  const std::vector<Probe> probes =
      nearest_cells(index_.metric, anchors_.padded_dim, anchors_.anchors, anchors_.anchor_n2,
                    turned, std::min(options.nprobe, index_.cells()));
  std::vector<TopK> best(n, TopK(TopK::kUnlimited, key_of(index_.metric, radius)));
  scan_cells(index_, anchors_, {options.allow, options.deny}, turned, probes, best);
  std::vector<std::vector<Candidate>> candidates(n);
  RangeResult result;
  result.begin.push_back(0);
  for (size_t q = 0; q < n; ++q) {
    candidates[q] = best[q].take();
    for (const Candidate& c : candidates[q]) {
      result.distances.push_back(key_of(index_.metric, c.key));
    }
    result.begin.push_back(int64_t(result.distances.size()));
  }
  result.ids = ids_of(candidates);
  return result;
}

}  // namespace tessera::lattice
