// Opens an index file for reading. docs/formats/index.md has the layout.
//
//   IndexFile index("vectors.tsr");
//   const auto snapshot = index.snapshot();
//   for (const ListPart& part : snapshot->parts(cell)) scan(part.blocks(), part.tail());
//
// Opening reads the head, the commit records and the directories of the segments, whatever the
// size of the lists. Thread safe.
#pragma once

#include <filesystem>
#include <memory>

#include "tessera/lattice/snapshot.h"

namespace tessera::lattice {

class IndexFile {
 public:
  // Throws Error with the path: a file that cannot be read, is no index, or is damaged.
  explicit IndexFile(const std::filesystem::path& path);
  ~IndexFile();
  IndexFile(IndexFile&&) noexcept;
  IndexFile& operator=(IndexFile&&) noexcept;

  // The newest that was read. It outlives this object.
  std::shared_ptr<const Snapshot> snapshot() const;
  // Reads what was committed since, or the file that took this one's place. True if there was
  // anything. A throw leaves the snapshot as it was.
  bool refresh();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tessera::lattice
