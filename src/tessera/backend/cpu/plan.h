// A KernelIR prepared for running over tiles: what is computed once, per row and per point, in
// which phase, by which loop, and where every register lives.
//
// A tile is `rows` outer points by `points` inner points. A phase computes the points' values up to
// the reductions of its depth; the next one may use their results. Where a whole row fits the tile,
// values stay in registers from phase to phase (Plan::whole); otherwise each phase walks the row
// chunk by chunk and computes again what it needs (Plan::chunked).
//
// Stores of points come last in the last phase, so an output may share its memory with an input
// that is read at the same points only.
#pragma once

#include <vector>

#include "tessera/backend/cpu/loops.h"
#include "tessera/kernel/kernel_ir.h"

namespace tessera::cpu {

// How often a register's value changes: never, with the outer point, with every point.
enum class Level : uint8_t { uniform, row, point };

// Where a load, a store or an index finds its elements.
struct Access {
  int operand = -1;
  int memory_size = 0;  // bytes of an element in memory
  bool converts = false;
  int64_t offset = 0;
  Dims strides;
  bool masked = false;
  Dims low, high;
  bool indexed = false;
  int64_t index_stride = 0, index_limit = 0;
  // A load that is stored as it is, beside other stores: one of them may overwrite its memory
  // first.
  bool must_copy = false;
  MoveLoop move = nullptr;  // between memory and register
  MoveLoop fill = nullptr;  // register to register, for masked loads
  GatherLoop gather = nullptr;
};

// A link of a chain before it has addresses: registers instead.
struct PlannedLink {
  LinkCode code = LinkCode::call;
  int reg = -1;  // what it computes
  int arg = -1;  // its operand beside the value passed on
  ScalarLoop loop = nullptr;
  CastLoop cast = nullptr;
  bool keeps = false;  // others read it, too: it is written to its slot
  int slot = -1;
  // What only chains read that run together needs room for one block.
  bool local = false, arg_local = false;
  // The store's access whose memory may take the result, instead of the slot, unless it is where
  // one of the loads is that are read later on.
  int direct = -1;
  std::vector<int> read_later;
};

struct Step {
  IrKind kind = IrKind::constant;
  Level level = Level::point;
  int reg = -1;
  int args[3] = {-1, -1, -1};
  int arity = 0;
  int slot = 0;  // bytes per point (or per row) of the registers before this one
  int access = -1;
  int size = 0;  // bytes of a value
  ScalarLoop scalar = nullptr;
  CastLoop cast = nullptr, round = nullptr;  // either may be absent
  FoldLoop fold = nullptr;
  DotLoop dot = nullptr;  // instead, where two values are multiplied and nobody else wants them
  CombineLoop combine = nullptr;
  int where_slot = -1;    // argmax: of its result; slot then holds the values
  uint64_t identity = 0;  // of the fold, in the register's own representation
  // A chain: args[0] passes through the links, and the last one's result is reg.
  std::vector<PlannedLink> links;
  ChainLoop chain = nullptr;
  bool from_local = false;
  int together = 1;  // steps that run as one, of which this is the first; 0 for the others
  bool looks_ahead = false;
};

struct Register {
  Level level = Level::uniform;
  int size = 0;
  int row_slot = -1;      // row level
  uint64_t constant = 0;  // constants, in the register's own representation
  bool is_constant = false;
};

struct Phase {
  std::vector<Step> rows;    // before the points
  std::vector<Step> points;  // loads, computations, folds; the last phase's end with the stores
};

struct Program {
  std::vector<Phase> phases;  // the last one has only rows: what follows the last reduction
  int point_bytes = 0;        // of all slots, per point
  int chunk_bytes = 0;        // the same where every step runs on its own
  int written_bytes = 0;      // per point, by all steps together; loads in place write nothing
};

struct Plan {
  KernelIR ir;  // collapsed
  int64_t scale0 = 1;
  bool map = false;
  bool inner_fast = true;   // how tiles are stored; false where columns are contiguous in memory
  bool transposes = false;  // a map that reads or writes columns as well as rows
  std::vector<Register> registers;
  std::vector<Access> accesses;
  std::vector<int> ahead;  // accesses of points whose memory a chain may bring near beforehand
  std::vector<Step> once;  // the uniform steps
  Program whole, chunked;
  int row_bytes = 0;        // of all row slots, per row
  int point_steps = 0;      // a measure of the work per point
  MoveLoop spread[9] = {};  // by size in bytes: register to register
  int64_t (*find_outside)(int64_t, const int64_t*, int64_t) = nullptr;
  void (*stream_fence)() = nullptr;
  void (*iota)(int64_t*, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t) = nullptr;
};

// REQUIRES verify(ir) to be empty.
Plan make_plan(const KernelIR& ir, const LoopTable& loops);

}  // namespace tessera::cpu
