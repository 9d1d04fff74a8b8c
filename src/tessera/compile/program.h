// Program: what `compile` makes and `exec` runs: a list of instructions over planned buffers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/graph/node.h"
#include "tessera/kernel/kernel_call.h"

namespace tessera {

// A function of leaves. Everything that varies between calls is a leaf: batches, learning rate,
// position, and the storage of Vars.
struct GraphFunction {
  struct Assign {
    int external;  // index into `externals`: the leaf whose storage is written
    Value value;
  };
  std::vector<Value> externals;  // leaves, in the order in which callers bind storage
  std::vector<Value> outputs;
  std::vector<Assign> assigns;
};

enum class BufferKind : uint8_t {
  temporary,  // in the arena, at `offset`
  external,   // storage of external `index`, bound by the caller
  output,     // storage of output `index`, bound by the caller
};

struct PlannedBuffer {
  BufferKind kind = BufferKind::temporary;
  int index = 0;
  int64_t offset = 0;  // bytes, temporaries only
  int64_t bytes = 0;
  Type type;
};

enum class Lane : uint8_t { compute, copy, communicate };

struct Instruction {
  KernelCall call;
  std::vector<int>
      buffers;  // of call.operands, indices into Program::buffers; -1: output not wanted
  Lane lane = Lane::compute;
  std::vector<int> waits;  // instructions of other lanes that must have finished
  uint32_t scope = 0;      // graph/scope.h
  SourceLine line = {};
  std::string label;  // the ops it holds
  int64_t bytes = 0;  // read and written, each once
};

struct MemoryItem {
  std::string label;
  int64_t bytes;
  std::string scope = {};  // path of the kernel that makes it
};

struct ScopeBytes {
  std::string scope;  // path; "" for what was made outside any
  int64_t bytes = 0;
};

struct PassTime {
  const char* pass;
  int64_t nanoseconds;
};

// What the compiler did, in numbers that tests assert and `tessera explain` prints.
struct Report {
  int nodes = 0;            // of the graph after simplification, without leaves and constants
  int kernels = 0;          // instructions
  int generated = 0;        // of those, fused kernels
  int copies = 0;           // inserted by layout, or for an assign that could not write in place
  int donated = 0;          // assigns that write into their Var's storage directly
  int rematerialized = 0;   // instances a checkpoint has computed again
  int recomputed = 0;       // cheap ones, computed again instead of stored
  int64_t bytes_moved = 0;  // read and written by all kernels
  int64_t external_bytes = 0, output_bytes = 0;
  int64_t temporary_bytes = 0;      // the arena: holds all temporaries alive at once, gaps included
  std::vector<MemoryItem> at_peak;  // temporaries alive at the peak, largest first

  // Bytes of the temporaries alive while each instruction runs, without gaps; the greatest of them,
  // its instruction (-1: there are no temporaries), and who made what is alive there, largest
  // first.
  std::vector<int64_t> timeline;
  int64_t peak_bytes = 0;
  int peak_at = -1;
  std::vector<ScopeBytes> peak_by_scope;

  std::vector<PassTime> passes;  // wall time of each, one after the other; differs from run to run
};

struct Program {
  std::vector<PlannedBuffer> buffers;
  std::vector<Instruction> instructions;
  int externals = 0, outputs = 0;
  std::vector<Type> external_types, output_types;
  int64_t arena_bytes = 0;
  Report report;
};

std::string to_string(const Report& report);

// The timeline as a bar chart of at most some 30 lines, and the peak by scope.
std::string memory_text(const Program& program);

// Instructions with their buffers and, for generated kernels, their KernelIR.
std::string to_string(const Program& program);

}  // namespace tessera
