#include "tessera/cli/lattice_words.h"

#include <charconv>
#include <cmath>
#include <iomanip>
#include <sstream>

namespace tessera::cli {

namespace {

template <class T>
bool read_number(std::string_view text, T& value) {
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  return code == std::errc() && end == text.data() + text.size();
}

DType dtype_of_name(const std::string& text) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::i8, DType::u8}) {
    if (name(dtype) == text) return dtype;
  }
  return DType::f32;
}

}  // namespace

VectorFile open_vectors(const Arguments& arguments, const std::string& path) {
  VectorFileOptions options;
  if (arguments.has("--dim")) options.dim = number(arguments, "vectors", "--dim", 0, 1, 65536);
  options.dtype = dtype_of_name(arguments.value("--dtype", "f32"));
  options.tensor = arguments.value("--tensor", "");
  return VectorFile::open(path, options);
}

int64_t number(const Arguments& arguments, std::string_view command, std::string_view option,
               int64_t otherwise, int64_t low, int64_t high) {
  if (!arguments.has(option)) return otherwise;
  const std::string text = arguments.value(option, "");
  int64_t value = 0;
  if (!read_number(text, value) || value < low || value > high) {
    throw UsageError(cat(command, ": ", option, " expects a number from ", low, " to ", high,
                         ", got '", text, "'"));
  }
  return value;
}

double fraction(const Arguments& arguments, std::string_view command, std::string_view option,
                double otherwise) {
  if (!arguments.has(option)) return otherwise;
  const std::string text = arguments.value(option, "");
  double value = 0;
  if (!read_number(text, value) || !(value > 0) || value > 1) {
    throw UsageError(
        cat(command, ": ", option, " expects a number above 0, up to 1, got '", text, "'"));
  }
  return value;
}

int64_t memory_size(std::string_view command, std::string_view text) {
  std::string_view digits = text;
  int shift = 0;
  for (const auto& [suffix, bits] :
       {std::pair<std::string_view, int>{"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}}) {
    if (!digits.ends_with(suffix)) continue;
    digits.remove_suffix(suffix.size());
    shift = bits;
    break;
  }
  int64_t value = 0;
  if (!read_number(digits, value) || value < 1 || value > (INT64_MAX >> shift)) {
    throw UsageError(cat(command, ": --memory expects a size like 512MiB, got '", text, "'"));
  }
  return value << shift;
}

int64_t memory(const Arguments& arguments, std::string_view command) {
  return memory_size(command, arguments.value("--memory", "4GiB"));
}

std::string size_text(int64_t bytes) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(1);
  if (bytes >= int64_t(1) << 30) {
    out << double(bytes) / double(1 << 30) << " GiB";
  } else if (bytes >= 1 << 20) {
    out << double(bytes) / double(1 << 20) << " MiB";
  } else {
    out << double(bytes) / 1024 << " KiB";
  }
  return out.str();
}

}  // namespace tessera::cli
