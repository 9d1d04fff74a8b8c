#include <algorithm>
#include <array>
#include <queue>
#include <unordered_map>
#include <utility>

#include "tessera/data/bpe_trainer.h"
#include "tessera/data/gpt2_words.h"

namespace tessera {

namespace {

// A pair as it was when it went into the heap; its count may have fallen since.
struct Candidate {
  int64_t count;
  TokenPair pair;

  bool operator<(const Candidate& other) const {
    return count != other.count ? count < other.count : pair > other.pair;
  }
};

// Keeps the count of every pair while words shrink, so that a merge costs the words that have the
// pair, not all words.
class Learner {
 public:
  Learner(const std::vector<CountedWord>& words, int64_t size, int64_t min_count)
      : size_(size), min_count_(std::max<int64_t>(min_count, 1)) {
    add_bytes();
    for (const CountedWord& word : words) add_word(word);
    for (const CountedPair& pair : pairs_) heap_.push({pair.count, pair.pair});
  }

  TokenTable learn() {
    while (int64_t(table_.tokens.size()) < size_ && !heap_.empty()) {
      const Candidate best = heap_.top();
      heap_.pop();
      const int64_t count = pairs_[number_of(best.pair)].count;
      if (count == best.count && count >= min_count_) {
        merge(best.pair);
      } else if (count < best.count && count >= min_count_) {
        heap_.push({count, best.pair});
      }
    }
    return std::move(table_);
  }

 private:
  struct Word {
    size_t begin, length;  // in symbols_
    int64_t count;
  };
  struct CountedPair {
    TokenPair pair;
    int64_t count = 0;
    std::vector<int32_t> words = {};  // all that have it, and some that had it
    bool raised = false;              // by the merge at hand
    bool merged = false;
  };

  void add_bytes() {
    for (const uint8_t byte : gpt2_byte_order()) {
      byte_tokens_[byte] = int32_t(table_.tokens.size());
      token_of(std::string(1, char(byte)));
    }
  }

  // Two different pairs may give the same text: one token.
  int32_t token_of(const std::string& text) {
    const auto [place, fresh] = tokens_.emplace(text, int32_t(table_.tokens.size()));
    if (fresh) table_.tokens.push_back(text);
    return place->second;
  }

  void add_word(const CountedWord& word) {
    const auto index = int32_t(words_.size());
    words_.push_back({symbols_.size(), word.text.size(), word.count});
    for (const char c : word.text) symbols_.push_back(byte_tokens_[uint8_t(c)]);
    const size_t begin = words_.back().begin;
    for (size_t i = begin; i + 1 < symbols_.size(); ++i) {
      change({symbols_[i], symbols_[i + 1]}, word.count, index);
    }
  }

  size_t number_of(TokenPair pair) {
    const auto [number, fresh] = numbers_.insert(pair, int32_t(pairs_.size()));
    if (fresh) pairs_.push_back({.pair = pair});
    return size_t(*number);
  }

  void change(TokenPair pair, int64_t by, int32_t word) {
    const size_t number = number_of(pair);
    CountedPair& counted = pairs_[number];
    counted.count += by;
    if (by < 0) return;
    if (counted.words.empty() || counted.words.back() != word) counted.words.push_back(word);
    if (!counted.raised) {
      counted.raised = true;
      raised_.push_back(number);
    }
  }

  void merge(TokenPair pair) {
    const int32_t result =
        token_of(table_.tokens[size_t(pair.left)] + table_.tokens[size_t(pair.right)]);
    CountedPair& counted = pairs_[number_of(pair)];
    // A second time where its tokens came about in another way: nothing new for the table.
    if (!std::exchange(counted.merged, true)) table_.merges.push_back(pair);
    for (const size_t number : raised_) pairs_[number].raised = false;
    raised_.clear();
    const std::vector<int32_t> words = std::exchange(counted.words, {});
    for (const int32_t word : words) merge_in(word, pair, result);
    for (const size_t number : raised_) heap_.push({pairs_[number].count, pairs_[number].pair});
  }

  // Replaces the pair in a word, from left to right. Neighbours lose a pair and gain one.
  void merge_in(int32_t index, TokenPair pair, int32_t result) {
    Word& word = words_[size_t(index)];
    int32_t* symbols = &symbols_[word.begin];
    size_t kept = 0;
    for (size_t i = 0; i < word.length; ++i) {
      const bool here =
          symbols[i] == pair.left && i + 1 < word.length && symbols[i + 1] == pair.right;
      if (!here) {
        symbols[kept++] = symbols[i];
        continue;
      }
      change(pair, -word.count, index);
      if (kept > 0) {
        change({symbols[kept - 1], pair.left}, -word.count, index);
        change({symbols[kept - 1], result}, word.count, index);
      }
      if (i + 2 < word.length) {
        change({pair.right, symbols[i + 2]}, -word.count, index);
        change({result, symbols[i + 2]}, word.count, index);
      }
      symbols[kept++] = result;
      ++i;
    }
    word.length = kept;
  }

  int64_t size_, min_count_;
  TokenTable table_;
  std::unordered_map<std::string, int32_t> tokens_;
  std::array<int32_t, 256> byte_tokens_ = {};
  std::vector<int32_t> symbols_;  // of all words, as they are now
  std::vector<Word> words_;
  PairMap<int32_t> numbers_;  // of pairs_
  std::vector<CountedPair> pairs_;
  std::vector<size_t> raised_;
  std::priority_queue<Candidate> heap_;
};

}  // namespace

TokenTable learn_merges(const std::vector<CountedWord>& words, int64_t size, int64_t min_count) {
  return Learner(words, size, min_count).learn();
}

}  // namespace tessera
