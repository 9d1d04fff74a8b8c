#include "tessera/codegen/text.h"

#include <array>
#include <bit>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>

namespace tessera {

namespace {

// How a dtype lives in memory; % stands for the converted text.
struct Storage {
  std::string_view type;
  std::string_view load;
  std::string_view store;
};

constexpr std::array<Storage, kDTypeCount> kStorage = {{
    {"f32", "%", "%"},
    {"f64", "%", "%"},
    {"u16", "t_f16_to_f32(%)", "t_f32_to_f16(%)"},
    {"u16", "t_bf16_to_f32(%)", "t_f32_to_bf16(%)"},
    {"i8", "%", "%"},
    {"i32", "%", "%"},
    {"i64", "%", "%"},
    {"u8", "%", "%"},
    {"u32", "%", "%"},
    {"u8", "% != 0", "(u8)%"},
}};

const Storage& storage(DType dtype) { return kStorage[static_cast<size_t>(dtype)]; }

template <class Float>
std::string shortest(Float value) {
  char digits[32];
  std::string text(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

std::string hex(uint64_t bits) {
  char digits[20];
  return {digits, std::to_chars(digits, digits + sizeof digits, bits, 16).ptr};
}

std::string f32_literal(float value) {
  if (std::isfinite(value)) return shortest(value) + "f";
  return cat("t_float(0x", hex(std::bit_cast<uint32_t>(value)), "u)");
}

std::string f64_literal(double value) {
  if (std::isfinite(value)) return shortest(value);
  return cat("t_double(0x", hex(std::bit_cast<uint64_t>(value)), "u)");
}

std::string integer_literal(DType dtype, int64_t value) {
  if (dtype == DType::boolean) return value != 0 ? "true" : "false";
  if (dtype == DType::u32) return cat(value, "u");
  // C has no negative literals, and the magnitude of the lowest value is out of range.
  const bool lowest = value == std::numeric_limits<int64_t>::min() ||
                      (dtype == DType::i32 && value == std::numeric_limits<int32_t>::min());
  return lowest ? cat("(", value + 1, " - 1)") : cat(value);
}

// The type in which a signed integer wraps; narrower ones are promoted to int and never overflow.
std::string_view wrapping_type(ScalarOp op, DType dtype) {
  const bool wraps =
      op == ScalarOp::neg || op == ScalarOp::add || op == ScalarOp::sub || op == ScalarOp::mul;
  if (wraps && dtype == DType::i32) return "u32";
  if (wraps && dtype == DType::i64) return "u64";
  return "";
}

// Of floats, what a dialect may have better means for than the expression.
std::string_view expression_of(ScalarOp op, DType dtype) {
  if (!is_float(dtype)) return info(op).expression;
  switch (op) {
    case ScalarOp::maximum: return "t_maximum(a, b)";
    case ScalarOp::minimum: return "t_minimum(a, b)";
    case ScalarOp::sigmoid: return "t_sigmoid(a)";
    case ScalarOp::tanh: return "t_tanh(a)";
    default: return info(op).expression;
  }
}

// The helpers of the prelude exist once per type: C has no overloads.
std::string typed_expression(ScalarOp op, DType dtype) {
  const std::string_view text = expression_of(op, dtype);
  if (op == ScalarOp::uniform || !text.starts_with("t_")) return std::string(text);
  const size_t at = text.find('(');
  return cat(text.substr(0, at), "_", register_type(dtype), text.substr(at));
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

template <class Limits>
std::string extreme_literal(DType dtype, Limits limit) {
  return visit(dtype, [&]<class T>() -> std::string {
    if constexpr (std::is_integral_v<T>) {
      return literal(dtype, scalar_bits(dtype, int64_t(limit(std::numeric_limits<T>()))));
    } else {
      const bool negative = limit(std::numeric_limits<double>()) < 0;
      return literal(dtype, scalar_bits(dtype, negative ? -HUGE_VAL : HUGE_VAL));
    }
  });
}

}  // namespace

std::string replace_all(std::string_view text, std::string_view from, std::string_view to) {
  std::string result;
  for (size_t at = text.find(from); at != std::string_view::npos; at = text.find(from)) {
    result.append(text.substr(0, at)).append(to);
    text.remove_prefix(at + from.size());
  }
  return result.append(text);
}

std::string unroll(const std::string& indent) { return indent + "#pragma unroll\n"; }

std::string register_name(const KernelIR& ir, int i) {
  return cat(label(ir.insts[static_cast<size_t>(i)]), "_", i);
}

std::string_view register_type(DType dtype) { return name(compute_type(dtype)); }
std::string_view storage_type(DType dtype) { return storage(dtype).type; }

std::string from_storage(DType dtype, const std::string& element) {
  return replace_all(storage(dtype).load, "%", element);
}

std::string to_storage(DType dtype, const std::string& value) {
  return replace_all(storage(dtype).store, "%", value);
}

std::string literal(DType dtype, uint64_t bits) {
  if (!is_float(dtype)) return integer_literal(dtype, scalar_as_int(dtype, bits));
  const double value = scalar_as_double(dtype, bits);
  return dtype == DType::f64 ? f64_literal(value) : f32_literal(static_cast<float>(value));
}

std::string lowest_literal(DType dtype) {
  return extreme_literal(dtype, [](auto limits) { return limits.lowest(); });
}

std::string highest_literal(DType dtype) {
  return extreme_literal(dtype, [](auto limits) { return limits.max(); });
}

std::string scalar_expression(ScalarOp op, DType dtype, std::string_view a, std::string_view b,
                              std::string_view c) {
  const std::string text = typed_expression(op, dtype);
  const std::string_view wrapping = wrapping_type(op, dtype);
  const std::array<std::string_view, 3> operands = {a, b, c};
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool alone =
        (i == 0 || !is_word(text[i - 1])) && (i + 1 == text.size() || !is_word(text[i + 1]));
    if (!alone || text[i] < 'a' || text[i] > 'c') {
      result += text[i];
      continue;
    }
    if (!wrapping.empty()) result += cat("(", wrapping, ")");
    result += operands[static_cast<size_t>(text[i] - 'a')];
  }
  return wrapping.empty() ? result : cat("(", register_type(dtype), ")(", result, ")");
}

std::string cast_function(DType from, DType to) { return cat("t_", name(from), "_to_", name(to)); }

std::string cast_expression(DType from, DType round_to, const std::string& value) {
  if (round_to == DType::boolean) return cat(value, " != 0");
  const bool truncates = is_float(from) && !is_float(round_to);
  if (truncates) return cat(cast_function(compute_type(from), round_to), "(", value, ")");
  const std::string_view type = register_type(round_to);
  const std::string converted = type == register_type(from) ? value : cat("(", type, ")", value);
  return is_half(round_to) ? from_storage(round_to, to_storage(round_to, converted)) : converted;
}

}  // namespace tessera
