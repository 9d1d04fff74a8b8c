// Runs a fuzz target over the files of its corpus, in place of libFuzzer: what was found once stays
// fixed under every compiler.
//
// usage: replay_<target> <folder>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "fuzz.h"

namespace {

// A copy of exactly that size, so that the address sanitizer sees the byte behind the end.
void run(const std::vector<uint8_t>& bytes, size_t size) {
  const std::vector<uint8_t> copy(bytes.begin(), bytes.begin() + ptrdiff_t(size));
  LLVMFuzzerTestOneInput(copy.data(), copy.size());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s <folder>\n", argv[0]);
    return 2;
  }
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) {
    if (entry.is_regular_file()) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    const std::vector<uint8_t> bytes{std::istreambuf_iterator<char>(file), {}};
    run(bytes, bytes.size());
    run(bytes, bytes.size() / 2);
  }
  std::printf("replayed %zu inputs\n", paths.size());
  return paths.empty() ? 1 : 0;
}
