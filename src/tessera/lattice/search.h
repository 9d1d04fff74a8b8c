// Nearest neighbours in an index of codes.
//
//   Searcher searcher(index);
//   SearchResult found = searcher.search(queries, {.k = 10, .nprobe = 32});
//
// A search looks into the nprobe cells nearest to each query and returns the k best by the codes'
// estimates, or by original vectors where those are given. One query or thousands: both are fast,
// and give the same results.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "tessera/lattice/lists.h"
#include "tessera/lattice/scan.h"

namespace tessera::lattice {

constexpr int64_t kMostResults = 1000;

struct SearchOptions {
  int64_t k = 10;       // 1…kMostResults
  int32_t nprobe = 32;  // at least 1; more than there are cells: all
  // Only ids in `allow`, none in `deny`. Cells beyond nprobe are looked into until k pass, or all
  // were seen.
  const IdSet* allow = nullptr;
  const IdSet* deny = nullptr;
  // Measures the best k · rerank by these original vectors (dim), not by codes. It must be safe to
  // call from several threads.
  std::function<void(int64_t id, std::span<float> vector)> original = nullptr;
  int32_t rerank = 4;
  // Codes of at least so many bits are better than queries in 8 bits: the best are measured again
  // by queries in f32. 1: always, 9: never.
  int32_t refine_from = 6;
};

// Best first. Where fewer than k were found, ids are -1 and distances infinitely bad.
struct SearchResult {
  int64_t k = 0;
  std::vector<int64_t> ids;      // (n, k)
  std::vector<float> distances;  // (n, k); squared l2, or scores (larger is better)
  PlaneCounts planes = {};
};

struct RangeResult {
  std::vector<int64_t> begin;  // (n + 1): query q's are [begin[q], begin[q + 1])
  std::vector<int64_t> ids;
  std::vector<float> distances;
};

class Searcher {
 public:
  explicit Searcher(SearchIndex index);

  const SearchIndex& index() const { return index_; }

  // queries: (n, dim).
  SearchResult search(std::span<const float> queries, const SearchOptions& options) const;

  // All in the nprobe nearest cells whose estimate is within `radius`: a squared distance of at
  // most, or a score of at least that. Best first. k, rerank and original are not used.
  RangeResult range_search(std::span<const float> queries, float radius,
                           const SearchOptions& options) const;

 private:
  std::vector<float> prepare(std::span<const float> queries) const;
  PlaneCounts widen(const SearchOptions& options, std::span<const float> queries,
                    std::span<TopK> best) const;
  void refine(std::span<const float> query, std::vector<Candidate>& candidates) const;
  void rerank(std::span<const float> query, const SearchOptions& options,
              std::span<const int64_t> ids, std::vector<Candidate>& candidates) const;
  std::vector<int64_t> ids_of(std::span<const std::vector<Candidate>> candidates) const;

  SearchIndex index_;
  TransformedAnchors anchors_;
};

}  // namespace tessera::lattice
