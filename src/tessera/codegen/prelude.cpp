#include "tessera/codegen/prelude.h"

#include <cmath>
#include <vector>

#include "tessera/codegen/plan.h"
#include "tessera/codegen/text.h"

namespace tessera {

namespace {

// A helper and the text that shows it is used.
struct Part {
  std::string trigger;
  std::string text;
};

// Halves are converted here rather than by a vendor's header, so that the bits of base/half.h come
// out everywhere. No step makes an f32 subnormal: a GPU compiler may flush those to zero.
constexpr std::string_view kF16ToF32 =
    "$fn f32 t_f16_to_f32(u16 h) {\n"
    "  const u32 sign = (u32)(h & 0x8000u) << 16, magnitude = h & 0x7fffu, tail = h & 0x3ffu;\n"
    "  const u32 tiny = t_bits((f32)tail * 5.9604644775390625e-8f);\n"
    "  const u32 finite = magnitude < 0x400u ? tiny : (magnitude << 13) + 0x38000000u;\n"
    "  const u32 special = tail != 0 ? 0x7fc00000u | (tail << 13) : 0x7f800000u;\n"
    "  return t_float((magnitude >= 0x7c00u ? special : finite) | sign);\n"
    "}\n";

constexpr std::string_view kF32ToF16 =
    "$fn u16 t_f32_to_f16(f32 f) {\n"
    "  const u32 bits = t_bits(f), sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;\n"
    "  if (magnitude > 0x7f800000u) return (u16)(sign | 0x7e00u);\n"
    "  if (magnitude >= 0x477ff000u) return (u16)(sign | 0x7c00u);\n"
    "  if (magnitude < 0x33000000u) return (u16)sign;\n"
    "  if (magnitude < 0x38800000u) {\n"
    "    const u32 shift = 126u - (magnitude >> 23);\n"
    "    const u32 mantissa = (magnitude & 0x7fffffu) | 0x800000u;\n"
    "    const u32 kept = mantissa >> shift, rest = mantissa & ((1u << shift) - 1u);\n"
    "    const u32 middle = 1u << (shift - 1u);\n"
    "    const u32 up = rest > middle || (rest == middle && (kept & 1u)) ? 1u : 0u;\n"
    "    return (u16)(sign | (kept + up));\n"
    "  }\n"
    "  return (u16)(sign | ((magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> "
    "13));\n"
    "}\n";

constexpr std::string_view kF32ToBf16 =
    "$fn u16 t_f32_to_bf16(f32 f) {\n"
    "  const u32 bits = t_bits(f);\n"
    "  if ((bits & 0x7fffffffu) > 0x7f800000u) return (u16)((bits >> 16) | 0x0040u);\n"
    "  return (u16)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);\n"
    "}\n";

// Philox4x32-10 with the lanes and offsets of base/philox.h. Unrolled, not for speed alone:
// PoCL 3.1 loses turns of a loop around it that not all lanes take part in.
constexpr std::string_view kUniform =
    "$fn f32 t_uniform(i64 index, i64 key, i64 offset) {\n"
    "  const u64 counter = (u64)offset + ((u64)index >> 2);\n"
    "  u32 c0 = (u32)counter, c1 = (u32)(counter >> 32), c2 = 0, c3 = 0;\n"
    "  u32 k0 = (u32)key, k1 = (u32)((u64)key >> 32);\n"
    "  #pragma unroll\n"
    "  for (i32 turn = 0; turn < 10; ++turn) {\n"
    "    const u64 p0 = (u64)0xD2511F53u * c0, p1 = (u64)0xCD9E8D57u * c2;\n"
    "    c0 = (u32)(p1 >> 32) ^ c1 ^ k0;\n"
    "    c1 = (u32)p1;\n"
    "    c2 = (u32)(p0 >> 32) ^ c3 ^ k1;\n"
    "    c3 = (u32)p0;\n"
    "    k0 += 0x9E3779B9u;\n"
    "    k1 += 0xBB67AE85u;\n"
    "  }\n"
    "  const u32 pair0 = (index & 1) ? c1 : c0, pair1 = (index & 1) ? c3 : c2;\n"
    "  return (f32)(((index & 2) ? pair1 : pair0) >> 8) * 5.9604644775390625e-8f;\n"
    "}\n";

// A helper of scalar_ops.def's expressions, once per type: $T is the type, $U the type it wraps in,
// $W its width. Signed shifts to the right are arithmetic in both dialects.
struct TypedPart {
  std::string_view name, floating, signed_integer, unsigned_integer;
};

constexpr std::string_view kMaximum =
    "$fn $T t_maximum_$T($T a, $T b) {\n  return a > b || a != a ? a : b;\n}\n";
constexpr std::string_view kMinimum =
    "$fn $T t_minimum_$T($T a, $T b) {\n  return a < b || a != a ? a : b;\n}\n";

constexpr std::string_view kFloorDivFloat =
    "$fn $T t_floor_div_$T($T a, $T b) {\n"
    "  const $T rest = fmod(a, b);\n"
    "  $T quotient = (a - rest) / b;\n"
    "  if (b == 0) return a / b;\n"
    "  if (rest != 0 && (rest < 0) != (b < 0)) quotient -= 1;\n"
    "  if (quotient == 0) return copysign(($T)0, a / b);\n"
    "  const $T whole = floor(quotient);\n"
    "  return 2 * (quotient - whole) > 1 ? whole + 1 : whole;\n"
    "}\n";

constexpr std::string_view kFloorDivSigned =
    "$fn $T t_floor_div_$T($T a, $T b) {\n"
    "  if (b == 0) return 0;\n"
    "  if (b == -1) return ($T)(0 - ($U)a);\n"
    "  const $T quotient = a / b, rest = a % b;\n"
    "  return rest != 0 && (rest < 0) != (b < 0) ? quotient - 1 : quotient;\n"
    "}\n";

constexpr std::string_view kModFloat =
    "$fn $T t_mod_$T($T a, $T b) {\n"
    "  const $T rest = fmod(a, b);\n"
    "  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;\n"
    "}\n";

constexpr std::string_view kModSigned =
    "$fn $T t_mod_$T($T a, $T b) {\n"
    "  if (b == 0 || b == -1) return 0;\n"
    "  const $T rest = a % b;\n"
    "  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;\n"
    "}\n";

constexpr std::string_view kShiftLeft =
    "$fn $T t_shift_left_$T($T a, $T b) {\n"
    "  return (u64)b < $W ? ($T)(($U)a << b) : 0;\n"
    "}\n";

// See backend/cpu/simd/math.h.
constexpr std::string_view kGeluTanh =
    "$fn $T t_gelu_tanh_$T($T a) {\n"
    "  const $T x = a < -10000 ? -10000 : a;\n"
    "  const $T w = x * (($T)1.5957691216057308 + ($T)0.07135481627260025 * (x * x));\n"
    "  const $T small = exp(-fabs(w)), share = t_inverse_$T(1 + small);\n"
    "  return x * (w < 0 ? small * share : share);\n"
    "}\n";

constexpr std::string_view kGeluTanhSlope =
    "$fn $T t_gelu_tanh_slope_$T($T a) {\n"
    "  const $T x = a < -10000 ? -10000 : a > 10000 ? 10000 : a, square = x * x;\n"
    "  const $T w = x * (($T)1.5957691216057308 + ($T)0.07135481627260025 * square);\n"
    "  const $T small = exp(-fabs(w)), share = t_inverse_$T(1 + small), other = small * share;\n"
    "  const $T slope = ($T)1.5957691216057308 + ($T)0.21406444881780074 * square;\n"
    "  return (w < 0 ? other : share) * (1 + x * (w < 0 ? share : other) * slope);\n"
    "}\n";

constexpr TypedPart kTypedParts[] = {
    {"t_maximum_", kMaximum, "", ""},
    {"t_minimum_", kMinimum, "", ""},
    // 1 / a of a ≥ 1; what would be subnormal may be 0.
    {"t_inverse_", "$fn $T t_inverse_$T($T a) {\n  return 1 / a;\n}\n", "", ""},
    {"t_sigmoid_", "$fn $T t_sigmoid_$T($T a) {\n  return t_inverse_$T(1 + exp(-a));\n}\n", "", ""},
    {"t_tanh_", "$fn $T t_tanh_$T($T a) {\n  return tanh(a);\n}\n", "", ""},
    {"t_abs_", "$fn $T t_abs_$T($T a) {\n  return fabs(a);\n}\n",
     "$fn $T t_abs_$T($T a) {\n  return a < 0 ? ($T)(0 - ($U)a) : a;\n}\n",
     "$fn $T t_abs_$T($T a) {\n  return a;\n}\n"},
    {"t_floor_div_", kFloorDivFloat, kFloorDivSigned,
     "$fn $T t_floor_div_$T($T a, $T b) {\n  return b == 0 ? 0 : a / b;\n}\n"},
    {"t_mod_", kModFloat, kModSigned,
     "$fn $T t_mod_$T($T a, $T b) {\n  return b == 0 ? 0 : a % b;\n}\n"},
    {"t_gelu_tanh_", kGeluTanh, "", ""},
    {"t_gelu_tanh_slope_", kGeluTanhSlope, "", ""},
    {"t_shift_left_", "", kShiftLeft, kShiftLeft},
    {"t_shift_right_", "",
     "$fn $T t_shift_right_$T($T a, $T b) {\n"
     "  return (u64)b < $W ? a >> b : a < 0 ? -1 : 0;\n}\n",
     "$fn $T t_shift_right_$T($T a, $T b) {\n  return (u64)b < $W ? a >> b : 0;\n}\n"},
};

void add_typed_parts(std::vector<Part>& parts) {
  for (const TypedPart& part : kTypedParts) {
    for (const DType dtype :
         {DType::f32, DType::f64, DType::i8, DType::i32, DType::i64, DType::u8, DType::u32}) {
      const std::string_view text = is_float(dtype)         ? part.floating
                                    : info(dtype).is_signed ? part.signed_integer
                                                            : part.unsigned_integer;
      if (text.empty()) continue;
      const std::string wrapping = size_of(dtype) == 8 ? "u64" : "u32";
      parts.push_back(
          {cat(part.name, name(dtype), "("),
           replace_all(replace_all(replace_all(text, "$T", name(dtype)), "$U", wrapping), "$W",
                       cat(8 * size_of(dtype)))});
    }
  }
}

// Several elements as one access: f32x4.
void add_vectors(std::vector<Part>& parts, const Dialect& dialect) {
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::i8, DType::i32, DType::i64,
                            DType::u8, DType::u32}) {
    for (const int width : {2, 4, 8}) {
      const std::string type(storage_type(dtype)), name = cat(type, "x", width);
      const std::string bytes = cat(access_alignment(width, size_of(dtype)));
      const std::string sized =
          replace_all(replace_all(dialect.vector, "$bytes", bytes), "$width", cat(width));
      parts.push_back({name + " ", replace_all(replace_all(sized, "$type", type), "$name", name)});
    }
  }
}

