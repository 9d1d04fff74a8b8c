#include "tessera/codegen/fold.h"

#include <algorithm>
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

// Entries in local memory that each lane folds by itself; more are first made fewer.
constexpr int kEntries = 16;

}  // namespace

std::vector<FoldWriter::Carried> FoldWriter::carried(int i) const {
  const std::string name = register_name(ir_, i);
  if (is_argmax(i)) return {{cat("best_", i), value_type(i)}, {name, DType::i64}};
  return {{name, value_type(i)}};
}

std::vector<FoldWriter::Carried> FoldWriter::carried(const std::vector<int>& reduces) const {
  std::vector<Carried> all;
  for (const int i : reduces) {
    for (const Carried& one : carried(i)) all.push_back(one);
  }
  return all;
}

// One array per carried value of a phase: "shared_f32", "shared_f32_1", …
std::string FoldWriter::array(const std::vector<Carried>& all, size_t k) const {
  const DType dtype = all[k].dtype;
  const auto before = std::count_if(all.begin(), all.begin() + std::ptrdiff_t(k),
                                    [&](const Carried& one) { return one.dtype == dtype; });
  return cat("shared_", dtype, before == 0 ? "" : cat("_", before));
}

std::string FoldWriter::shared_arrays() const {
  if (plan_.parts == 1 || (shuffles() && plan_.parts <= dialect_.warp)) return "";
  const int entries =
      shuffles() ? plan_.cluster * plan_.group_size / dialect_.warp : plan_.group_size;
  std::vector<std::string> declared;
  std::string text;
  for (const Phase& phase : plan_.phases) {
    const std::vector<Carried> all = carried(phase.reduces);
    for (size_t k = 0; k < all.size(); ++k) {
      const std::string name = array(all, k);
      if (std::find(declared.begin(), declared.end(), name) != declared.end()) continue;
      declared.push_back(name);
      text +=
          cat("  ", dialect_.local, storage_type(all[k].dtype), " ", name, "[", entries, "];\n");
    }
  }
  return text;
}

std::string FoldWriter::start(int i, const std::string& indent) const {
  const DType dtype = value_type(i);
  const std::string_view type = register_type(dtype);
  const std::string name = register_name(ir_, i);
  if (is_argmax(i)) {
    // Behind every real position, so that an element equal to the start still wins.
    return cat(indent, type, " best_", i, " = ", lowest_literal(dtype), ";\n", indent, "i64 ", name,
               " = 9223372036854775807;\n");
  }
  return cat(indent, type, " ", name, " = ", fold(inst(i).reduce).start(dtype), ";\n");
}

std::string FoldWriter::step(int i, const std::string& position, const std::string& indent) const {
  const std::string value = register_name(ir_, inst(i).args[0]), name = register_name(ir_, i);
  if (is_argmax(i)) {
    return cat(indent, "if (t_beats(", value, ", ", position, ", best_", i, ", ", name, ")) {\n",
               indent, "  best_", i, " = ", value, ";\n", indent, "  ", name, " = ", position,
               ";\n", indent, "}\n");
  }
  return cat(indent, name, " = ",
             scalar_expression(fold(inst(i).reduce).op, value_type(i), name, value), ";\n");
}

// Takes other_… into what this lane carries.
std::string FoldWriter::join(int i, const std::string& indent) const {
  const std::string name = register_name(ir_, i);
  if (is_argmax(i)) {
    return cat(indent, "if (t_beats(other_best_", i, ", other_", name, ", best_", i, ", ", name,
               ")) {\n", indent, "  best_", i, " = other_best_", i, ";\n", indent, "  ", name,
               " = other_", name, ";\n", indent, "}\n");
  }
  return cat(indent, name, " = ",
             scalar_expression(fold(inst(i).reduce).op, value_type(i), name, cat("other_", name)),
             ";\n");
}

