// KernelIR: one fused kernel as plain data. `compile/fuse` writes it; the CPU backend runs it over
// cache-sized tiles and codegen/ renders it as source.
//
// A kernel walks a domain of `extents`, split into outer dimensions [0, inner) and inner dimensions
// [inner, rank). Instructions are in SSA form: instruction i defines register i (a store defines
// none). A register has one of two levels:
//   elem  one value per point of the whole domain
//   row   one value per point of the outer domain; an elem instruction that reads it broadcasts it
// A reduce instruction turns an elem register into a row register by folding all inner points, so a
// kernel may reduce, use the result against the elements, and reduce again (softmax, layer_norm).
// A kernel without a reduce is a map: every register is elem level, and inner is rank - 1.
//
// Registers hold compute types: f16 and bf16 operands become f32 when loaded, and are rounded when
// stored or when a cast says so. Rank is at least 1 and all extents are at least 1, except that
// extents[0] may be any size from 0: it is a run-time argument, and not part of key().
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/base/dtype.h"
#include "tessera/base/scalar_op.h"
#include "tessera/base/shape.h"

namespace tessera {

enum class IrKind : uint8_t {
  constant,  // bits, as scalar_bits(dtype, …)
  index,     // i64: offset + Σ coordinate · strides
  load,      // an element of an operand; see IrInst for the masked and the indexed form
  scalar,    // op(args…)
  cast,      // args[0] converted to dtype; where round_to differs from dtype, rounded to it first
  reduce,    // fold of args[0] (elem) over the inner points -> row
  store,     // args[0] into an operand
};

enum class IrLevel : uint8_t { row, elem };

// argmax yields the i64 inner index (row-major over the inner dimensions) of the first greatest
// element; NaN counts as greatest. The fold of no elements is 0 for sum, 1 for prod and the lowest
// / highest value for max / min.
enum class ReduceOp : uint8_t { sum, prod, max, min, argmax };

struct IrInst {
  IrKind kind = IrKind::constant;
  IrLevel level = IrLevel::elem;
  DType dtype = DType::f32;     // of the register; a compute type
  DType round_to = DType::f32;  // cast only
  ScalarOp op = ScalarOp::add;  // scalar only
  ReduceOp reduce = ReduceOp::sum;
  int args[3] = {-1, -1, -1};  // registers
  int operand = -1;            // load, store: index into KernelIR::operands
  Dims strides = {};           // load, store, index: elements per step of each dimension
  int64_t offset = 0;          // load, store, index
  uint64_t bits = 0;           // constant

  // Masked load: where some coordinate lies outside [low, high), the value is register args[0]
  // instead, and memory is not touched. Pads and concatenations are made of these.
  bool masked = false;
  Dims low = {}, high = {};

  // Indexed load: the address also moves by r · index_stride, where r is the i64 register args[1].
  // r outside [0, index_limit) is an error of the user's data: report it, do not read.
  bool indexed = false;
  int64_t index_stride = 0, index_limit = 0;
};

struct IrOperand {
  DType dtype;     // as stored
  bool is_output;  // written by stores and never loaded
};

struct KernelIR {
  std::string name;  // the fused ops, for reports and as the name of generated functions
  Dims extents;
  int inner = 0;
  std::vector<IrOperand> operands;
  std::vector<IrInst> insts;

  int add_operand(DType dtype, bool is_output);  // returns its index
  bool is_map() const;                           // no reduce
  int64_t outer_count() const;                   // points of the outer domain
  int64_t inner_count() const;                   // points of the inner domain
};

// Equal keys mean that one compiled kernel serves both: everything but the name and extents[0].
std::string key(const KernelIR& ir);

// Readable text, one instruction a line.
std::string to_string(const KernelIR& ir);

// Empty when well formed, else what is wrong.
std::string verify(const KernelIR& ir);

std::string_view name(ReduceOp op);

// What an instruction does in one word: "exp", "sum", "load", "cast", …
std::string_view label(const IrInst& inst);

}  // namespace tessera
