// How random_program makes its programs: a pool of values that grows by one op after the other,
// each kept only where rounding cannot decide what comes out of it.
#pragma once

#include <algorithm>

#include "compile/random_program.h"

namespace tessera {

inline bool is_number(const Value& v) { return v.dtype() != DType::boolean; }
inline bool is_real(const Value& v) { return is_float(v.dtype()); }
inline bool is_any(const Value&) { return true; }
inline bool has_axis(const Value& v) { return v.shape().rank() > 0; }

// Whether a cast to `dtype` is defined for every element.
bool casts(const Array& from, DType dtype);

class RandomGenerator {
 public:
  explicit RandomGenerator(uint64_t seed) : random_(seed) {
    for (uint64_t i = 0; i < kSamples; ++i) samples_.emplace_back(i);
  }

  RandomProgram run();

  static constexpr int kSamples = 5;  // runs of the reference; the first is undisturbed
  static constexpr int64_t kMostElements = 1500;

 private:
  using Values = std::vector<Value>;
  using Step = Values (RandomGenerator::*)();

  // Choices.
  DType dtype();
  int64_t extent();
  Shape shape();
  int axis_of(const Value& v) { return int(random_.below(v.shape().rank())); }
  template <class Predicate>
  Value pick(Predicate accept, DType otherwise = DType::f64);
  Value partner(const Value& a);  // broadcasts with it and has its dtype
  Value like(const Type& type);
  Value leaf(const Type& type, int64_t below = 0);
  Value index(const Shape& shape, int64_t extent);

  // One op each.
  Values unary();
  Values positive();
  Values binary();
  Values divide();
  Values compare();
  Values logical();
  Values choose();
  Values convert();
  Values fold();
  Values first_greatest();
  Values change_shape();
  Values transpose();
  Values repeat();
  Values cut();
  Values surround();
  Values join();
  Values look_up();
  Values windows();
  Values add_at();
  Values put_at();
  Values cut_at();
  Values replace_at();
  Values product();
  Values running_total();
  Values order();
  Values soft_maximum();
  Values normalize();
  Values count();
  Values draw();
  Values literal();
  Values mark();
  Values own_gradient();
  Values input();

  void step();
  void region();
  bool admit(const Value& v);
  void add_gradients();
  void add_assigns();
  double spread(const Value& v);

  RandomSource random_;
  std::vector<Disturbed> samples_;
  RandomProgram program_;
  Values pool_;
  std::vector<uint64_t> regions_;  // the open ones
  uint64_t region_count_ = 0;
};

template <class Predicate>
Value RandomGenerator::pick(Predicate accept, DType otherwise) {
  for (int attempt = 0; attempt < 12 && !pool_.empty(); ++attempt) {
    const int64_t n = int64_t(pool_.size());
    const int64_t i =
        random_.chance(0.5) ? random_.below(n) : n - 1 - random_.below(std::min<int64_t>(n, 4));
    if (accept(pool_[size_t(i)])) return pool_[size_t(i)];
  }
  for (;;) {
    const Type type{otherwise, shape()};
    const Value v = leaf(type);
    if (accept(v)) return v;
  }
}

}  // namespace tessera
