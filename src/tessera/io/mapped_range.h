// A part of an open file, mapped read-only: for files that grow, where each part that was added is
// mapped by itself and the earlier ones stay where they are.
//
// Hazard: as with MappedFile, a file that is shortened meanwhile kills the process that touches
// what is gone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include "tessera/io/descriptor.h"

namespace tessera {

class MappedRange {
 public:
  // Bytes [begin, end) of the file, of which there must be that many. `path` is for errors.
  MappedRange(const Descriptor& file, int64_t begin, int64_t end,
              const std::filesystem::path& path);
  ~MappedRange();
  MappedRange(const MappedRange&) = delete;
  MappedRange& operator=(const MappedRange&) = delete;

  int64_t begin() const { return begin_; }
  int64_t end() const { return begin_ + int64_t(bytes_.size()); }
  // An address is a multiple of 64 where the offset in the file is.
  std::span<const std::byte> bytes() const { return bytes_; }
  // REQUIRES: begin() <= at, at + size <= end().
  std::span<const std::byte> bytes(int64_t at, int64_t size) const {
    return bytes_.subspan(size_t(at - begin_), size_t(size));
  }

 private:
  int64_t begin_ = 0;
  std::span<const std::byte> bytes_;
  size_t before_ = 0;  // bytes that are mapped before bytes_, back to the start of a page
};

}  // namespace tessera
