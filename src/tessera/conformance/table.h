// The conformance table: one row per op, from which conformance_test.cpp derives values, gradients,
// fusion and special values in every dtype, odd shape and layout. A new elementwise op is one line
// in table.cpp.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tessera/graph/node.h"

namespace tessera {

// Where the elements of an input come from. Integers and bool take no notice of the range, except
// for Pick::index.
enum class Pick : uint8_t {
  smooth,   // any number of the range
  apart,    // not near 0, where the op has a kink
  coarse,   // multiples of 1/2: equal operands occur, and rounding never carries one over a jump
  between,  // multiples of 1/2 plus 1/4: away from every integer
  index,    // integers from low to high - 1
};

struct Domain {
  double low, high;
  Pick pick = Pick::smooth;
};

enum class Element : uint8_t { operand, compute, index, boolean };  // of the row's dtype, or fixed

struct Input {
  Shape shape;
  Domain domain;
  Element element = Element::operand;
};

using Build = std::function<std::vector<Value>(const std::vector<Value>& in)>;

// How an op is applied to inputs of certain shapes.
struct Case {
  std::string name;
  std::vector<Input> inputs;
  Build build;
  double growth = 1;  // of info(op).ulp: √terms where rounding errors add up, 0 where all is exact
};

// An independent definition of a scalar function.
using Exact = double (*)(double a, double b);

inline constexpr double kStep = 1e-5;

struct Row {
  Op op;
  std::function<bool(DType)> takes;
  std::function<std::vector<Case>(DType)> cases;
  Exact exact = nullptr;
  double step = kStep;  // of finite differences; large where values are rounded but linear
  bool stops = false;   // passes no gradient although the value depends on its input
};

const std::vector<Row>& rows();

inline DType dtype_of_element(Element element, DType operand) {
  switch (element) {
    case Element::compute: return compute_type(operand);
    case Element::index: return DType::i64;
    case Element::boolean: return DType::boolean;
    default: return operand;
  }
}

}  // namespace tessera
