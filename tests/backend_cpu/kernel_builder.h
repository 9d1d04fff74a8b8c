// Hand-built kernels for the tests: a KernelIR, its operands' contents, and a plain interpretation
// of both, point by point in f64 and i64.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "tessera/base/dtype.h"
#include "tessera/kernel/kernel_ir.h"

namespace tessera::test {

// Elements of any type, read and written as double (exact for integers below 2^53).
class Array {
 public:
  Array(DType dtype, int64_t count);

  DType dtype() const { return dtype_; }
  int64_t count() const { return count_; }
  double get(int64_t i) const;
  void set(int64_t i, double value);
  char* data() { return bytes_.data(); }
  const std::vector<char>& bytes() const { return bytes_; }

 private:
  DType dtype_;
  int64_t count_;
  std::vector<char> bytes_;
};

// Values spread over [low, high], reproducible by seed; whole numbers for integer types.
Array random_array(DType dtype, int64_t count, double low, double high, int seed = 1);

// Adds instructions; each function returns the new register.
class KernelBuilder {
 public:
  KernelBuilder(Dims extents, int inner);

  int input(Array array);                  // an operand
  int output(DType dtype, int64_t count);  // an operand, filled with a marker
  int constant(DType dtype, double value, IrLevel level = IrLevel::elem);
  int index(Dims strides, int64_t offset = 0, IrLevel level = IrLevel::elem);
  int load(int operand, Dims strides, int64_t offset = 0, IrLevel level = IrLevel::elem);
  int masked_load(int operand, Dims strides, int64_t offset, Dims low, Dims high, int fill);
  int indexed_load(int operand, Dims strides, int index, int64_t index_stride, int64_t limit,
                   IrLevel level = IrLevel::elem);
  int scalar(ScalarOp op, std::vector<int> args, IrLevel level = IrLevel::elem);
  int cast(int from, DType dtype);
  int rounded_cast(int from, DType half);
  int reduce(ReduceOp op, int from);
  void store(int operand, int value, Dims strides, int64_t offset = 0,
             IrLevel level = IrLevel::elem);

  const KernelIR& ir() const { return ir_; }
  IrInst& last() { return ir_.insts.back(); }
  std::vector<Array>& arrays() { return arrays_; }

  // Runs it on the CPU backend over copies of the operands; returns them afterwards.
  std::vector<Array> run() const;
  std::vector<Array> run_with_extent(int64_t extent0) const;

  // The same with output operand `out` placed in the memory of operand `in`.
  std::vector<Array> run_in_place(int out, int in) const;

  // The plain interpretation.
  std::vector<Array> interpret() const;

  // run() against interpret(), every operand: |a - b| <= tolerance · max(1, |b|), NaN equals NaN.
  void expect_matches(double tolerance) const;

 private:
  int add(IrInst inst);

  KernelIR ir_;
  std::vector<Array> arrays_;
};

// The bytes of all operands after run(), for bitwise comparisons.
std::vector<char> all_bytes(const std::vector<Array>& arrays);

}  // namespace tessera::test
