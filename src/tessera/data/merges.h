// Applies merges to one word.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/data/pair_map.h"

namespace tessera {

class Merges {
 public:
  // The pair of lower rank is merged first.
  void add(TokenPair pair, int32_t rank, int32_t result) { steps_.insert(pair, {rank, result}); }
  bool contains(TokenPair pair) const { return steps_.find(pair) != nullptr; }
  bool empty() const { return steps_.size() == 0; }

  // Appends to `out` what is left of `word` when its best pair (the lowest rank, of those the
  // leftmost) has been replaced by its result until there is none. O(n log n) for n tokens.
  void apply(std::span<const int32_t> word, std::vector<int32_t>& out) const;

 private:
  struct Step {
    int32_t rank, result;
  };

  PairMap<Step> steps_;
};

}  // namespace tessera
