#include "tessera/cli/selftest_report.h"

#include <algorithm>
#include <iomanip>
#include <sstream>

namespace tessera::cli {

namespace {

constexpr size_t kLabelWidth = 12;

// The columns of the table of ops: widths, numbers to the right.
constexpr int kOpWidth = 22, kDTypesWidth = 22, kNumberWidth = 9;

std::string verdict(bool passed, const Console& console) {
  return passed ? console.colored("ok", Color::green) : console.colored("FAILED", Color::red);
}

std::string label(std::string text) {
  text.resize(kLabelWidth, ' ');
  return text;
}

std::string fixed(double value, int digits) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(digits) << value;
  return out.str();
}

std::string significant(double value) {
  std::ostringstream out;
  out << std::setprecision(3) << value;
  return out.str();
}

std::string gib(int64_t bytes) { return fixed(double(bytes) / double(1 << 30), 1) + " GiB"; }

std::string rate(int64_t bytes, double seconds) {
  return fixed(double(bytes) / seconds * 1e-9, 1) + " GB/s";
}

// One row of a matrix (2, 2).
std::string row_text(const std::vector<float>& matrix, size_t row) {
  return cat("[", matrix[2 * row], " ", matrix[2 * row + 1], "]");
}

std::string table_line(std::string_view op, std::string_view dtypes,
                       const std::vector<std::string>& numbers) {
  std::ostringstream out;
  out << std::left << std::setw(kOpWidth) << op << std::setw(kDTypesWidth) << dtypes << std::right;
  for (const std::string& number : numbers) out << std::setw(kNumberWidth) << number;
  return out.str();
}

}  // namespace

int64_t SelftestReport::ops_passed() const {
  return std::ranges::count_if(ops, [](const OpCheck& check) { return check.passed(); });
}

bool SelftestReport::passed() const {
  return memory.passed() && small.passed() && ops_passed() == int64_t(ops.size()) &&
         (!large || large->passed());
}

std::string device_text(const DeviceFacts& device) {
  const std::string free = device.free_bytes ? cat(", ", gib(*device.free_bytes), " free") : "";
  std::string text = cat(label("device"), device.name, ": ", device.description, "\n");
  if (!device.instruction_set.empty()) {
    text += cat(label("processor"), device.instruction_set, ", threads: ", device.threads, "\n");
  }
  return text + cat(label("memory"), gib(device.memory_bytes), free, "\n");
}

std::string memory_text(const MemoryCheck& check, bool timed, const Console& console) {
  std::string text = cat(label("round trip"), check.bytes >> 20, " MiB up, copied and down: ");
  if (check.passed()) {
    text += "equal";
  } else {
    text += cat("byte ", *check.first_difference, " differs");
  }
  if (timed) {
    text += cat(", ", rate(check.bytes, check.upload_seconds), " up, ",
                rate(check.bytes, check.copy_seconds), " copied, ",
                rate(check.bytes, check.download_seconds), " down");
  }
  return cat(text, "  ", verdict(check.passed(), console), "\n");
}

std::string small_product_text(const SmallProduct& check, const Console& console) {
  std::string text = cat(label("product"), row_text(check.a, 0), "   ", row_text(check.b, 0), "   ",
                         row_text(check.actual, 0), "\n", label(""), row_text(check.a, 1), " @ ",
                         row_text(check.b, 1), " = ", row_text(check.actual, 1));
  if (!check.passed()) {
    text += cat(", expected ", row_text(check.expected, 0), " ", row_text(check.expected, 1));
  }
  return cat(text, "  ", verdict(check.passed(), console), "\n");
}

std::string ops_header() {
  return cat("\n", table_line("op, errors in ulps", "dtypes", {"cases", "max", "mean", "allowed"}),
             "\n");
}

std::string op_text(const OpCheck& check, const Console& console) {
  const std::string line =
      table_line(name(check.op), dtypes_text(check.dtypes),
                 {cat(check.cases), significant(check.max_error), significant(check.mean_error()),
                  significant(check.tolerance)});
  const std::string reason = check.passed() ? "" : cat("  ", check.failure, "\n");
  return cat(line, "  ", verdict(check.passed(), console), "\n", reason);
}

std::string ops_summary(const SelftestReport& report, const Console& console) {
  const bool all = report.ops_passed() == int64_t(report.ops.size());
  const std::string text = cat(report.ops_passed(), "/", report.ops.size(), " passed");
  return console.colored(text, all ? Color::green : Color::red) + "\n";
}

std::string large_product_text(const LargeProduct& check, const Console& console) {
  const std::string size = cat(check.size);
  return cat("\n", label("matmul"), size, " x ", size, " x ", size,
             " f32: ", fixed(1e3 * check.seconds, 2), " ms (median of ", check.runs, "), ",
             fixed(check.gflops(), 1), " GFLOP/s\n", label(""), check.samples,
             " entries: max error ", significant(check.max_error), " ulps, mean ",
             significant(check.mean_error), ", allowed ", significant(check.tolerance), "  ",
             verdict(check.passed(), console), "\n");
}

std::string dtypes_text(const std::vector<DType>& dtypes) {
  std::vector<DType> rest = dtypes;
  std::string text;
  const auto take = [&](bool (*belongs)(DType), int members, std::string_view word) {
    if (std::ranges::count_if(rest, belongs) != members) return;
    std::erase_if(rest, belongs);
    text += cat(text.empty() ? "" : " ", word);
  };
  take(is_float, 4, "floats");
  take(is_integer, 5, "integers");
  for (const DType dtype : rest) text += cat(text.empty() ? "" : " ", dtype);
  return text;
}

}  // namespace tessera::cli
