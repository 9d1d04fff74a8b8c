// Decisions of a random test: a stream of numbers that a seed gives again in every run and on every
// machine.
#pragma once

#include <cstdlib>
#include <string>
#include <vector>

#include "tessera/base/philox.h"

namespace tessera {

class RandomSource {
 public:
  explicit RandomSource(uint64_t seed) : seed_(seed) {}

  double unit() { return double(unit_float(philox(seed_, next_++)[0])); }  // in [0, 1)
  int64_t below(int64_t n) { return int64_t(unit() * double(n)); }
  int64_t between(int64_t low, int64_t high) { return low + below(high - low + 1); }
  bool chance(double probability) { return unit() < probability; }

  template <class T>
  const T& pick(const std::vector<T>& from) {
    return from[size_t(below(int64_t(from.size())))];
  }

 private:
  uint64_t seed_, next_ = 0;
};

// The seeds to try: `count` of them from 1 on, or what TESSERA_FUZZ_FIRST and TESSERA_FUZZ_COUNT
// ask for.
struct SeedRange {
  uint64_t first, end;
};
inline SeedRange seed_range(uint64_t count) {
  const char* first = std::getenv("TESSERA_FUZZ_FIRST");
  const char* asked = std::getenv("TESSERA_FUZZ_COUNT");
  const uint64_t begin = first == nullptr ? 1 : std::stoull(first);
  return {begin, begin + (asked == nullptr ? count : std::stoull(asked))};
}

}  // namespace tessera
