// Random numbers: a key and a counter in Vars, so that every replay of a compiled step draws new
// numbers, a resumed run draws the same, and every backend draws equal bits.
#pragma once

#include "tessera/tensor/var.h"

namespace tessera {

class Random {
 public:
  explicit Random(int64_t seed, std::string name = "random");

  Tensor uniform(const Shape& shape, double low = 0, double high = 1) const;  // f32 in [low, high)
  Tensor normal(const Shape& shape, double mean = 0, double deviation = 1) const;
  Tensor bernoulli(const Shape& shape, double probability) const;  // bool
  // Integers in [low, high), which spans at most 2^48.
  Tensor randint(const Shape& shape, int64_t low, int64_t high, DType dtype = DType::i64) const;
  // 0 … n - 1 in random order, i64.
  Tensor permutation(int64_t n) const;
  // Classes drawn by weights (…, C) that are not negative and need not sum to 1 -> (…, n) i64.
  // Without replacement no class comes twice; those of weight 0 come last, when no other is left.
  Tensor multinomial(const Tensor& weights, int64_t n, bool replacement = false) const;

  // Zeroes elements with `probability` and scales the others up; the identity outside training.
  Tensor dropout(const Tensor& x, double probability) const;

  // Where the next n numbers of uniform() come from, for an op that draws them itself.
  struct Stream {
    Tensor key, offset;  // 0-d i64
  };
  Stream take(int64_t n) const;
  // Whether dropout does anything now; checks the probability.
  static bool drops(double probability);

  const Var& key() const { return key_; }
  const Var& counter() const { return counter_; }

 private:
  Tensor draw(const Shape& shape) const;
  Tensor draw_integers(const Shape& shape) const;  // i64 in [0, 2^48)
  Tensor take_counters(int64_t n) const;

  // The counter as the host last knew it: outside a trace a draw then needs no read from the
  // device, and keeps its numbers however long it stays unevaluated.
  struct Mirror;

  Var key_, counter_;  // 0-d i64
  std::shared_ptr<Mirror> mirror_;
};

}  // namespace tessera
