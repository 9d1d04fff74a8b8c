// Writes KernelIR by hand: levels and types follow from the arguments.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <utility>

#include "tessera/kernel/kernel_ir.h"

namespace tessera {

class IrBuilder {
 public:
  IrBuilder(std::string name, Dims extents, int inner) {
    ir_.name = std::move(name);
    ir_.extents = extents;
    ir_.inner = inner;
  }

  int in(DType dtype) { return operand(dtype, false); }
  int out(DType dtype) { return operand(dtype, true); }

  int constant(DType dtype, double value, IrLevel level = IrLevel::elem) {
    IrInst inst = make(IrKind::constant, level, dtype);
    inst.bits = scalar_bits(dtype, value);
    return add(inst);
  }
  int integer(DType dtype, int64_t value, IrLevel level = IrLevel::elem) {
    IrInst inst = make(IrKind::constant, level, dtype);
    inst.bits = scalar_bits(dtype, value);
    return add(inst);
  }
  int index(Dims strides, int64_t offset = 0, IrLevel level = IrLevel::elem) {
    IrInst inst = make(IrKind::index, level, DType::i64);
    inst.strides = strides;
    inst.offset = offset;
    return add(inst);
  }
  int load(int operand, Dims strides, int64_t offset = 0, IrLevel level = IrLevel::elem) {
    return add(load_inst(operand, strides, offset, level));
  }
  int load_masked(int operand, Dims strides, int64_t offset, Dims low, Dims high, int otherwise) {
    return add(with_mask(load_inst(operand, strides, offset, IrLevel::elem), low, high, otherwise));
  }
  int load_indexed(int operand, Dims strides, int index, int64_t stride, int64_t limit) {
    return add(with_index(load_inst(operand, strides, 0, IrLevel::elem), index, stride, limit));
  }
  int load_masked_indexed(int operand, Dims strides, Dims low, Dims high, int otherwise, int index,
                          int64_t stride, int64_t limit) {
    const IrInst plain = load_inst(operand, strides, 0, IrLevel::elem);
    return add(with_index(with_mask(plain, low, high, otherwise), index, stride, limit));
  }
  int scalar(ScalarOp op, std::initializer_list<int> args) {
    IrInst inst = make(IrKind::scalar, IrLevel::row);
    inst.op = op;
    int count = 0;
    for (const int arg : args) {
      inst.args[count++] = arg;
      if (at(arg).level == IrLevel::elem) inst.level = IrLevel::elem;
    }
    inst.dtype = at(inst.args[op == ScalarOp::where ? 1 : 0]).dtype;
    if (info(op).out == ScalarOut::logical) inst.dtype = DType::boolean;
    if (op == ScalarOp::uniform) inst.dtype = DType::f32;
    return add(inst);
  }
  int cast(int arg, DType round_to) {
    IrInst inst = make(IrKind::cast, at(arg).level, compute_type(round_to));
    inst.round_to = round_to;
    inst.args[0] = arg;
    return add(inst);
  }
  int reduce(ReduceOp op, int arg) {
    IrInst inst = make(IrKind::reduce, IrLevel::row, at(arg).dtype);
    inst.reduce = op;
    if (op == ReduceOp::argmax) inst.dtype = DType::i64;
    inst.args[0] = arg;
    return add(inst);
  }
  void store(int operand, Dims strides, int arg, int64_t offset = 0) {
    store_at(at(arg).level, operand, strides, arg, offset);
  }
  // Stores a row register once per point of the whole domain.
  void store_at(IrLevel level, int operand, Dims strides, int arg, int64_t offset = 0) {
    IrInst inst = make(IrKind::store, level);
    inst.operand = operand;
    inst.strides = strides;
    inst.offset = offset;
    inst.args[0] = arg;
    add(inst);
  }
  static IrInst make(IrKind kind, IrLevel level, DType dtype = DType::f32) {
    IrInst inst;
    inst.kind = kind;
    inst.level = level;
    inst.dtype = dtype;
    return inst;
  }
  int add(const IrInst& inst) {
    ir_.insts.push_back(inst);
    return int(ir_.insts.size()) - 1;
  }

  KernelIR build() const {
    EXPECT_EQ(verify(ir_), "") << to_string(ir_);
    return ir_;
  }

 private:
  const IrInst& at(int i) const { return ir_.insts[size_t(i)]; }

  int operand(DType dtype, bool is_output) {
    ir_.add_operand(dtype, is_output);
    return int(ir_.operands.size()) - 1;
  }
  IrInst load_inst(int operand, Dims strides, int64_t offset, IrLevel level) const {
    const DType dtype = compute_type(ir_.operands[size_t(operand)].dtype);
    IrInst inst = make(IrKind::load, level, dtype);
    inst.operand = operand;
    inst.strides = strides;
    inst.offset = offset;
    return inst;
  }
  static IrInst with_mask(IrInst inst, Dims low, Dims high, int otherwise) {
    inst.masked = true;
    inst.low = low;
    inst.high = high;
    inst.args[0] = otherwise;
    return inst;
  }
  static IrInst with_index(IrInst inst, int index, int64_t stride, int64_t limit) {
    inst.indexed = true;
    inst.args[1] = index;
    inst.index_stride = stride;
    inst.index_limit = limit;
    return inst;
  }

  KernelIR ir_;
};

}  // namespace tessera