// Casts of floats stay in range, and NaN becomes 0; C leaves both undefined. The bounds are powers
// of two, which floats hold exactly.
void add_casts(std::vector<Part>& parts) {
  for (const DType from : {DType::f32, DType::f64}) {
    for (const DType to : {DType::i8, DType::i32, DType::i64, DType::u8, DType::u32}) {
      const int bits = 8 * size_of(to) - (info(to).is_signed ? 1 : 0);
      const double end = std::ldexp(1.0, bits), start = info(to).is_signed ? -end : 0;
      const auto number = [from](double x) { return literal(from, scalar_bits(from, x)); };
      const std::string name = cast_function(from, to);
      parts.push_back(
          {name + "(", cat("$fn ", register_type(to), " ", name, "(", register_type(from),
                           " x) {\n  if (x != x) return 0;\n  if (x <= ", number(start),
                           ") return ", lowest_literal(to), ";\n  return x >= ", number(end), " ? ",
                           highest_literal(to), " : (", register_type(to), ")x;\n}\n")});
    }
  }
}

// In the order of use: a part may call those before it. Macros serve where C has no overloads.
std::vector<Part> parts_of(const Dialect& dialect) {
  std::vector<Part> parts = {
      {"f64", std::string(dialect.f64_header)},
      {"t_float(", std::string(dialect.float_from_bits)},
      {"t_bits(", std::string(dialect.bits_from_float)},
      {"t_double(", std::string(dialect.double_from_bits)},
      {"t_f16_to_f32(", std::string(kF16ToF32)},
      {"t_f32_to_f16(", std::string(kF32ToF16)},
      {"t_bf16_to_f32(", "$fn f32 t_bf16_to_f32(u16 h) {\n  return t_float((u32)h << 16);\n}\n"},
      {"t_f32_to_bf16(", std::string(kF32ToBf16)},
      // Whether (v, i) is the better candidate of an argmax: NaN is greatest, ties go to the first.
      {"t_beats(",
       "#define t_beats(v, i, best, at)                        \\\n"
       "  ((v) > (best) || ((v) != (v) && (best) == (best)) || \\\n"
       "   (((v) == (best) || ((v) != (v) && (best) != (best))) && (i) < (at)))\n"},
      {"t_uniform(", std::string(kUniform)},
      // For what is rounded to a half afterwards.
      {"t_near_quotient(", "$fn f32 t_near_quotient(f32 a, f32 b) {\n  return a / b;\n}\n"},
      {"t_near_exp(", "$fn f32 t_near_exp(f32 a) {\n  return exp(a);\n}\n"},
      // Where many quotients have one divisor: what is computed of it once, and a quotient.
      {"t_divisor(", "$fn f32 t_divisor(f32 b) {\n  return b;\n}\n"},
      {"t_quotient(",
       "$fn f32 t_quotient(f32 a, f32 b, f32 divisor) {\n  return a / divisor;\n}\n"},
      {"t_near_share(",
       "$fn f32 t_near_share(f32 a, f32 b, f32 divisor) {\n  return a / divisor;\n}\n"},
      {"t_prefetch(", "$fn void t_prefetch(const void*) {}\n"},
      {"t_put(",
       "struct alignas(16) t_bytes {\n  u8 at[16];\n};\n"
       "$fn void t_put(void* at, const void* from) {\n"
       "  *(t_bytes*)at = *(const t_bytes*)from;\n}\n"},
      // Elsewhere given by whoever runs the text.
      {"t_arrive(", "void t_arrive();\n"},
      {"t_await(", "void t_await();\n"},
      {"t_of_group(", "void* t_of_group(void* at, i32 group);\n"},
  };
  add_vectors(parts, dialect);
  add_typed_parts(parts);
  add_casts(parts);
  for (Part& part : parts) {
    for (const NativeHelper& native : dialect.natives) {
      if (native.trigger != part.trigger) continue;
      part.text =
          cat("#if ", native.condition, "\n", native.text, "#else\n", part.text, "#endif\n");
    }
  }
  return parts;
}

}  // namespace

std::string prelude(const std::string& kernel_text, const Dialect& dialect, bool narrow_index) {
  const std::vector<Part> parts = parts_of(dialect);
  std::string helpers;
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    const bool used = kernel_text.find(part->trigger) != std::string::npos ||
                      helpers.find(part->trigger) != std::string::npos;
    if (used) helpers = replace_all(part->text, "$fn", dialect.function) + helpers;
  }
  return cat(dialect.header, narrow_index ? "typedef i32 idx;\n" : "typedef i64 idx;\n", helpers);
}

}  // namespace tessera
