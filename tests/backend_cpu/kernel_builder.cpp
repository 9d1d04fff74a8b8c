#include "backend_cpu/kernel_builder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "backend_cpu/interpreter.h"
#include "tessera/backend/cpu/cpu_backend.h"

namespace tessera::test {

Array::Array(DType dtype, int64_t count)
    : dtype_(dtype), count_(count), bytes_(size_t(count * size_of(dtype)), char(0xFB)) {}

double Array::get(int64_t i) const {
  return visit(dtype_, [&]<class T>() {
    T value;
    std::memcpy(&value, bytes_.data() + i * int64_t(sizeof(T)), sizeof(T));
    return double(value);
  });
}

void Array::set(int64_t i, double given) {
  visit(dtype_, [&]<class T>() {
    T value;
    if constexpr (std::is_same_v<T, f16> || std::is_same_v<T, bf16>) {
      value = T(float(given));
    } else if (std::is_same_v<T, int64_t> && given >= 0x1p63) {
      value = std::numeric_limits<T>::max();
    } else {
      value = T(given);
    }
    std::memcpy(bytes_.data() + i * int64_t(sizeof(T)), &value, sizeof(T));
  });
}

Array random_array(DType dtype, int64_t count, double low, double high, int seed) {
  Array array(dtype, count);
  std::mt19937_64 generator{uint64_t(seed)};
  std::uniform_real_distribution<double> uniform(low, high);
  for (int64_t i = 0; i < count; ++i) {
    const double value = uniform(generator);
    array.set(i, is_float(dtype) ? value : std::floor(value));
  }
  return array;
}

KernelBuilder::KernelBuilder(Dims extents, int inner) {
  ir_.name = "test";
  ir_.extents = extents;
  ir_.inner = inner;
}

int KernelBuilder::input(Array array) {
  ir_.add_operand(array.dtype(), false);
  arrays_.push_back(std::move(array));
  return int(arrays_.size()) - 1;
}

int KernelBuilder::output(DType dtype, int64_t count) {
  ir_.add_operand(dtype, true);
  arrays_.emplace_back(dtype, count);
  if (dtype == DType::boolean) std::memset(arrays_.back().data(), 0, size_t(count));
  return int(arrays_.size()) - 1;
}

int KernelBuilder::add(IrInst inst) {
  ir_.insts.push_back(inst);
  return int(ir_.insts.size()) - 1;
}

int KernelBuilder::constant(DType dtype, double value, IrLevel level) {
  IrInst inst;
  inst.kind = IrKind::constant;
  inst.level = level;
  inst.dtype = dtype;
  inst.bits = scalar_bits(dtype, value);
  return add(inst);
}

int KernelBuilder::index(Dims strides, int64_t offset, IrLevel level) {
  IrInst inst;
  inst.kind = IrKind::index;
  inst.level = level;
  inst.dtype = DType::i64;
  inst.strides = strides;
  inst.offset = offset;
  return add(inst);
}

int KernelBuilder::load(int operand, Dims strides, int64_t offset, IrLevel level) {
  IrInst inst;
  inst.kind = IrKind::load;
  inst.level = level;
  inst.dtype = compute_type(ir_.operands[size_t(operand)].dtype);
  inst.operand = operand;
  inst.strides = strides;
  inst.offset = offset;
  return add(inst);
}

int KernelBuilder::masked_load(int operand, Dims strides, int64_t offset, Dims low, Dims high,
                               int fill) {
  const int reg = load(operand, strides, offset);
  last().masked = true;
  last().low = low;
  last().high = high;
  last().args[0] = fill;
  return reg;
}

int KernelBuilder::indexed_load(int operand, Dims strides, int index, int64_t index_stride,
                                int64_t limit, IrLevel level) {
  const int reg = load(operand, strides, 0, level);
  last().indexed = true;
  last().args[1] = index;
  last().index_stride = index_stride;
  last().index_limit = limit;
  return reg;
}

int KernelBuilder::scalar(ScalarOp op, std::vector<int> args, IrLevel level) {
  IrInst inst;
  inst.kind = IrKind::scalar;
  inst.level = level;
  inst.op = op;
  for (size_t i = 0; i < args.size(); ++i) inst.args[i] = args[i];
  inst.dtype = ir_.insts[size_t(args[op == ScalarOp::where ? 1 : 0])].dtype;
  if (info(op).out == ScalarOut::logical) inst.dtype = DType::boolean;
  if (op == ScalarOp::uniform) inst.dtype = DType::f32;
  return add(inst);
}

int KernelBuilder::cast(int from, DType dtype) {
  IrInst inst;
  inst.kind = IrKind::cast;
  inst.level = ir_.insts[size_t(from)].level;
  inst.args[0] = from;
  inst.dtype = inst.round_to = dtype;
  return add(inst);
}

int KernelBuilder::rounded_cast(int from, DType half) {
  const int reg = cast(from, DType::f32);
  last().round_to = half;
  return reg;
}

int KernelBuilder::reduce(ReduceOp op, int from) {
  IrInst inst;
  inst.kind = IrKind::reduce;
  inst.level = IrLevel::row;
  inst.reduce = op;
  inst.args[0] = from;
  inst.dtype = op == ReduceOp::argmax ? DType::i64 : ir_.insts[size_t(from)].dtype;
  return add(inst);
}

void KernelBuilder::store(int operand, int value, Dims strides, int64_t offset, IrLevel level) {
  IrInst inst;
  inst.kind = IrKind::store;
  inst.level = level;
  inst.dtype = ir_.insts[size_t(value)].dtype;
  inst.args[0] = value;
  inst.operand = operand;
  inst.strides = strides;
  inst.offset = offset;
  add(inst);
}

namespace {

void launch(const KernelIR& ir, const std::vector<BufferRef>& refs, int64_t extent0) {
  static const std::unique_ptr<Backend> backend = make_cpu_backend();
  EXPECT_EQ(verify(ir), "");
  KernelCall call;
  call.ir = std::make_shared<KernelIR>(ir);
  backend->launch(*backend->compile(call), refs, extent0, Stream{});
}

}  // namespace

std::vector<Array> KernelBuilder::run() const { return run_with_extent(ir_.extents[0]); }

std::vector<Array> KernelBuilder::run_with_extent(int64_t extent0) const {
  std::vector<Array> copies = arrays_;
  std::vector<BufferRef> refs;
  for (Array& array : copies) refs.push_back({array.data(), 0});
  launch(ir_, refs, extent0);
  return copies;
}

std::vector<Array> KernelBuilder::run_in_place(int out, int in) const {
  std::vector<Array> copies = arrays_;
  std::vector<BufferRef> refs;
  for (Array& array : copies) refs.push_back({array.data(), 0});
  refs[size_t(out)] = refs[size_t(in)];
  launch(ir_, refs, ir_.extents[0]);
  return copies;
}

std::vector<Array> KernelBuilder::interpret() const {
  std::vector<Array> copies = arrays_;
  interpret_kernel(ir_, copies);
  return copies;
}

void KernelBuilder::expect_matches(double tolerance) const {
  const std::vector<Array> got = run(), expected = interpret();
  int shown = 0;
  for (size_t k = 0; k < got.size(); ++k) {
    for (int64_t i = 0; i < got[k].count() && shown < 5; ++i) {
      const double a = got[k].get(i), b = expected[k].get(i);
      if ((std::isnan(a) && std::isnan(b)) || a == b) continue;
      if (std::abs(a - b) <= tolerance * std::max(1.0, std::abs(b))) continue;
      ADD_FAILURE() << "operand " << k << ", element " << i << ": got " << a << ", expected " << b
                    << "\n"
                    << to_string(ir_);
      ++shown;
    }
  }
}

std::vector<char> all_bytes(const std::vector<Array>& arrays) {
  std::vector<char> result;
  for (const Array& array : arrays) {
    result.insert(result.end(), array.bytes().begin(), array.bytes().end());
  }
  return result;
}

}  // namespace tessera::test
