// Replaces a file all at once: a reader sees the old content or the new, never a part, and a crash
// or a full disk leaves the old file as it was.
//
// Bytes go to ".tessera-<process>-<number>.tmp" in the same folder; commit() syncs it, renames it
// to `path` and syncs the folder. Only a killed process leaves the temporary file behind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include "tessera/io/descriptor.h"

namespace tessera {

// Has what a folder lists reach the disk. 0 or the system's error code; filesystems that cannot
// sync a folder say so by EINVAL, which counts as done.
int sync_folder(const std::filesystem::path& folder);

class AtomicFile {
 public:
  // Throws if the temporary file cannot be made, or if `path` exists and is no regular file (a
  // rename would replace a device by a file). A symbolic link to a file is replaced, not followed.
  explicit AtomicFile(const std::filesystem::path& path);
  // Removes the temporary file unless committed.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  // All throw Error with the path and the system's reason. After a throw the temporary file is
  // gone and the object may only be destroyed.
  void write(std::span<const std::byte> bytes);
  // Replaces bytes that were written before, from byte `at` of the file on.
  void rewrite(int64_t at, std::span<const std::byte> bytes);
  void commit();

 private:
  [[noreturn]] void give_up(int code);

  std::filesystem::path path_;
  std::filesystem::path temporary_;
  Descriptor file_{-1};
};

}  // namespace tessera
