// Files of tokens: what is accepted has as many as the file has room for, each read alike alone and
// with its neighbours, and those outside the vocabulary are refused.
#include <algorithm>
#include <vector>

#include "fuzz.h"
#include "scratch_file.h"
#include "tessera/base/error.h"
#include "tessera/data/token_data.h"

namespace tessera {
namespace {

constexpr int64_t kVocabulary = 1000;
constexpr size_t kHeader = 1024;  // of llm.c's files

void check(const TokenData& data, size_t bytes) {
  require(2 * size_t(data.size()) == bytes || 2 * size_t(data.size()) + kHeader == bytes,
          "tokens: their number");
  std::vector<int32_t> all(size_t(data.size())), one(1);
  data.read(0, all);
  for (size_t i = 0; i < all.size(); ++i) {
    data.read(int64_t(i), one);
    require(one[0] == all[i] && one[0] >= 0 && one[0] <= 0xFFFF, "tokens: one differs");
  }
}

// Twice the same file: borders between files are read across.
void check_joined(const ScratchFile& file, const TokenData& data) {
  const TokenData twice = TokenData::open({file.path(), file.path()}, kVocabulary);
  require(twice.size() == 2 * data.size(), "tokens: the size of two files");
  std::vector<int32_t> all(size_t(data.size())), both(size_t(twice.size()));
  data.read(0, all);
  const bool fits = std::ranges::all_of(all, [](int32_t token) { return token < kVocabulary; });
  try {
    twice.read(0, both);
  } catch (const Error&) {
    require(!fits, "tokens: refused what is in the vocabulary");
    return;
  }
  require(fits, "tokens: accepted what is not in the vocabulary");
  require(std::ranges::equal(all, std::span(both).first(all.size())) &&
              std::ranges::equal(all, std::span(both).last(all.size())),
          "tokens: two files differ from one");
}

}  // namespace
}  // namespace tessera

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tessera;
  static const ScratchFile file(".bin");
  file.write(data, size);
  try {
    const TokenData tokens = TokenData::open({file.path()});
    check(tokens, size);
    check_joined(file, tokens);
  } catch (const Error&) {
  }
  return 0;
}
