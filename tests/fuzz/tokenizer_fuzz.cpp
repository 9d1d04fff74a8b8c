// tokenizer.json: what is accepted is the same table when written and read again, and gives every
// text back that it encodes.
#include <string>
#include <string_view>

#include "fuzz.h"
#include "tessera/base/error.h"
#include "tessera/data/tokenizer_file.h"

namespace tessera {
namespace {

void check_round_trip(const Tokenizer& tokenizer, std::string_view text) {
  const bool bytes = tokenizer.table().unit == TokenTable::Unit::byte;
  std::vector<int32_t> tokens;
  try {
    tokens = tokenizer.encode(text);
  } catch (const Error&) {
    require(!bytes, "tokenizer: bytes without a token");
    return;
  }
  for (const int32_t token : tokens) {
    require(token >= 0 && token < tokenizer.size(), "tokenizer: a number outside");
    if (token == tokenizer.table().unknown) return;
  }
  require(tokenizer.decode(tokens) == text, "tokenizer: another text when decoded");
}

}  // namespace
}  // namespace tessera

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tessera;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::optional<Tokenizer> tokenizer;
  try {
    tokenizer = parse_tokenizer(text, "input");
  } catch (const Error&) {
    return 0;
  }
  const TokenTable& table = tokenizer->table();
  const std::string written = format_tokenizer(*tokenizer);
  const Tokenizer again = parse_tokenizer(written, "again");
  require(again.table() == table, "tokenizer: differs when written and read again");
  require(format_tokenizer(again) == written, "tokenizer: writes differ");
  std::string all;
  for (const std::string& token : table.tokens) all += token;
  check_round_trip(*tokenizer, all);
  check_round_trip(*tokenizer, text);
  return 0;
}
