#include "tessera/data/merges.h"

#include <functional>
#include <queue>
#include <tuple>

namespace tessera {

namespace {

// A token of the word, linked to its neighbours; -1: none. A token that was merged into the one
// before it is -1 itself.
struct Symbol {
  int32_t token, before, after;
};

struct Candidate {
  int32_t rank, at;  // `at`: the left symbol
  TokenPair pair;    // as it was when this was found; it may have changed since

  bool operator>(const Candidate& other) const {
    return std::tie(rank, at) > std::tie(other.rank, other.at);
  }
};

}  // namespace

void Merges::apply(std::span<const int32_t> word, std::vector<int32_t>& out) const {
  const auto count = int32_t(word.size());
  std::vector<Symbol> symbols(word.size());
  for (int32_t i = 0; i < count; ++i) {
    symbols[size_t(i)] = {word[size_t(i)], i - 1, i + 1 < count ? i + 1 : -1};
  }
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
  const auto offer = [&](int32_t at) {
    if (at < 0 || symbols[size_t(at)].after < 0) return;
    const Symbol& left = symbols[size_t(at)];
    const TokenPair pair = {left.token, symbols[size_t(left.after)].token};
    if (const Step* step = steps_.find(pair)) queue.push({step->rank, at, pair});
  };
  for (int32_t i = 0; i < count; ++i) offer(i);
  while (!queue.empty()) {
    const Candidate best = queue.top();
    queue.pop();
    Symbol& left = symbols[size_t(best.at)];
    if (left.token != best.pair.left || left.after < 0) continue;
    Symbol& right = symbols[size_t(left.after)];
    if (right.token != best.pair.right) continue;
    left.token = steps_.find(best.pair)->result;
    right.token = -1;
    left.after = right.after;
    if (left.after >= 0) symbols[size_t(left.after)].before = best.at;
    offer(left.before);
    offer(best.at);
  }
  for (const Symbol& symbol : symbols) {
    if (symbol.token >= 0) out.push_back(symbol.token);
  }
}

}  // namespace tessera
