// Which instances become one kernel; the first half of `fuse`.
#pragma once

#include <vector>

#include "tessera/compile/instances.h"

namespace tessera {

// Bounds on one kernel: beyond them compile time and register pressure grow, and nothing is gained.
inline constexpr size_t kMaxGroupMembers = 64;
inline constexpr size_t kMaxGroupReads = 96;
// A kernel over one point is all launch: it may be so many times larger, where a kernel of the
// target has parameters for that.
inline constexpr size_t kPointTimes = 4;

struct Group {
  std::vector<int> members;  // instances, increasing
  Shape domain;              // generated kernels: what elem-level members range over
  Dims axes;                 // the axes that its reductions fold; empty: a map
  bool generated = false;    // false: one instance run by a named kernel
};

struct Grouping {
  std::vector<Group> groups;  // in topological order
  std::vector<int> group_of;  // per instance; -1: leaf, constant, or nothing to compute
  std::vector<char> row;      // per instance: one value per row instead of per element
};

// Shape with the axes set to 1.
Shape reduced_shape(const Shape& shape, const Dims& axes);

// An operand that is addressed in a way of its own (gathered, padded, 0-d): it must come from
// memory.
bool is_addressed(Op op, size_t input);

// `parameters`: how many operands a kernel of the target may have for certain.
Grouping group_instances(const Instances& instances, bool fuse, int64_t parameters = 0);

}  // namespace tessera
