#include "tessera/codegen/fold.h"

#include <array>

#include "tessera/codegen/text.h"

namespace tessera {

namespace {

// A reduction as a fold with a scalar op; argmax stands apart, because it carries two values.
struct Fold {
  ScalarOp op;
  std::string (*start)(DType);
};

template <int value>
std::string number(DType dtype) {
  return literal(dtype, scalar_bits(dtype, int64_t{value}));
}

constexpr std::array<Fold, 4> kFolds = {{
    {ScalarOp::add, number<0>},
    {ScalarOp::mul, number<1>},
    {ScalarOp::maximum, lowest_literal},
    {ScalarOp::minimum, highest_literal},
}};

const Fold& fold(ReduceOp op) { return kFolds[static_cast<size_t>(op)]; }

}  // namespace

std::string FoldWriter::values(int i) const { return cat("scratch_", value_type(i)); }

std::string FoldWriter::scratch() const {
  std::array<bool, kDTypeCount> used = {};
  bool any_argmax = false;
  for (int i = 0; i < int(ir_.insts.size()); ++i) {
    if (inst(i).kind != IrKind::reduce) continue;
    used[size_t(value_type(i))] = true;
    any_argmax = any_argmax || is_argmax(i);
  }
  std::string text;
  auto declare = [&](std::string_view type, std::string_view suffix) {
    text += cat("  ", dialect_.local, type, " scratch_", suffix, "[", group_size_, "];\n");
  };
  for (int i = 0; i < kDTypeCount; ++i) {
    const DType dtype = static_cast<DType>(i);
    if (used[size_t(i)]) declare(storage_type(dtype), name(dtype));
  }
  if (any_argmax) declare("i64", "at");
  return text;
}

std::string FoldWriter::start(int i) const {
  const DType dtype = value_type(i);
  const std::string_view type = register_type(dtype);
  if (is_argmax(i)) {
    // Behind every real position, so that an element equal to the start still wins.
    return cat("    ", type, " best_", i, " = ", lowest_literal(dtype), ";\n    i64 at_", i,
               " = 9223372036854775807;\n");
  }
  return cat("    ", type, " acc_", i, " = ", fold(inst(i).reduce).start(dtype), ";\n");
}

std::string FoldWriter::step(int i) const {
  const std::string value = register_name(ir_, inst(i).args[0]);
  if (is_argmax(i)) {
    return cat("      if (t_beats(", value, ", col, best_", i, ", at_", i, ")) {\n        best_", i,
               " = ", value, ";\n        at_", i, " = col;\n      }\n");
  }
  const std::string acc = cat("acc_", i);
  return cat("      ", acc, " = ",
             scalar_expression(fold(inst(i).reduce).op, value_type(i), acc, value), ";\n");
}

std::string FoldWriter::end(int i) const {
  std::string text;
  if (is_argmax(i)) {
    text = cat("    ", values(i), "[lane] = best_", i, ";\n    scratch_at[lane] = at_", i, ";\n");
  } else {
    text = cat("    ", values(i), "[lane] = acc_", i, ";\n");
  }
  text += cat("    ", dialect_.barrier, "\n    for (i32 width = ", group_size_ / 2,
              "; width > 0; width /= 2) {\n", join(i), "      ", dialect_.barrier, "\n    }\n");
  // The last barrier keeps the next fold from overwriting the result before every lane has it.
  const std::string result = is_argmax(i) ? "scratch_at" : values(i);
  return text + cat("    const ", register_type(inst(i).dtype), " ", register_name(ir_, i), " = ",
                    result, "[0];\n    ", dialect_.barrier, "\n");
}

std::string FoldWriter::join(int i) const {
  const std::string mine = values(i) + "[lane]", other = values(i) + "[lane + width]";
  if (is_argmax(i)) {
    return cat("      if (lane < width && t_beats(", other, ", scratch_at[lane + width],\n",
               "                                  ", mine, ", scratch_at[lane])) {\n        ", mine,
               " = ", other, ";\n        scratch_at[lane] = scratch_at[lane + width];\n      }\n");
  }
  const DType dtype = value_type(i);
  return cat("      if (lane < width) {\n        const ", register_type(dtype), " a = ", mine,
             ", b = ", other, ";\n        ", mine, " = ",
             scalar_expression(fold(inst(i).reduce).op, dtype, "a", "b"), ";\n      }\n");
}

}  // namespace tessera
