#include "tessera/kernel/kernel_call.h"

#include <algorithm>

namespace tessera {

bool Target::has(std::string_view kernel) const {
  return std::find(named_kernels.begin(), named_kernels.end(), kernel) != named_kernels.end();
}

bool Target::has(std::string_view kernel, DType dtype) const {
  return has(kernel) &&
         !(is_half(dtype) && std::ranges::find(wide_kernels, kernel) != wide_kernels.end());
}

bool Target::is_long_row(DType dtype, int64_t columns) const {
  return (dtype == DType::f32 || is_half(dtype)) && columns > long_row_columns &&
         columns * size_of(dtype) <= long_row_bytes;
}

PartOperand part_operand(const KernelCall& call, size_t i) {
  if (call.parts.empty()) return {0, i};
  const size_t parts = call.parts.size(), outputs = size_t(call.outputs) / parts;
  const size_t inputs = call.operands.size() / parts - outputs, all_inputs = parts * inputs;
  if (i < all_inputs) return {i / inputs, i % inputs};
  return {(i - all_inputs) / outputs, inputs + (i - all_inputs) % outputs};
}

// Beside its operands: an extent, scratch memory and its splits, and where its groups begin.
int64_t words_of_part(const KernelIR& ir) { return int64_t(ir.operands.size()) + 4; }

}  // namespace tessera
