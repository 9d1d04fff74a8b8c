// Element addresses, masks and the coordinates they need, as C text over linear indices.
#pragma once

#include <array>
#include <string>

#include "tessera/kernel/kernel_ir.h"

namespace tessera {

// Renders addresses for one kernel. A map walks one linear index, `point`; a kernel with reductions
// walks `row` over the outer and `col` over the inner domain. Where an operand's strides allow, the
// address is a multiple of the linear index; else it is a sum over coordinates d0, d1, …, and the
// object remembers which of them it named, so that exactly those get declared.
//
// `point` or `col` may stand for several neighbours, of which `v` is the number; they never cross
// the end of the fastest dimension, so the coordinate there is d + v and the others are the same.
class Addressing {
 public:
  explicit Addressing(const KernelIR& ir);

  // Whether addresses and masks name `v` from now on.
  void set_neighbours(bool several) { several_ = several; }

  // offset + Σ coordinate · strides, and the indexed load's own term.
  std::string address(const IrInst& inst, const std::string& index_register);

  // The condition of a masked load; empty when it always holds.
  std::string mask(const IrInst& inst);

  // Declarations, one a line, of the coordinates named so far out of the linear index `variable`;
  // they count as not named afterwards.
  std::string take_coordinates(std::string_view variable, const std::string& indent);

  // How many points the linear index `variable` walks, as C text over extent0.
  std::string count(std::string_view variable) const;

 private:
  // A run of dimensions that one linear index walks.
  struct Walk {
    std::string_view variable;
    int begin, end;
  };

  const Walk* walk_of(int dim) const;
  bool is_unit(int dim) const;  // its coordinate is always 0
  bool is_alone(const Walk& walk, int dim) const;
  bool is_linear(const Walk& walk, const Dims& strides, int64_t& step) const;
  std::string coordinate(int dim);
  std::string linear(const Walk& walk) const;
  bool moves_with_neighbours(const Walk& walk) const;

  const KernelIR& ir_;
  std::array<Walk, 2> walks_;
  std::array<bool, kMaxRank> named_ = {};
  bool several_ = false;
};

}  // namespace tessera
