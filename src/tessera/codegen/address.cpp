#include "tessera/codegen/address.h"

#include <limits>

namespace tessera {

namespace {

// Appends `variable · step` to a sum.
void add_term(std::string& sum, const std::string& variable, int64_t step) {
  if (step == 0) return;
  const bool negative = step < 0;
  // As unsigned: the magnitude of the lowest int64_t is not an int64_t.
  const uint64_t magnitude = negative ? uint64_t{0} - uint64_t(step) : uint64_t(step);
  if (sum.empty()) {
    if (negative) sum += "-";
  } else {
    sum += negative ? " - " : " + ";
  }
  const bool is_sum = variable.find('+') != std::string::npos;
  sum += is_sum && (magnitude != 1 || negative) ? cat("(", variable, ")") : variable;
  if (magnitude != 1) sum += cat(" * ", magnitude);
}

void add_offset(std::string& sum, int64_t offset) {
  if (sum.empty()) {
    sum = cat(offset);
  } else if (offset != 0) {
    sum += offset < 0 ? cat(" - ", uint64_t{0} - uint64_t(offset)) : cat(" + ", offset);
  }
}

}  // namespace

Addressing::Addressing(const KernelIR& ir) : ir_(ir) {
  const int rank = ir.extents.rank();
  if (ir.is_map()) {
    walks_ = {{{"point", 0, rank}, {"", rank, rank}}};
  } else {
    walks_ = {{{"row", 0, ir.inner}, {"col", ir.inner, rank}}};
  }
}

const Addressing::Walk* Addressing::walk_of(int dim) const {
  return dim < walks_[0].end ? &walks_[0] : &walks_[1];
}

// extents[0] is a run-time argument, so it counts as large whatever it is now.
bool Addressing::is_unit(int dim) const { return dim > 0 && ir_.extents[dim] == 1; }

bool Addressing::is_alone(const Walk& walk, int dim) const {
  for (int i = walk.begin; i < walk.end; ++i) {
    if (i != dim && !is_unit(i)) return false;
  }
  return true;
}

bool Addressing::is_linear(const Walk& walk, const Dims& strides, int64_t& step) const {
  int64_t expected = 0;
  bool first = true;
  for (int i = walk.end - 1; i >= walk.begin; --i) {
    if (is_unit(i)) continue;
    if (first) step = expected = strides[i];
    if (strides[i] != expected) return false;
    first = false;
    // The leftmost extent does not matter, and extents[0] must not: it is no part of the text.
    if (i > walk.begin && __builtin_mul_overflow(expected, ir_.extents[i], &expected)) return false;
  }
  if (first) step = 0;
  return true;
}

bool Addressing::moves_with_neighbours(const Walk& walk) const {
  return several_ && walk.variable != "row";
}

std::string Addressing::linear(const Walk& walk) const {
  return cat(walk.variable, moves_with_neighbours(walk) ? " + v" : "");
}

std::string Addressing::coordinate(int dim) {
  const Walk& walk = *walk_of(dim);
  if (is_alone(walk, dim)) return linear(walk);
  named_[size_t(dim)] = true;
  bool is_fastest = true;
  for (int i = dim + 1; i < walk.end; ++i) is_fastest = is_fastest && is_unit(i);
  return cat("d", dim, is_fastest && moves_with_neighbours(walk) ? " + v" : "");
}

std::string Addressing::address(const IrInst& inst, const std::string& index_register) {
  std::string sum;
  for (const Walk& walk : walks_) {
    int64_t step = 0;
    if (is_linear(walk, inst.strides, step)) {
      add_term(sum, linear(walk), step);
      continue;
    }
    for (int i = walk.begin; i < walk.end; ++i) {
      if (!is_unit(i) && inst.strides[i] != 0) add_term(sum, coordinate(i), inst.strides[i]);
    }
  }
  if (inst.indexed) add_term(sum, index_register, inst.index_stride);
  add_offset(sum, inst.offset);
  return sum;
}

std::string Addressing::mask(const IrInst& inst) {
  std::string condition;
  auto require = [&condition](const std::string& text) {
    condition += condition.empty() ? text : cat(" && ", text);
  };
  const int dims = inst.level == IrLevel::row ? ir_.inner : ir_.extents.rank();
  for (int i = 0; i < dims; ++i) {
    const bool is_open = inst.high[i] == std::numeric_limits<int64_t>::max();
    const bool bounded = is_open || (i > 0 && inst.high[i] >= ir_.extents[i]);
    if (is_unit(i)) {
      if (inst.low[i] > 0 || inst.high[i] <= 0) return "false";
      continue;
    }
    if (inst.low[i] > 0) require(cat(coordinate(i), " >= ", inst.low[i]));
    if (!bounded) require(cat(coordinate(i), " < ", inst.high[i]));
  }
  return condition;
}

std::string Addressing::take_coordinates(std::string_view variable, const std::string& indent) {
  std::string text;
  for (const Walk& walk : walks_) {
    if (walk.variable != variable) continue;
    int64_t below = 1;  // points of the dimensions right of the one at hand
    for (int i = walk.end - 1; i >= walk.begin; --i) {
      if (named_[size_t(i)]) {
        text += cat(indent, "const idx d", i, " = ", variable);
        if (below != 1) text += cat(" / ", below);
        if (i != walk.begin) text += cat(" % ", ir_.extents[i]);
        text += ";\n";
        named_[size_t(i)] = false;
      }
      if (i > 0) below *= ir_.extents[i];
    }
  }
  return text;
}

std::string Addressing::count(std::string_view variable) const {
  for (const Walk& walk : walks_) {
    if (walk.variable != variable) continue;
    const bool run_time = walk.begin == 0 && walk.end > 0;
    int64_t fixed = 1;
    for (int i = walk.begin; i < walk.end; ++i) fixed *= i == 0 ? 1 : ir_.extents[i];
    if (!run_time) return cat(fixed);
    return fixed == 1 ? "extent0" : cat("extent0 * ", fixed);
  }
  return "1";
}

}  // namespace tessera
