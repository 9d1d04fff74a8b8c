// What the later passes work on: operations as instances, no longer interned, with views on their
// inputs; then kernels over buffers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tessera/compile/program.h"

namespace tessera {

// A view of output `out` of instance `inst`.
struct Operand {
  int inst = -1;
  int out = 0;
  View view;

  bool operator==(const Operand&) const = default;
};

// Where an output lies: in the buffer of output `home` of the same instance, which has so many
// elements.
struct Stored {
  int home = 0;
  View view;
  int64_t elements = 0;
};

// One operation with storage for its outputs. A cast to the dtype of its input is a copy.
struct Instance {
  Op op = Op::leaf;
  Attrs attrs;
  std::vector<Operand> inputs;
  std::vector<Type> types;
  std::vector<char> used;  // which outputs anyone reads; same length as types
  // Per output. Empty: all are packed, each in a buffer of its own.
  std::vector<Stored> stored = {};
  uint32_t scope = 0;
  SourceLine line = {};
  int external = -1;         // leaf only
  std::vector<int> regions;  // checkpoint regions it lies in, increasing
  bool late = false;         // a recomputation: to be scheduled when its value is needed
};

Stored stored(const Instance& x, int out);
void store(Instance& x, int out, const Stored& where);

// Instances in topological order.
struct Instances {
  std::vector<Instance> list;
  std::vector<Type> externals;
  std::vector<Operand> outputs;
  struct Assign {
    int external;
    Operand value;
  };
  std::vector<Assign> assigns;
  // Per region: instances whose values leave it through its exit.
  std::vector<std::pair<int, int>> exported;  // (region, instance)
  int copies = 0;
  int rematerialized = 0;
  int recomputed = 0;
};

// A kernel over buffers; `fuse` makes these.
struct KernelNode {
  KernelCall call;
  std::vector<int> buffers;  // of call.operands; -1: output not wanted
  uint32_t scope = 0;
  SourceLine line = {};
  std::string label;
  bool late = false;
  // Of a kernel without IR: the operand whose buffer an output may be, and which one.
  int in_place = -1;
  int in_place_output = 0;
};

// Kernels in topological order; buffers [0, externals) are the externals.
struct KernelGraph {
  std::vector<PlannedBuffer> buffers;
  std::vector<KernelNode> kernels;
  struct Assign {
    int external;  // = its buffer
    int buffer;    // holds the new value; equal to `external` once donated
  };
  std::vector<Assign> assigns;
  std::vector<int> outputs;             // buffers
  std::vector<std::vector<int>> after;  // per kernel: kernels that must run before it beside its
                                        // producers (readers of storage that it overwrites)
};

// Whether kernel `k` may write operand `output` into the memory of operand `input`: it reads there
// only what it is about to replace.
bool may_share(const KernelNode& k, size_t input, size_t output);

// First operand index that is an output.
inline size_t first_output(const KernelNode& k) {
  return k.call.operands.size() - size_t(k.call.outputs);
}

}  // namespace tessera
