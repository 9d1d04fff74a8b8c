#include "tessera/backend/gpu/build_error.h"

#include <cctype>
#include <filesystem>
#include <fstream>
#include <functional>

#include "tessera/base/error.h"

namespace tessera::gpu {

std::string first_error(const std::string& log) {
  const size_t word = log.find("error");
  const size_t newline = word == std::string::npos ? std::string::npos : log.rfind('\n', word);
  const size_t begin = newline == std::string::npos ? 0 : newline + 1;
  return log.substr(begin, log.find_first_of(std::string("\n\0", 2), begin) - begin);
}

std::string keep_source(const std::string& op, const std::string& source, const char* suffix) {
  std::string file = "tessera_";
  for (const char c : op.substr(0, 40))
    file += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  std::error_code ignored;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(ignored);
  const std::string path =
      (folder / cat(file, "_", std::hash<std::string>()(source), suffix)).string();
  std::ofstream out(path, std::ios::binary);
  out << source;
  return out.flush() ? path : cat(path, " (which could not be written)");
}

}  // namespace tessera::gpu
