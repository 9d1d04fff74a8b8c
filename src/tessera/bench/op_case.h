// A line about one op: operands, the expression, and one plain loop nest, which computes in f32 for
// the column "plain" and in f64 for the reference.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tessera/bench/case.h"
#include "tessera/bench/movers.h"
#include "tessera/bench/tessera_contenders.h"

namespace tessera::bench {

struct Operand {
  Shape shape;
  std::vector<float> values;  // row-major
  DType dtype = DType::f32;   // of the tensor: values are converted
};

using Operands = std::vector<Operand>;
using Floats = std::vector<std::vector<float>>;  // one per output
using Doubles = std::vector<std::vector<double>>;

struct Loop {
  void (*single)(const Operands& in, Floats& out);
  void (*exact)(const Operands& in, Doubles& out);
};

// Of a generic lambda without captures, (const Operands&, auto& out).
template <class F>
Loop loop_of(F) {
  return {[](const Operands& in, Floats& out) { F{}(in, out); },
          [](const Operands& in, Doubles& out) { F{}(in, out); }};
}

struct Output {
  int64_t size;
  double tolerance;  // ulps
  Unit unit = Unit::largest;
};

struct OpCase {
  std::string suite, name;
  std::function<Operands()> operands;
  TensorFunction apply;
  Loop loop;
  std::vector<Output> outputs;
  std::vector<Moved> moved = {};  // the bytes that must be moved; none: no column "bytes"
  double flops = 0;               // of multiply-adds; where it is given, they are the limit
  bool slow = false;
  bool plain = true;  // false: the plain loop takes too long to be timed
  CompileOptions options = {};
  int copies = 1;  // of all operands and results, taken in turn; not by the plain loop
};

// The same with so many copies that no cache holds what a run needs.
OpCase cold(OpCase op);

Case to_case(OpCase op);

// `n` numbers in [low, high), the same in every run.
std::vector<float> make_data(int64_t n, double low, double high, uint64_t seed);

}  // namespace tessera::bench
