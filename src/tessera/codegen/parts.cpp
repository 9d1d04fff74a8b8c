#include "tessera/codegen/parts.h"

#include <algorithm>
#include <bit>

namespace tessera {

namespace {

size_t words_beside_operands(bool split) { return split ? 3 : 1; }

}  // namespace

std::string table_types(const KernelIR& ir, const BodyWriter& body, const Dialect& dialect,
                        const RenderOptions& options) {
  std::string text = "struct t_part {\n";
  for (int i = 0; i < int(ir.operands.size()); ++i) {
    text += cat("  ", body.operand_type(i), "* ", body.operand_name(i), ";\n");
  }
  text += "  i64 extent0;\n";
  if (options.split) text += cat("  ", dialect.global, "u64* scratch;\n  i64 splits;\n");
  return text + cat("};\nstruct t_table {\n  t_part parts[", options.parts, "];\n  i32 begin[",
                    options.parts + 1, "];\n};\n");
}

std::string table_parameters(const Dialect& dialect) {
  return cat("    const t_table table, ", dialect.global, "i32* error");
}

std::string enter_part(const KernelIR& ir, const BodyWriter& body, const Dialect& dialect,
                       const RenderOptions& options) {
  const unsigned first = std::bit_ceil(unsigned(options.parts)) / 2;
  const bool is_full = std::has_single_bit(unsigned(options.parts));
  const std::string inside = is_full ? "" : cat("which + step < ", options.parts, " && ");
  std::string text =
      cat("  i32 which = 0;\n", unroll("  "), "  for (i32 step = ", first,
          "; step > 0; step /= 2) {\n    if (", inside,
          "(idx)table.begin[which + step] <= ", dialect.group_index, ") which += step;\n  }\n");
  text += cat("  const idx group = ", dialect.group_index, " - (idx)table.begin[which];\n",
              "  const idx groups = (idx)(table.begin[which + 1] - table.begin[which]);\n");
  const auto take = [&](const std::string& type, const std::string& name) {
    text += cat("  ", type, " const ", name, " = table.parts[which].", name, ";\n");
  };
  for (int i = 0; i < int(ir.operands.size()); ++i) {
    take(body.operand_type(i) + "*", body.operand_name(i));
  }
  take("i64", "extent0");
  if (!options.split) return text;
  take(cat(dialect.global, "u64*"), "scratch");
  take("i64", "splits");
  return text;
}

std::vector<uint64_t> part_table(std::span<const KernelPart> parts, int capacity, bool split) {
  TESSERA_ASSERT(!parts.empty() && parts.size() <= size_t(capacity));
  const size_t operands = parts[0].operands.size();
  const size_t words = operands + words_beside_operands(split), room = size_t(capacity);
  std::vector<uint64_t> table(room * words + (room + 2) / 2, 0);
  std::vector<int32_t> begin(room + 2, 0);
  for (size_t p = 0; p < parts.size(); ++p) {
    const KernelPart& part = parts[p];
    uint64_t* row = table.data() + p * words;
    for (void* operand : part.operands) *row++ = std::bit_cast<uint64_t>(operand);
    *row++ = uint64_t(part.extent0);
    if (split) {
      *row++ = std::bit_cast<uint64_t>(part.scratch);
      *row++ = uint64_t(part.splits);
    }
    begin[p + 1] = begin[p] + int32_t(part.groups);
  }
  // Groups find no part behind the last.
  std::fill(begin.begin() + std::ptrdiff_t(parts.size()) + 1, begin.end(), begin[parts.size()]);
  for (size_t i = 0; i < (room + 2) / 2; ++i) {
    const uint64_t low = uint32_t(begin[2 * i]), high = uint32_t(begin[2 * i + 1]);
    table[room * words + i] = low | high << 32;
  }
  return table;
}

}  // namespace tessera
