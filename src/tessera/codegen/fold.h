// Reductions as text: each lane folds its own points, then the group folds the lanes by a tree in
// local memory.
#pragma once

#include <string>

#include "tessera/codegen/dialect.h"
#include "tessera/kernel/kernel_ir.h"

namespace tessera {

class FoldWriter {
 public:
  FoldWriter(const KernelIR& ir, const Dialect& dialect, int group_size)
      : ir_(ir), dialect_(dialect), group_size_(group_size) {}

  std::string scratch() const;     // the arrays in local memory, declared once per kernel
  std::string start(int i) const;  // before the loop over `col`
  std::string step(int i) const;   // inside it
  std::string end(int i) const;    // after it: defines register i in every lane

 private:
  const IrInst& inst(int i) const { return ir_.insts[size_t(i)]; }
  DType value_type(int i) const { return inst(inst(i).args[0]).dtype; }
  bool is_argmax(int i) const { return inst(i).reduce == ReduceOp::argmax; }
  std::string values(int i) const;  // the array of partial results
  std::string join(int i) const;

  const KernelIR& ir_;
  const Dialect& dialect_;
  int group_size_;
};

}  // namespace tessera
