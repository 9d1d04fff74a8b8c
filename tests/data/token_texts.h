// What the tests of tokenizers share.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "io/temp_folder.h"
#include "support/random_source.h"
#include "tessera/io/json.h"

namespace tessera {

inline std::filesystem::path golden(std::string_view name) {
  return std::filesystem::path(TESSERA_TEST_DIR) / "golden" / name;
}

// A file of ../shared/data, seen from the repository; it may be absent.
inline std::filesystem::path shared_data(std::string_view name) {
  return std::filesystem::path(TESSERA_TEST_DIR) / "../../../shared/data" / name;
}

struct Encoding {
  std::string text;
  std::vector<int32_t> tokens;
};

inline std::vector<Encoding> golden_encodings(std::string_view name) {
  std::vector<Encoding> encodings;
  const Json rows = Json::parse(read_text(golden(name)), name);
  for (const Json& row : rows.as_array()) {
    Encoding& encoding = encodings.emplace_back();
    encoding.text = row.get<std::string>("text");
    for (const Json& token : row.at("tokens").as_array()) {
      encoding.tokens.push_back(int32_t(token.as_int()));
    }
  }
  return encodings;
}

inline std::string random_bytes(RandomSource& random, int64_t size, int alphabet = 256) {
  std::string bytes;
  for (int64_t i = 0; i < size; ++i) bytes += char(random.below(alphabet));
  return bytes;
}

// Characters that the patterns of words tell apart, in any order, and bytes that are no UTF-8.
inline std::string random_text(RandomSource& random, int64_t size) {
  static const std::vector<std::string> kParts = {
      "a", "b",  "the", "'s", "'ll", "'", " ",      "  ",     "\n",   "\t", "1",    "23",
      "!", "--", "é",   "日", "½",   "٣", "\u00a0", "\u3000", "\x1c", "🎉",  "\xff", "\xe6\x97"};
  std::string text;
  while (int64_t(text.size()) < size) text += random.pick(kParts);
  return text;
}

}  // namespace tessera
