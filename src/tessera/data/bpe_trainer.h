// Learns a byte-level BPE: starting from the 256 bytes, the pair of tokens that is most frequent
// inside words becomes a token, until the vocabulary is full.
//
// Deterministic: of equally frequent pairs, the one of smaller numbers is taken (left first), and
// nothing depends on the number of threads or the order of the texts. Numbers as GPT-2 gives them:
// bytes in gpt2_byte_order(), then merges in the order they were found; specials last.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tessera/data/tokenizer.h"

namespace tessera {

struct BpeOptions {
  int64_t vocab_size = 4096;  // bytes, merges and specials together
  int64_t min_count = 2;      // a pair that occurs less often is not merged
  std::vector<std::string> specials = {};
};

class BpeTrainer {
 public:
  // Throws for a vocabulary without room for the bytes and the specials, or beyond 2^24.
  explicit BpeTrainer(BpeOptions options);

  // Counts the words of a text, on the process-wide pool when it is long. May be called again with
  // more; the text need not stay.
  void add(std::string_view text);

  // The vocabulary is smaller than asked for when the pairs run out.
  Tokenizer train() const;

 private:
  BpeOptions options_;
  std::unordered_map<std::string, int64_t> words_;
};

// A word and how often it occurs.
struct CountedWord {
  std::string_view text;
  int64_t count;
};

// The merges that training finds in these words, the first first, as a table without specials of
// at most `size` tokens.
TokenTable learn_merges(const std::vector<CountedWord>& words, int64_t size, int64_t min_count);

}  // namespace tessera
