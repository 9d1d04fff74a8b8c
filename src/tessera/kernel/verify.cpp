#include <algorithm>
#include <array>

#include "tessera/kernel/kernel_ir.h"

namespace tessera {

namespace {

// Collects the first problem; later checks still run, so each must hold up on a malformed kernel.
class Verifier {
 public:
  explicit Verifier(const KernelIR& ir) : ir_(ir), stores_(ir.operands.size(), 0) {}

  std::string run() {
    check_domain();
    if (!problem_.empty()) return problem_;
    is_map_ = ir_.is_map();
    if (is_map_) {
      require(ir_.inner == ir_.extents.rank() - 1, "a map has inner = rank - 1, got inner ",
              ir_.inner, " of rank ", ir_.extents.rank());
    }
    for (current_ = 0; current_ < int(ir_.insts.size()); ++current_) {
      check_inst(ir_.insts[size_t(current_)]);
      if (!problem_.empty()) return problem_;
    }
    current_ = -1;
    check_outputs();
    return problem_;
  }

 private:
  template <class... Args>
  bool require(bool holds, const Args&... args) {
    if (holds || !problem_.empty()) return holds;
    if (current_ >= 0) {
      problem_ = cat("instruction ", current_, " (", label(ir_.insts[size_t(current_)]), "): ");
    }
    problem_ += cat(args...);
    return false;
  }

  void check_domain() {
    const int rank = ir_.extents.rank();
    if (!require(rank >= 1, "rank must be at least 1")) return;
    require(ir_.inner >= 0 && ir_.inner < rank, "inner must lie in [0, ", rank, "), got ",
            ir_.inner);
    int64_t points = std::max<int64_t>(ir_.extents[0], 1);
    require(ir_.extents[0] >= 0, "extent 0 must be at least 0, got ", ir_.extents[0]);
    for (int i = 1; i < rank; ++i) {
      require(ir_.extents[i] >= 1, "extent ", i, " must be at least 1, got ", ir_.extents[i]);
      require(!__builtin_mul_overflow(points, ir_.extents[i], &points),
              "the domain has more than 2^63 - 1 points");
    }
  }

  void check_inst(const IrInst& inst) {
    const bool is_store = inst.kind == IrKind::store;
    require(is_store || compute_type(inst.dtype) == inst.dtype,
            "a register holds a compute type, got ", inst.dtype);
    require(!is_map_ || inst.level == IrLevel::elem, "a map has elem level only");
    require(inst.kind == IrKind::load || (!inst.masked && !inst.indexed),
            "only a load may be masked or indexed");
    check_args(inst);
    if (!problem_.empty()) return;
    switch (inst.kind) {
      case IrKind::constant: return check_constant(inst);
      case IrKind::index: return check_index(inst);
      case IrKind::load: return check_load(inst);
      case IrKind::scalar: return check_scalar(inst);
      case IrKind::cast: return check_cast(inst);
      case IrKind::reduce: return check_reduce(inst);
      case IrKind::store: return check_store(inst);
    }
    require(false, "unknown kind");
  }

  static std::array<bool, 3> used_args(const IrInst& inst) {
    switch (inst.kind) {
      case IrKind::constant:
      case IrKind::index: return {};
      case IrKind::load: return {inst.masked, inst.indexed, false};
      case IrKind::scalar: {
        if (inst.op >= ScalarOp::count) return {};
        const int arity = info(inst.op).arity;
        return {arity >= 1, arity >= 2, arity >= 3};
      }
      case IrKind::cast:
      case IrKind::reduce:
      case IrKind::store: break;
    }
    return {true, false, false};
  }

  void check_args(const IrInst& inst) {
    const std::array<bool, 3> used = used_args(inst);
    for (int i = 0; i < 3; ++i) {
      const int arg = inst.args[i];
      if (!used[size_t(i)]) {
        require(arg == -1, "args[", i, "] is not used and must be -1, got ", arg);
        continue;
      }
      if (!require(arg >= 0 && arg < current_, "args[", i, "] must be a register in [0, ", current_,
                   "), got ", arg)) {
        return;
      }
      const IrInst& from = ir_.insts[size_t(arg)];
      require(from.kind != IrKind::store, "args[", i, "] is a store, which defines no register");
      require(
          inst.kind == IrKind::reduce || inst.level == IrLevel::elem || from.level == IrLevel::row,
          "row level reads elem register ", arg);
    }
  }

  const IrInst& arg(const IrInst& inst, int i) const { return ir_.insts[size_t(inst.args[i])]; }

  void check_constant(const IrInst& inst) {
    const uint64_t canonical =
        is_float(inst.dtype) ? scalar_bits(inst.dtype, scalar_as_double(inst.dtype, inst.bits))
                             : scalar_bits(inst.dtype, scalar_as_int(inst.dtype, inst.bits));
    // A NaN may change its payload on the way through float.
    const double value = scalar_as_double(inst.dtype, inst.bits);
    require(inst.bits == canonical || value != value, "bits are not a value of ", inst.dtype);
  }

