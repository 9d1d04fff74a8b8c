// The part of an index file that never changes, and its commit records.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tessera/io/descriptor.h"
#include "tessera/io/mapped_range.h"
#include "tessera/lattice/block_tail.h"
#include "tessera/lattice/index_format.h"
#include "tessera/lattice/metric.h"

namespace tessera::lattice {

// What an index is made for. Blobs are bytes that the file keeps under a name, aligned to 64, and
// does not look into: how codes are made, a transform, and the like.
struct IndexInfo {
  int32_t dim = 0;
  Metric metric = Metric::l2;
  int64_t block_bytes = 0;  // of 32 vectors; 0 in an index without codes
  TailLayout tail = TailLayout::padded;
  std::span<const float> anchors;  // (cells, dim)
  bool half_anchors = false;       // kept as f16, which they must be exactly
  std::map<std::string, std::span<const std::byte>> blobs;

  int32_t cells() const { return int32_t(int64_t(anchors.size()) / dim); }
};

struct IndexHead {
  std::shared_ptr<const MappedRange> file;  // owns what info shows
  std::string name;                         // of the file, for errors
  std::vector<float> widened;               // anchors that the file keeps as f16
  IndexInfo info;
  int64_t end = 0;  // where segments may begin
};

// Throws unless an index of that kind can be written.
void check_info(const IndexInfo& info);

// All bytes of a file before its first segment, with the commit records zero; a multiple of 64.
std::vector<std::byte> make_head(const IndexInfo& info);

// Throws unless every byte of the head that says something is intact.
IndexHead read_head(std::shared_ptr<const MappedRange> file, const std::string& name);

// The newest intact record. Throws for a file that is no index, or one where both copies of a
// record are damaged: that no crash does, and what the record committed would be lost unnoticed.
// While a writer is at work a record may be seen half written; it is then read again.
CommitRecord read_record(const Descriptor& file, const std::string& name);

// Puts `record` into the slot of its generation. `copy` is 0 or 1; `path` is for errors.
void write_record(const Descriptor& file, const CommitRecord& record, int copy,
                  const std::filesystem::path& path);

}  // namespace tessera::lattice
