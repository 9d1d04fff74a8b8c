#include "tessera/data/bpe_trainer.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/thread_pool.h"
#include "tessera/data/gpt2_words.h"
#include "tessera/data/special_tokens.h"

namespace tessera {

namespace {

constexpr size_t kPiece = size_t(4) << 20;  // bytes of text that are worth a task
constexpr int64_t kBytes = 256, kMaxTokens = int64_t(1) << 24;

}  // namespace

BpeTrainer::BpeTrainer(BpeOptions options) : options_(std::move(options)) {
  const auto least = kBytes + int64_t(options_.specials.size());
  if (options_.vocab_size < least || options_.vocab_size > kMaxTokens) {
    fail("bpe: expected a vocabulary of ", least, " (256 bytes and ", options_.specials.size(),
         " specials) to ", kMaxTokens, " tokens, got ", options_.vocab_size);
  }
  check_specials(options_.specials);
}

void BpeTrainer::add(std::string_view text) {
  std::mutex adding;
  const auto count_piece = [&](std::string_view piece) {
    std::unordered_map<std::string_view, int64_t> counts;
    while (!piece.empty()) {
      const size_t length = first_word_length(piece);
      ++counts[piece.substr(0, length)];
      piece.remove_prefix(length);
    }
    const std::lock_guard lock(adding);
    for (const auto& [word, count] : counts) words_[std::string(word)] += count;
  };
  const auto add_part = [&](size_t, std::string_view part) {
    const std::vector<std::string_view> pieces = cut_between_words(part, kPiece);
    thread_pool().parallel_for(int64_t(pieces.size()), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) count_piece(pieces[size_t(i)]);
    });
  };
  cut_at_specials(text, options_.specials, add_part, [](size_t) {});
}

Tokenizer BpeTrainer::train() const {
  std::vector<CountedWord> words;
  for (const auto& [text, count] : words_) words.push_back({text, count});
  std::ranges::sort(words, {}, &CountedWord::text);  // a hash map's order is nobody's
  const int64_t size = options_.vocab_size - int64_t(options_.specials.size());
  TokenTable table = learn_merges(words, size, options_.min_count);
  append_specials(table, options_.specials);
  return Tokenizer(std::move(table), "bpe");
}

}  // namespace tessera