  void check_address(const IrInst& inst) {
    const int rank = ir_.extents.rank();
    if (!require(inst.strides.rank() == rank, "expected ", rank, " strides, got ", inst.strides)) {
      return;
    }
    for (int i = ir_.inner; i < rank && inst.level == IrLevel::row; ++i) {
      require(inst.strides[i] == 0, "row level has inner strides 0, got ", inst.strides);
    }
  }

  void check_index(const IrInst& inst) {
    require(inst.dtype == DType::i64, "an index is i64, got ", inst.dtype);
    check_address(inst);
  }

  bool check_operand(const IrInst& inst) {
    return require(inst.operand >= 0 && inst.operand < int(ir_.operands.size()),
                   "operand must lie in [0, ", ir_.operands.size(), "), got ", inst.operand);
  }

  void check_load(const IrInst& inst) {
    if (!check_operand(inst)) return;
    const IrOperand& operand = ir_.operands[size_t(inst.operand)];
    require(!operand.is_output, "operand ", inst.operand, " is an output and cannot be loaded");
    require(inst.dtype == compute_type(operand.dtype), "operand ", inst.operand, " is ",
            operand.dtype, ", got a register of ", inst.dtype);
    check_address(inst);
    if (inst.masked) check_mask(inst);
    if (inst.indexed) {
      require(arg(inst, 1).dtype == DType::i64, "the index register must be i64, got ",
              arg(inst, 1).dtype);
      require(inst.index_limit >= 0, "index_limit must be at least 0, got ", inst.index_limit);
    }
  }

  void check_mask(const IrInst& inst) {
    const int rank = ir_.extents.rank();
    require(arg(inst, 0).dtype == inst.dtype, "the value beside the mask must be ", inst.dtype,
            ", got ", arg(inst, 0).dtype);
    if (!require(inst.low.rank() == rank && inst.high.rank() == rank, "expected masks of rank ",
                 rank, ", got ", inst.low, " and ", inst.high)) {
      return;
    }
    for (int i = ir_.inner; i < rank && inst.level == IrLevel::row; ++i) {
      require(inst.low[i] <= 0 && inst.high[i] >= ir_.extents[i],
              "row level cannot mask inner dimension ", i);
    }
  }

  void check_scalar(const IrInst& inst) {
    if (!require(inst.op < ScalarOp::count, "unknown scalar op")) return;
    if (inst.op == ScalarOp::where) {
      check_types(inst, {DType::boolean, inst.dtype, inst.dtype});
    } else if (inst.op == ScalarOp::uniform) {
      require(inst.dtype == DType::f32, "uniform yields f32, got ", inst.dtype);
      check_types(inst, {DType::i64, DType::i64, DType::i64});
    } else {
      const DType in = arg(inst, 0).dtype;
      require(accepts(inst.op, in), "does not take ", in);
      check_types(inst, {in, in, in});
      const DType out = info(inst.op).out == ScalarOut::logical ? DType::boolean : in;
      require(inst.dtype == out, "yields ", out, ", got a register of ", inst.dtype);
    }
  }

  void check_types(const IrInst& inst, std::array<DType, 3> expected) {
    for (int i = 0; i < info(inst.op).arity; ++i) {
      require(arg(inst, i).dtype == expected[size_t(i)], "args[", i, "] must be ",
              expected[size_t(i)], ", got ", arg(inst, i).dtype);
    }
  }

  void check_cast(const IrInst& inst) {
    require(compute_type(inst.round_to) == inst.dtype, "a value rounded to ", inst.round_to,
            " is held as ", compute_type(inst.round_to), ", got a register of ", inst.dtype);
  }

  void check_reduce(const IrInst& inst) {
    const DType in = arg(inst, 0).dtype;
    require(inst.level == IrLevel::row, "a reduce yields row level");
    require(arg(inst, 0).level == IrLevel::elem, "a reduce reads elem level");
    require(in != DType::boolean || (inst.reduce != ReduceOp::sum && inst.reduce != ReduceOp::prod),
            "does not take bool");
    const DType out = inst.reduce == ReduceOp::argmax ? DType::i64 : in;
    require(inst.dtype == out, "yields ", out, ", got a register of ", inst.dtype);
  }

  void check_store(const IrInst& inst) {
    if (!check_operand(inst)) return;
    const IrOperand& operand = ir_.operands[size_t(inst.operand)];
    require(operand.is_output, "operand ", inst.operand, " is an input and cannot be stored");
    require(arg(inst, 0).dtype == compute_type(operand.dtype), "operand ", inst.operand, " is ",
            operand.dtype, ", got a register of ", arg(inst, 0).dtype);
    require(++stores_[size_t(inst.operand)] == 1, "operand ", inst.operand, " is stored twice");
    check_address(inst);
  }

  void check_outputs() {
    for (size_t i = 0; i < stores_.size(); ++i) {
      require(!ir_.operands[i].is_output || stores_[i] == 1, "output operand ", i,
              " is never stored");
    }
  }

  const KernelIR& ir_;
  std::vector<int> stores_;  // per operand
  bool is_map_ = false;
  int current_ = -1;  // the instruction at hand
  std::string problem_;
};

}  // namespace

std::string verify(const KernelIR& ir) { return Verifier(ir).run(); }

}  // namespace tessera
