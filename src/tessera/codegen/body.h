// The instructions of a kernel as text: what happens at one point, at several neighbouring points,
// or once per row.
#pragma once

#include <string>
#include <vector>

#include "tessera/codegen/address.h"
#include "tessera/codegen/dialect.h"
#include "tessera/codegen/fold.h"
#include "tessera/codegen/plan.h"
#include "tessera/codegen/text.h"

namespace tessera {

class BodyWriter {
 public:
  BodyWriter(const KernelIR& ir, const Dialect& dialect, const Plan& plan)
      : ir_(ir),
        dialect_(dialect),
        plan_(plan),
        addressing_(ir),
        folds_(ir, dialect, plan),
        exact_(needs_exactness(ir)) {}

  Addressing& addressing() { return addressing_; }
  const FoldWriter& folds() const { return folds_; }

  // Row-level instructions, and the row-level stores.
  std::string rows(const std::vector<int>& insts, const std::string& indent);
  std::string row_stores(const std::string& indent);

  // What the phase's quotients need of each row-level divisor that no earlier phase divided by.
  std::string divisors(const Phase& phase, const std::string& indent);

  // What one loop does at the linear index `variable` and the width - 1 points behind it. `guard`
  // is the condition of its stores; empty: always.
  std::string points(const Phase& phase, std::string_view variable, int width,
                     const std::string& guard, const std::string& indent);

  // A map's plan.turns accesses of a lane, each at `point` of turn t and before `end`: all is read
  // before the first store.
  std::string turns(const Phase& phase, const std::string& point, std::string_view end);

  // The same at `count` indices col, col + step, …: all is read before the first store.
  std::string spaced_points(const Phase& phase, int count, int64_t step, const std::string& indent);

  // Whether the loop reads rows that do not start as the wide ones do.
  bool reads_apart(const Phase& phase) const;

  // Brings what the phase keeps of the group's next row nearer.
  std::string read_ahead(const Phase& phase, const std::string& indent) const;

  // The arrays of what lanes keep from loop to loop: in registers, a row's; in local memory, one a
  // kernel.
  std::string kept_arrays(const std::string& indent) const;
  std::string row_arrays() const;

  // How far before its row the first access starts, where rows start anywhere, and which access is
  // the last; declared once a row.
  std::string shift(const std::string& indent);

  std::string operand_name(int i) const;
  std::string operand_type(int i) const;  // of the pointer, without its star

 private:
  const IrInst& inst(int i) const { return ir_.insts[size_t(i)]; }
  std::string reg(int i) const { return register_name(ir_, i); }
  bool is_wide(int i, int width) const { return width > 1 && plan_.wide[size_t(i)]; }

  std::string define(int i, const std::string& indent);
  std::string define_indexed(int i, const std::string& indent);
  std::string value(int i);
  std::string loaded(const IrInst& it);
  std::string element(const IrInst& it);
  std::string store(const IrInst& it, const std::string& indent);

  std::string wide_points(const Phase& phase, std::string_view variable, int width,
                          const std::string& guard, std::string loads, const std::string& indent);
  std::string wide_loads(const Phase& phase, int width, const std::string& indent);
  std::string wide_type(int i, int width) const;
  std::string wide_address(int i, int width);
  std::string wide_access(int i, int width);
  std::string wide_store(int i, int width);
  std::string one_point(const Phase& phase, int width, const std::string& guard,
                        const std::string& indent);
  int64_t column_stride(const IrInst& it) const;
  std::string values(const Phase& phase, int width, const std::string& indent);
  std::string kept_place(int i, int width) const;
  std::string kept_value(int i, int width) const;
  std::string keep(int i, int width, const std::string& indent) const;
  std::string row_access(int i, int width) const;  // `width` neighbours in local memory
  DType stored_type(int i) const { return ir_.operands[size_t(inst(i).operand)].dtype; }
  // Per instruction: not everything that it leads to is rounded to a half.
  static std::vector<bool> needs_exactness(const KernelIR& ir);
  // The row-level register that an elem-level quotient divides by; -1: it is none such.
  int row_divisor(int i) const;
  std::string quotient(int i) const;

  const KernelIR& ir_;
  const Dialect& dialect_;
  const Plan& plan_;
  Addressing addressing_;
  FoldWriter folds_;
  std::vector<bool> exact_;
  std::vector<int> divisors_;  // those declared so far
};

}  // namespace tessera
