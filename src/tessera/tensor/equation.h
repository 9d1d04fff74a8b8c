// An einsum equation, read against the shapes of its operands.
#pragma once

#include <map>
#include <string_view>
#include <vector>

#include "tessera/base/shape.h"

namespace tessera {

// A label names an axis: the letter's code, or -1, -2, … for the axes of "...", from the right.
using Labels = std::vector<int>;

struct Equation {
  std::vector<Labels> operands;    // a label per axis
  Labels result;                   // each label once
  std::map<int, int64_t> extents;  // of every label; an axis of extent 1 gives way to the others
};

// Throws an error that shows the equation and says what is wrong with it, or with the shapes.
Equation parse_equation(std::string_view text, const std::vector<Shape>& shapes);

// That error, for what only the contraction finds out.
[[noreturn]] void refuse_equation(std::string_view text, const std::string& reason);

}  // namespace tessera
