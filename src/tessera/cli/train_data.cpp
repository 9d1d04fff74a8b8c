#include "tessera/cli/train_data.h"

#include <algorithm>

#include "tessera/data/bpe_trainer.h"
#include "tessera/data/character_trainer.h"
#include "tessera/data/text_files.h"
#include "tessera/data/tokenizer_file.h"

namespace tessera::cli {

namespace {

constexpr std::string_view kEndOfText = "<|endoftext|>";
constexpr int64_t kBpeTokens = 4096, kGpt2Tokens = 50257;

using Paths = std::vector<std::filesystem::path>;

bool is_token_file(const std::filesystem::path& path) { return path.extension() == ".bin"; }

template <class Trainer>
Tokenizer train_on(Trainer trainer, const Paths& files) {
  for_each_document(files, [&](std::string_view text) { trainer.add(text); });
  return trainer.train();
}

Tokenizer make_tokenizer(const TrainConfig& config, const Paths& files) {
  if (config.tokenizer == "byte") return byte_tokenizer();
  if (config.tokenizer == "char") return train_on(CharacterTrainer(), files);
  if (config.tokenizer == "bpe") {
    const int64_t size = config.vocab > 0 ? config.vocab : kBpeTokens;
    return train_on(BpeTrainer({.vocab_size = size, .specials = {std::string(kEndOfText)}}), files);
  }
  if (config.tokenizer.ends_with(".json")) return load_tokenizer(config.tokenizer);
  throw UsageError(cat("train: --tokenizer expects char, byte, bpe or a .json file, got '",
                       config.tokenizer, "'"));
}

std::optional<int64_t> end_token_of(const Tokenizer& tokenizer) {
  const TokenTable& table = tokenizer.table();
  for (const int32_t special : table.specials) {
    if (table.tokens[size_t(special)] == kEndOfText) return special;
  }
  return std::nullopt;
}

TrainData split(const TokenData& all, const TrainConfig& config, std::optional<Tokenizer> tokenizer,
                int64_t vocabulary) {
  auto [training, held_out] = all.split(config.held_out);
  std::optional<int64_t> end_token;
  if (tokenizer) end_token = end_token_of(*tokenizer);
  return {training, held_out, std::move(tokenizer), vocabulary, end_token};
}

TrainData open_token_files(const TrainConfig& config, const Paths& files) {
  if (config.tokenizer.ends_with(".json")) {
    const Tokenizer tokenizer = load_tokenizer(config.tokenizer);
    return split(TokenData::open(files, tokenizer.size()), config, tokenizer, tokenizer.size());
  }
  const int64_t vocabulary = config.vocab > 0 ? config.vocab : kGpt2Tokens;
  return split(TokenData::open(files, vocabulary), config, std::nullopt, vocabulary);
}

}  // namespace

TrainData open_train_data(const TrainConfig& config, const std::filesystem::path& run, bool made) {
  const Paths files(config.data.begin(), config.data.end());
  if (files.empty()) throw UsageError("train: expected --data FILE, got none");
  const auto binary = std::ranges::count_if(files, is_token_file);
  if (binary == std::ssize(files)) return open_token_files(config, files);
  if (binary > 0) throw UsageError("train: expected token files or texts as data, got both");
  const std::filesystem::path tokens = run / "tokens.bin", table = run / "tokenizer.json";
  if (!made || !std::filesystem::exists(table)) {  // which is written last
    const Tokenizer tokenizer = make_tokenizer(config, files);
    TokenWriter writer(tokens);
    tokenize_files(files, tokenizer, end_token_of(tokenizer) ? kEndOfText : "",
                   [&](std::span<const int32_t> some) { writer.write(some); });
    writer.finish();
    save_tokenizer(table, tokenizer);
  }
  const Tokenizer tokenizer = load_tokenizer(table);
  return split(TokenData::open({tokens}, tokenizer.size()), config, tokenizer, tokenizer.size());
}

}  // namespace tessera::cli
