// .jsonl: the documents of what is accepted, written as lines again, are the same documents.
#include <string>
#include <vector>

#include "fuzz.h"
#include "scratch_file.h"
#include "tessera/base/error.h"
#include "tessera/data/text_files.h"
#include "tessera/io/json.h"

namespace tessera {
namespace {

std::vector<std::string> documents_of(const ScratchFile& file) {
  std::vector<std::string> documents;
  for_each_document({file.path()}, [&](std::string_view text) { documents.emplace_back(text); });
  return documents;
}

}  // namespace
}  // namespace tessera

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tessera;
  static const ScratchFile file(".jsonl");
  file.write(data, size);
  std::vector<std::string> documents;
  try {
    documents = documents_of(file);
  } catch (const Error&) {
    return 0;
  }
  std::string lines;
  for (const std::string& document : documents) {
    lines += Json::object().set("text", document).dump() + "\n";
  }
  file.write(lines.data(), lines.size());
  require(documents_of(file) == documents, "jsonl: differs when written and read again");
  return 0;
}
