#include "tessera/backend/cpu/kernels/view_copy.h"

namespace tessera::cpu {

namespace {

KernelIR copy_ir(const OperandView& from, const OperandView& to) {
  KernelIR ir;
  ir.name = "copy";
  ir.extents = from.view.shape;
  Dims from_strides = from.view.strides, to_strides = to.view.strides;
  if (ir.extents.empty()) {
    ir.extents.push_back(1);
    from_strides.push_back(0);
    to_strides.push_back(0);
  }
  ir.inner = ir.extents.rank() - 1;
  ir.operands = {{from.dtype, false}, {to.dtype, true}};
  IrInst load;
  load.kind = IrKind::load;
  load.dtype = compute_type(from.dtype);
  load.operand = 0;
  load.strides = from_strides;
  load.offset = from.view.offset;
  IrInst store = load;
  store.kind = IrKind::store;
  store.args[0] = 0;
  store.operand = 1;
  store.strides = to_strides;
  store.offset = to.view.offset;
  ir.insts = {load, store};
  return ir;
}

}  // namespace

ViewCopy::ViewCopy(const OperandView& from, const OperandView& to) {
  TESSERA_ASSERT(from.view.shape == to.view.shape);
  TESSERA_ASSERT(compute_type(from.dtype) == compute_type(to.dtype));
  if (numel(from.view.shape) == 0) return;
  const KernelIR ir = copy_ir(from, to);
  kernel_.emplace(ir);
  extent0_ = ir.extents[0];
}

void ViewCopy::run(char* from, char* to) const {
  if (!kernel_) return;
  char* const operands[] = {from, to};
  kernel_->run(operands, extent0_);
}

}  // namespace tessera::cpu
