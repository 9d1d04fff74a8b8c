// JSON: what is accepted reads as the same value when written again, compact or indented.
#include <string_view>

#include "fuzz.h"
#include "tessera/base/error.h"
#include "tessera/io/json.h"
#include "tessera/io/utf8.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tessera;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  // Errors quote arbitrary bytes; the quotation itself must be a string.
  const Json quoted = Json::parse(quote_for_error(text), "quotation");
  require(quoted.is_string(), "json: quotation");
  Json value;
  try {
    value = Json::parse(text, "input");
  } catch (const Error&) {
    return 0;
  }
  require(find_invalid_utf8(text) == std::string_view::npos, "json: accepted invalid UTF-8");
  const std::string compact = value.dump();
  require(Json::parse(compact, "compact") == value, "json: differs when written and read again");
  require(Json::parse(value.dump(2), "indented") == value, "json: differs when indented");
  require(Json::parse(compact, "compact").dump() == compact, "json: writes differ");
  return 0;
}