template <class Source>
std::string FoldWriter::join_all(const std::vector<int>& reduces, const std::string& indent,
                                 Source source) const {
  const std::vector<Carried> all = carried(reduces);
  std::string text;
  for (size_t k = 0; k < all.size(); ++k) {
    text += cat(indent, "const ", register_type(all[k].dtype), " other_", all[k].variable, " = ",
                source(all, k), ";\n");
  }
  for (const int i : reduces) text += join(i, indent);
  return text;
}

std::string FoldWriter::end(const std::vector<int>& reduces, const std::string& indent) const {
  if (reduces.empty() || plan_.parts == 1) return "";
  if (plan_.cluster > 1) return across_groups(reduces, indent);
  if (!shuffles()) return through_memory(reduces, plan_.parts, indent);
  const bool is_all = plan_.parts <= dialect_.warp;
  std::string text = shuffle(reduces, std::min(plan_.parts, dialect_.warp), is_all, indent);
  if (!is_all) {
    text += through_memory(reduces, plan_.parts / dialect_.warp, indent);
  }
  return text;
}

// Among `width` lanes; the first of them has the result then, or all have it.
std::string FoldWriter::shuffle(const std::vector<int>& reduces, int width, bool for_all,
                                const std::string& indent) const {
  const bool is_whole = plan_.group_size >= dialect_.warp;
  const std::string mask = is_whole ? "0xffffffffu" : cat((1u << plan_.group_size) - 1, "u");
  const auto expression = [&](std::string_view shape, const std::string& value) {
    const std::string masked = replace_all(shape, "$mask", mask);
    return replace_all(replace_all(replace_all(masked, "$value", value), "$step", "step"), "$width",
                       cat(width));
  };
  std::string text =
      cat(unroll(indent), indent, "for (i32 step = ", width / 2, "; step > 0; step /= 2) {\n");
  text += join_all(reduces, indent + "  ", [&](const std::vector<Carried>& all, size_t k) {
    return expression(dialect_.shuffle_down, all[k].variable);
  });
  text += cat(indent, "}\n");
  if (!for_all) return text;
  for (const Carried& one : carried(reduces)) {
    text +=
        cat(indent, one.variable, " = ", expression(dialect_.shuffle_first, one.variable), ";\n");
  }
  return text;
}

// Where the row's entry number `part` lies in the arrays.
std::string FoldWriter::slot(const std::string& part) const {
  const int rows = plan_.rows_per_group();
  if (shuffles() || rows == 1) return part;
  const bool is_first = part == "0";
  if (plan_.spread == Spread::columns) return is_first ? "team" : cat(part, " * ", rows, " + team");
  return cat("team * ", plan_.parts, is_first ? "" : cat(" + ", part));
}

std::string FoldWriter::through_memory(const std::vector<int>& reduces, int entries,
                                       const std::string& indent) const {
  const std::vector<Carried> all = carried(reduces);
  const auto write = [&](const std::string& place, const std::string& inside) {
    std::string text;
    for (size_t k = 0; k < all.size(); ++k) {
      text += cat(inside, array(all, k), "[", place, "] = ", all[k].variable, ";\n");
    }
    return text;
  };
  const auto join_from = [&](const std::string& inside) {
    return join_all(reduces, inside, [&](const std::vector<Carried>&, size_t k) {
      return cat(array(all, k), "[", slot("k"), "]");
    });
  };
  std::string text;
  if (shuffles()) {
    text = cat(indent, "if (lane % ", dialect_.warp, " == 0) {\n",
               write(cat("lane / ", dialect_.warp), indent + "  "), indent, "}\n");
  } else {
    text = write("lane", indent);
  }
  text += cat(indent, dialect_.barrier, "\n");
  if (!shuffles() && entries > kEntries) {
    text +=
        cat(indent, "if (part < ", kEntries, ") {\n", indent, "  for (i32 k = part + ", kEntries,
            "; k < ", entries, "; k += ", kEntries, ") {\n", join_from(indent + "    "), indent,
            "  }\n", write("lane", indent + "  "), indent, "}\n", indent, dialect_.barrier, "\n");
    entries = kEntries;
  }
  const bool shuffles_again = shuffles() && entries > kEntries;
  const std::string first = shuffles_again ? cat("lane % ", entries) : slot("0");
  for (size_t k = 0; k < all.size(); ++k) {
    text += cat(indent, all[k].variable, " = ", array(all, k), "[", first, "];\n");
  }
  if (shuffles_again) {
    return text + shuffle(reduces, entries, true, indent) + cat(indent, dialect_.barrier, "\n");
  }
  text += cat(unroll(indent), indent, "for (i32 k = 1; k < ", entries, "; ++k) {\n",
              join_from(indent + "  "), indent, "}\n");
  // The next fold must not overwrite what a slower lane still reads.
  return text + cat(indent, dialect_.barrier, "\n");
}

