// What IndexWriter and write_index share: the lock, and putting a new file in the place of an old
// one.
//
// One writer at a time: an advisory lock (flock) on the index file itself. It ends with its
// descriptor, so a killed writer leaves nothing behind.
#pragma once

#include <sys/stat.h>

#include <filesystem>

#include "tessera/io/descriptor.h"
#include "tessera/lattice/index_writer.h"

namespace tessera::lattice {

// Opens and locks the file at `path`. The file that was waited for may have been replaced by then;
// the lock is on the one that is at `path` when this returns. Not valid() when there is none.
Descriptor lock_index(const std::filesystem::path& path, IfBusy if_busy);

// Whether `path` still leads to the open file.
bool is_at(const Descriptor& file, const std::filesystem::path& path);

// write_index for one who has the lock already. `before` is the generation it follows.
void replace_index(const std::filesystem::path& path, const IndexInfo& info, const FillList& fill,
                   uint64_t before);

// What fills the lists of a compacted index. Both must outlive the function.
FillList live_lists(const Snapshot& snapshot, const BlockPacker& packer);

}  // namespace tessera::lattice
