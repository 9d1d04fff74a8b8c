#include "tessera/data/text_files.h"

#include <algorithm>
#include <optional>

#include "tessera/base/error.h"
#include "tessera/io/json.h"
#include "tessera/io/mapped_file.h"

namespace tessera {

namespace {

void for_each_line(const std::filesystem::path& path, std::string_view text, std::string_view field,
                   const std::function<void(std::string_view)>& use) {
  int64_t number = 1;
  for (size_t begin = 0; begin < text.size(); ++number) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    if (line.find_first_not_of(" \t\r") != std::string_view::npos) {
      const std::string place = cat("'", path.native(), "': line ", number, " at byte ", begin);
      const Json document = Json::parse(line, place, "jsonl");
      const Json& content = document[field];
      if (!content.is_string()) {
        fail("jsonl: ", place, ": expected a text ", quote_for_error(field), ", got ",
             content.describe());
      }
      use(content.as_string());
    }
    begin = end + 1;
  }
}

}  // namespace

void for_each_document(const std::vector<std::filesystem::path>& paths,
                       const std::function<void(std::string_view)>& use, std::string_view field) {
  for (const std::filesystem::path& path : paths) {
    const MappedFile file(path);
    const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()),
                                file.bytes().size());
    if (path.extension() == ".jsonl") {
      for_each_line(path, text, field, use);
    } else {
      use(text);
    }
  }
}

void tokenize_files(const std::vector<std::filesystem::path>& paths, const Tokenizer& tokenizer,
                    std::string_view end_of_text,
                    const std::function<void(std::span<const int32_t>)>& use,
                    std::string_view field) {
  std::optional<int32_t> end;
  if (!end_of_text.empty()) end = tokenizer.special(end_of_text);
  const auto tokenize = [&](std::string_view document) {
    std::vector<int32_t> tokens = tokenizer.encode(document);
    if (end) tokens.push_back(*end);
    use(tokens);
  };
  for_each_document(paths, tokenize, field);
}

}  // namespace tessera
