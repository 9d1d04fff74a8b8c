// A whole file, mapped read-only. Pages are read when first touched.
//
// Hazard: the mapping shows the file, not a copy. If another program shortens the file meanwhile, a
// touch beyond its new end kills the process; files replaced by rename (see atomic_file.h) are
// safe.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace tessera {

class MappedFile {
 public:
  // Throws Error with the path and the system's reason. An empty file is valid.
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  // Valid as long as this object, or the one it was moved into, lives.
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace tessera
