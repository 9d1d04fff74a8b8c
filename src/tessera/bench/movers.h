// Loops on all threads that move bytes and compute nothing worth mentioning: the yardstick of
// whatever is bound by memory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "tessera/bench/case.h"

namespace tessera::bench {

enum class Move : uint8_t { read, write, copy, add };  // add: two arrays read, one written

struct Moved {
  Move how;
  int64_t floats;  // of each array
};

double bytes_of(const Moved& moved);

// Moves each of `parts` once per call. They read the same arrays and each writes its own, as an op
// does that has several results; of several copies of all arrays each call takes the next. Stores
// past the caches where that was faster in a short trial.
class Mover {
 public:
  explicit Mover(std::vector<Moved> parts, int copies = 1);
  void operator()() const;
  bool is_past() const { return past_; }

 private:
  using Array = std::unique_ptr<float[], void (*)(void*)>;
  struct Arrays {
    Array a, b;
    std::vector<Array> d;  // one a part
  };

  static Array make_array(int64_t floats);
  void run(bool past) const;

  std::vector<Moved> parts_;
  std::vector<Arrays> copies_;
  mutable size_t next_ = 0;
  bool past_ = false;
};

// A contender of the column "bytes".
Contender move_bytes(std::vector<Moved> parts, int copies = 1);

}  // namespace tessera::bench
