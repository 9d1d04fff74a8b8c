// The kernels that the compiler really writes: of the conformance table's graphs and of networks'
// pieces, for a device that runs softmax and the norms by generated code.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tessera/compile/program.h"

namespace tessera {

struct EmittedKernel {
  std::shared_ptr<const KernelIR> ir;
  std::vector<int64_t> bytes;  // of each operand's buffer
  std::string from;            // where it comes from, for messages
};

// A device like a GPU's backend: named kernels only for what no generated kernel can do.
Target gpu_target();

// The generated kernels of the graph that computes `outputs`; each other kind of instruction is
// left out.
std::vector<EmittedKernel> emitted_kernels(std::span<const Value> outputs, const std::string& from);

// Of every row of the conformance table, each distinct kernel once. Not `all`: one dtype and layout
// for each row in turn, beside f32.
std::vector<EmittedKernel> conformance_kernels(bool all);

// Softmax, norms, their gradients and their like, each with the number of kernels it may take.
struct Piece {
  std::string name;
  std::vector<Value> outputs;
  size_t kernels;
};
std::vector<Piece> network_pieces(DType dtype);

}  // namespace tessera
