// What the graph knows of ops that users define (tensor/custom_op.h). A node of Op::custom holds
// the number of its definition, which lives as long as the process.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "tessera/base/custom_kernel.h"
#include "tessera/graph/node.h"

namespace tessera {

struct CustomDefinition {
  std::shared_ptr<const CustomKernel> kernel;
  std::function<std::vector<Type>(std::span<const Type> inputs)> types;
  // Its definition in plain ops; may be empty.
  std::function<std::vector<Value>(const std::vector<Value>& inputs)> composite;
  VjpFunction vjp;  // empty: the composite's gradient

  // Whether the kernel has a form for this kind of device ("cpu", "cuda", "opencl").
  bool runs_on(std::string_view kind) const;
};

uint64_t register_custom(CustomDefinition definition);
const CustomDefinition& custom_definition(const Attrs& attrs);

}  // namespace tessera
