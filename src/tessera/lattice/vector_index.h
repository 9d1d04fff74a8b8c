// An index file, ready to be searched and changed.
//
//   VectorIndex index("vectors.tsr");
//   SearchResult found = index.search(queries, {.k = 10, .nprobe = 32});
//
//   index.upsert(ids, vectors);          // committed when it returns
//   index.erase(ids);
//   index.compact();
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tessera/io/vector_file.h"
#include "tessera/lattice/search.h"
#include "tessera/lattice/snapshot.h"

namespace tessera::lattice {

// What an index file keeps beside anchors and lists, as its blobs.
class IndexBlobs {
 public:
  IndexBlobs(const CodeSpec& spec, std::span<const float> diagonals);
  std::map<std::string, std::span<const std::byte>> all() const;

 private:
  std::vector<std::byte> spec_, diagonals_;
};

struct QueryOptions {
  int64_t k = 10;
  int32_t nprobe = 32;
  std::vector<int64_t> allow = {};  // only these ids; empty: all
  std::vector<int64_t> deny = {};   // none of these
  // Measures the best k · rerank by the vectors they were made of. Must hold the ids as rows.
  const VectorFile* originals = nullptr;
  int32_t rerank = 4;
};

class VectorIndex {
 public:
  // Throws Error with the path: no index, a damaged one, or codes that this version does not know.
  explicit VectorIndex(const std::filesystem::path& path);
  ~VectorIndex();
  VectorIndex(VectorIndex&&) noexcept;
  VectorIndex& operator=(VectorIndex&&) noexcept;

  // As of the last commit that this object has seen: its own, or by refresh().
  const Snapshot& snapshot() const;
  const CodeSpec& spec() const;
  const std::filesystem::path& path() const;
  bool refresh();

  // queries: (n, dim). May be called from several threads, but not while the index is changed.
  SearchResult search(std::span<const float> queries, const QueryOptions& options) const;
  RangeResult range_search(std::span<const float> queries, float radius,
                           const QueryOptions& options) const;

  // ids: (n); vectors: (n, dim), finite. Each is one commit.
  void add(std::span<const int64_t> ids, std::span<const float> vectors);
  void upsert(std::span<const int64_t> ids, std::span<const float> vectors);
  void erase(std::span<const int64_t> ids);
  void compact();

  // The vector that a live id's code stands for; (dim). Throws where there is none.
  std::vector<float> decode(int64_t id) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tessera::lattice
