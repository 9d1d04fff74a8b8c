// Small pieces of C text shared by the renderer's files.
#pragma once

#include <string>
#include <string_view>

#include "tessera/kernel/kernel_ir.h"

namespace tessera {

std::string replace_all(std::string_view text, std::string_view from, std::string_view to);

// Asks for the loop that follows to be unrolled.
std::string unroll(const std::string& indent);

// The variable of register i: "exp_3".
std::string register_name(const KernelIR& ir, int i);

// The typedef a register of `dtype` has, and the one its elements have in memory.
std::string_view register_type(DType dtype);
std::string_view storage_type(DType dtype);

// A stored element as a register, and back.
std::string from_storage(DType dtype, const std::string& element);
std::string to_storage(DType dtype, const std::string& value);

// A literal whose value is exactly scalar `bits`.
std::string literal(DType dtype, uint64_t bits);

// The lowest and the highest value: what max and min fold from.
std::string lowest_literal(DType dtype);
std::string highest_literal(DType dtype);

// The op's C expression over operands of `dtype`. Signed sums and products are taken in the
// unsigned type, because they wrap here and are undefined in C.
std::string scalar_expression(ScalarOp op, DType dtype, std::string_view a, std::string_view b = "",
                              std::string_view c = "");

// The prelude's function that casts a float, f32 or f64, to an integer type.
std::string cast_function(DType from, DType to);

// `value`, a register of `from`, as a register of compute_type(round_to), rounded to round_to.
std::string cast_expression(DType from, DType round_to, const std::string& value);

}  // namespace tessera
