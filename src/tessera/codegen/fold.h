// Reductions as text: each lane folds its own points, then the lanes that share a row fold theirs,
// in an order that the text fixes; every one of them has the result then. Partial results of a
// kernel that is split go through a scratch buffer.
#pragma once

#include <string>
#include <vector>

#include "tessera/codegen/dialect.h"
#include "tessera/codegen/plan.h"

namespace tessera {

class FoldWriter {
 public:
  FoldWriter(const KernelIR& ir, const Dialect& dialect, const Plan& plan)
      : ir_(ir), dialect_(dialect), plan_(plan) {}

  std::string shared_arrays() const;  // in local memory, declared once per kernel

  std::string start(int i, const std::string& indent) const;  // before the loop
  std::string step(int i, const std::string& position, const std::string& indent) const;
  // After the loop: folds over the lanes of a row.
  std::string end(const std::vector<int>& reduces, const std::string& indent) const;

  // To and from the scratch buffer, where `place` is the index of one row's and split's values.
  int scratch_values() const;
  std::string write_partial(const std::string& place, const std::string& indent) const;
  std::string step_partial(const std::string& place, const std::string& indent) const;

 private:
  // What a reduction carries: a value, and for argmax its position too.
  struct Carried {
    std::string variable;
    DType dtype;
  };
  std::vector<Carried> carried(int i) const;
  std::vector<Carried> carried(const std::vector<int>& reduces) const;

  const IrInst& inst(int i) const { return ir_.insts[size_t(i)]; }
  DType value_type(int i) const { return inst(inst(i).args[0]).dtype; }
  bool is_argmax(int i) const { return inst(i).reduce == ReduceOp::argmax; }
  bool shuffles() const { return dialect_.warp > 0 && plan_.spread == Spread::rows; }

  std::string join(int i, const std::string& indent) const;
  template <class Source>  // (all carried values, which one) -> expression of the other's
  std::string join_all(const std::vector<int>& reduces, const std::string& indent,
                       Source source) const;
  std::string shuffle(const std::vector<int>& reduces, int width, bool for_all,
                      const std::string& indent) const;
  std::string through_memory(const std::vector<int>& reduces, int entries,
                             const std::string& indent) const;
  std::string across_groups(const std::vector<int>& reduces, const std::string& indent) const;
  std::string array(const std::vector<Carried>& all, size_t k) const;
  std::string slot(const std::string& part) const;
  std::string scratch(size_t k, DType dtype) const;

  const KernelIR& ir_;
  const Dialect& dialect_;
  const Plan& plan_;
};

}  // namespace tessera
