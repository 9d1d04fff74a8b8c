// Whether something computed the right thing, before anybody times it.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "tessera/conformance/harness.h"

namespace tessera::bench {

// One output of a line as it should be, by a plain loop in f64.
struct Expected {
  std::vector<double> values;
  std::vector<int64_t> positions = {};  // of the values in the output; empty: all of it
  double tolerance = 0;                 // ulps of dtype
  Unit unit = Unit::largest;
  DType dtype = DType::f32;
};

// What was computed: one vector per output, every dtype as f32.
using Outputs = std::vector<std::vector<float>>;

struct Check {
  std::string column;               // who computed it
  double error = 0, tolerance = 0;  // ulps, of the output that is nearest to failing
  int64_t elements = 0;             // compared
  bool passed() const { return error <= tolerance; }  // NaN fails
};

Check compare(std::string column, const Outputs& actual, const std::vector<Expected>& expected);

// Places spread over [0, n): all of them, or about `most`, in steps that hit every column.
std::vector<int64_t> sample_positions(int64_t n, int64_t most);

// A tolerance of the op table: info(op).ulp, times √terms where the rounding of `terms` adds up.
double tolerance_of(Op op, double terms = 1);

}  // namespace tessera::bench
