// Documents in text files.
//
//   .jsonl      each line a JSON object whose member `field` is a document; empty lines are skipped
//   any other   the whole file is one document
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/data/token_data.h"
#include "tessera/data/tokenizer.h"

namespace tessera {

// In the order of the files and lines. Each view is valid during the call. Throws, with the file
// and the byte, for a line that has no such member.
void for_each_document(const std::vector<std::filesystem::path>& paths,
                       const std::function<void(std::string_view)>& use,
                       std::string_view field = "text");

// The tokens of all documents, each followed by `end_of_text`, a special token, unless that is
// empty. They go to `use` document by document.
void tokenize_files(const std::vector<std::filesystem::path>& paths, const Tokenizer& tokenizer,
                    std::string_view end_of_text,
                    const std::function<void(std::span<const int32_t>)>& use,
                    std::string_view field = "text");

}  // namespace tessera