// Each warp hands what it carries to every group, when that has read what it was handed before. All
// fold the same values in the same order.
std::string FoldWriter::across_groups(const std::vector<int>& reduces,
                                      const std::string& indent) const {
  const std::vector<Carried> all = carried(reduces);
  const int warp = dialect_.warp, entries = plan_.parts / warp, lanes = std::min(entries, warp);
  const std::string inside = indent + "  ", arrive = cat(indent, dialect_.cluster_arrive, "\n"),
                    wait = cat(indent, dialect_.cluster_wait, "\n");
  std::string text = shuffle(reduces, warp, true, indent) + wait;
  text += cat(indent, "if (lane % ", warp, " < ", plan_.cluster, ") {\n");
  for (size_t k = 0; k < all.size(); ++k) {
    const std::string place = cat(array(all, k), " + part / ", warp);
    text += cat(
        inside, "*(", storage_type(all[k].dtype), "*)",
        replace_all(replace_all(dialect_.of_group, "$at", place), "$group", cat("lane % ", warp)),
        " = ", all[k].variable, ";\n");
  }
  text += cat(indent, "}\n", arrive, wait);
  for (size_t k = 0; k < all.size(); ++k) {
    text += cat(indent, all[k].variable, " = ", array(all, k), "[lane % ", lanes, "];\n");
  }
  if (entries > lanes) {
    text += cat(unroll(indent), indent, "for (i32 k = ", lanes, "; k < ", entries, "; k += ", lanes,
                ") {\n",
                join_all(reduces, inside,
                         [&](const std::vector<Carried>&, size_t k) {
                           return cat(array(all, k), "[k + lane % ", lanes, "]");
                         }),
                indent, "}\n");
  }
  return text + shuffle(reduces, lanes, true, indent) + arrive;
}

int FoldWriter::scratch_values() const { return int(carried(plan_.phases[0].reduces).size()); }

// The values of all rows and splits lie behind each other, those of each carried value in 8 bytes.
std::string FoldWriter::scratch(size_t k, DType dtype) const {
  const std::string begin = k == 0 ? "scratch" : cat("(scratch + ", k, " * rows * splits)");
  return cat("((", dialect_.global, storage_type(dtype), "*)", begin, ")");
}

std::string FoldWriter::write_partial(const std::string& place, const std::string& indent) const {
  const std::vector<Carried> all = carried(plan_.phases[0].reduces);
  std::string text;
  for (size_t k = 0; k < all.size(); ++k) {
    text += cat(indent, scratch(k, all[k].dtype), "[", place, "] = ", all[k].variable, ";\n");
  }
  return text;
}

std::string FoldWriter::step_partial(const std::string& place, const std::string& indent) const {
  return join_all(plan_.phases[0].reduces, indent, [&](const std::vector<Carried>& all, size_t k) {
    return cat(scratch(k, all[k].dtype), "[", place, "]");
  });
}

}  // namespace tessera
