// Makes and changes index files. One writer at a time has a file, in whatever process; readers go
// on meanwhile and see commits as a whole or not at all (index_file.h).
//
//   write_index("vectors.tsr", info, fill);            // a new one
//   IndexWriter writer("vectors.tsr", packer);
//   writer.upsert(cells, ids, vectors);
//   writer.erase(other_ids);
//   writer.commit();                                   // on disk when it returns
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "tessera/lattice/block_packer.h"
#include "tessera/lattice/snapshot.h"

namespace tessera::lattice {

// Gives the list of a cell: ids strictly ascending and not negative, and their blocks, the last one
// padded with zeros. Both come empty. No id may be in two cells.
using FillList =
    std::function<void(int32_t cell, std::vector<int64_t>& ids, std::vector<std::byte>& blocks)>;

// Makes an index, or replaces what is at `path`, all at once: cells are asked for in order, one at
// a time. Waits for a writer that has the file at `path`. No `fill`: an index without vectors.
void write_index(const std::filesystem::path& path, const IndexInfo& info,
                 const FillList& fill = nullptr);

// Writes the live vectors of a snapshot as an index of one segment, as write_index does.
void write_compacted(const std::filesystem::path& path, const Snapshot& snapshot,
                     const BlockPacker& packer);

enum class IfBusy { wait, fail };

class IndexWriter {
 public:
  // Throws Error if there is no index, or if another writer has it and `if_busy` is fail.
  // `packer` must outlive the writer.
  IndexWriter(const std::filesystem::path& path, const BlockPacker& packer,
              IfBusy if_busy = IfBusy::wait);
  ~IndexWriter();  // what was not committed is dropped
  IndexWriter(IndexWriter&&) noexcept;
  IndexWriter& operator=(IndexWriter&&) noexcept;

  // The file as of the last commit.
  std::shared_ptr<const Snapshot> snapshot() const;

  // Each takes all of a batch or, when it throws, nothing of it. Nothing is written before commit.
  // cells, ids: (n); vectors: (n, packer.vector_bytes()).
  // add: throws if an id lives in the index. That is looked up where it may: ids above all that the
  // index has are free.
  void add(std::span<const int32_t> cells, std::span<const int64_t> ids,
           std::span<const std::byte> vectors);
  // upsert: adds, in place of what has the id. Never looks anything up.
  void upsert(std::span<const int32_t> cells, std::span<const int64_t> ids,
              std::span<const std::byte> vectors);
  // erase: ids that are not there do no harm.
  void erase(std::span<const int64_t> ids);

  // Makes the batches since the last commit one change. After a throw of a full disk or the like
  // the file is as it was, and commit may be tried again.
  void commit();
  // Commits, then rewrites the file beside the old one without dead vectors and with one part per
  // cell, and puts it in its place. Readers keep the old one until they refresh.
  void compact();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tessera::lattice
