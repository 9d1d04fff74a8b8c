// Small graph functions for the tests of passes.
#pragma once

#include "tessera/compile/passes.h"
#include "tessera/graph/build.h"

namespace tessera {

inline Target target_with(std::vector<std::string> kernels) {
  Target target;
  target.device = "test";
  target.named_kernels = std::move(kernels);
  return target;
}

// Everything the CPU has.
inline Target full_target() {
  return target_with({"matmul", "softmax", "layer_norm", "layer_norm_backward", "cumsum", "cumprod",
                      "sort", "topk", "scatter_add", "scatter", "update_slice", "copy"});
}

inline Value leaf(const Shape& shape, DType dtype = DType::f32) {
  return make_leaf({dtype, shape});
}

inline GraphFunction function(std::vector<Value> externals, std::vector<Value> outputs,
                              std::vector<GraphFunction::Assign> assigns = {}) {
  return {std::move(externals), std::move(outputs), std::move(assigns)};
}

// Where each element lies, in the order of the view's positions.
inline std::vector<int64_t> places(const View& view) {
  std::vector<int64_t> result = {view.offset};
  for (int i = 0; i < view.shape.rank(); ++i) {
    std::vector<int64_t> next;
    for (const int64_t place : result) {
      for (int64_t k = 0; k < view.shape[i]; ++k) next.push_back(place + k * view.strides[i]);
    }
    result = std::move(next);
  }
  return result;
}

// Instances of `op` in the list.
inline int count(const Instances& instances, Op op) {
  int n = 0;
  for (const Instance& instance : instances.list) n += instance.op == op;
  return n;
}

// The op of the node behind an output.
inline Op op_of(const GraphFunction& f, size_t output = 0) { return f.outputs[output].node->op; }

// Whether the function computes anything with `op`.
inline bool computes(const GraphFunction& f, Op op) {
  for (const NodePtr& node : topological_order(f.outputs)) {
    if (node->op == op) return true;
  }
  return false;
}

// The first five passes.
inline Instances instances_of(const GraphFunction& f) {
  Instances instances = layout(simplify(lower(f, full_target(), true)));
  rematerialize(instances);
  return instances;
}

inline KernelGraph kernels_of(const GraphFunction& f, bool enabled = true) {
  return fuse(instances_of(f), enabled);
}

}  // namespace tessera
