// Tokenizers as HuggingFace's tokenizer.json, and GPT-2's own two files.
//
// Written and read (docs/data.md has the details):
//   bytes, BPE    model BPE over GPT-2's spelling of bytes, pre-tokenizer and decoder ByteLevel
//   characters    model BPE without merges, no pre-tokenizer, decoder Fuse
// Reading checks every field. A file that asks for something else (another model, a normalizer,
// another pattern) is refused with a sentence that says what was found: encoding it nearly right
// would be worse.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "tessera/data/tokenizer.h"

namespace tessera {

Tokenizer load_tokenizer(const std::filesystem::path& path);
// Replaces `path` atomically.
void save_tokenizer(const std::filesystem::path& path, const Tokenizer& tokenizer);

// The same without a file; `name` stands for it in errors.
Tokenizer parse_tokenizer(std::string_view json, std::string_view name);
std::string format_tokenizer(const Tokenizer& tokenizer);

// vocab.json and merges.txt as OpenAI published them. "<|endoftext|>" is special.
Tokenizer load_gpt2_tokenizer(const std::filesystem::path& vocab,
                              const std::filesystem::path& merges);

}  // namespace tessera
