// The input of a fuzz target as a file, for readers that map one.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "fuzz.h"

namespace tessera {

class ScratchFile {
 public:
  // `extension` as readers tell formats by it: ".jsonl".
  explicit ScratchFile(const std::string& extension)
      : path_(std::filesystem::temp_directory_path() /
              ("tessera_fuzz_" + std::to_string(::getpid()) + extension)) {}
  ~ScratchFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;

  void write(const void* data, size_t size) const {
    std::ofstream file(path_, std::ios::binary | std::ios::trunc);
    file.write(static_cast<const char*>(data), std::streamsize(size));
    file.close();
    require(!file.fail(), "scratch: cannot write");
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace tessera
