#include "tessera/bench/text.h"

#include <algorithm>

#include "tessera/bench/format.h"

namespace tessera::bench {

namespace {

constexpr size_t kNameWidth = 42, kCellWidth = 12, kRateWidth = 19, kNarrowWidth = 8;
constexpr const char* kAbsent = "—";

std::string cell_text(const Line& line, const std::string& column) {
  const Measurement* cell = line.find(column);
  if (cell == nullptr) return cat(kAbsent, " ");
  return time_text(cell->time.median) + (cell->time.is_noisy() ? "~" : " ");
}

std::string ratio_text(const std::optional<Relation>& ratio) {
  return ratio ? three_digits(ratio->value) : kAbsent;
}

// Columns behind the times.
std::string tail_text(const Line& line, const Limits& limits) {
  const Measurement* own = line.subject();
  const std::optional<Relation> share = line.share(limits);
  const Measurement* library = line.find(kLibrary);
  return right(own == nullptr ? kAbsent : rate_text(line.rate(*own), line.unit), kRateWidth) +
         right(ratio_text(line.ratio()), kNarrowWidth) +
         right(share ? percent_text(share->value) : kAbsent, kNarrowWidth) +
         (library == nullptr ? "" : "  " + library->by);
}

std::string gigabytes(double rate) { return three_digits(rate * 1e-9) + " GB/s"; }
std::string past(bool yes) { return yes ? " past the caches" : ""; }

}  // namespace

std::vector<std::string> columns_of(std::string_view suite,
                                    const std::vector<std::string>& devices) {
  std::vector<std::string> columns = {std::string(kPlain)};
  if (suite == "matmul") columns.emplace_back(kLibrary);
  if (suite != "matmul" && suite != "step") columns.emplace_back(kBytes);
  for (const std::string& device : devices) {
    columns.push_back(device);
    if (!device.starts_with("cpu") && suite != "transfer")
      columns.push_back(cat(device, kTransfers));
  }
  return columns;
}

std::string title_of(const std::string& column) { return column == kBytes ? "same bytes" : column; }

std::string machine_text(const Results& results) {
  const Machine& machine = results.machine;
  return cat(
      "machine     ", machine.cpu, ", ", machine.threads, " threads, ", machine.isa, "\n",
      "tessera     ", machine.version, ", ", machine.compiler, "\n", "device cpu  ",
      machine.description, "\n",
      results.quick ? "quick       few samples: good for factors, not for percentages\n" : "");
}

std::string limits_text(const Limits& limits) {
  std::string text;
  for (const Limits::Fma& rate : limits.fma) {
    text += cat(text.empty() ? "limits      " : "            ", "f32 multiply-adds, ", rate.isa,
                ": ", three_digits(rate.one_thread * 1e-9), " GFLOP/s on one thread, ",
                three_digits(rate.all_threads * 1e-9), " on all\n");
  }
  return cat(text, "            memory, all threads: copy ", gigabytes(limits.copy_bytes),
             past(limits.copy_past), ", two read and one written ", gigabytes(limits.add_bytes),
             past(limits.add_past), "\n");
}

std::string header_text(std::string_view suite, const std::vector<std::string>& devices) {
  std::string text = cat("\n", left(std::string(suite), kNameWidth));
  for (const std::string& column : columns_of(suite, devices)) {
    text += right(title_of(column) + " ", std::max(kCellWidth, column.size() + 2));
  }
  return cat(text, right("rate", kRateWidth), right("ratio", kNarrowWidth),
             right("share", kNarrowWidth), "\n");
}

std::string line_text(const Line& line, const Limits& limits,
                      const std::vector<std::string>& devices) {
  if (!line.passed()) return cat(left(line.name, kNameWidth), "  wrong: ", wrong_text(line), "\n");
  std::string text = left(line.name, kNameWidth);
  for (const std::string& column : columns_of(line.suite, devices)) {
    text += right(cell_text(line, column), std::max(kCellWidth, column.size() + 2));
  }
  return cat(text, tail_text(line, limits), "\n");
}

std::string claims_text(const std::vector<Claim>& claims) {
  std::string text = "\nThe claims of the field, measured\n";
  for (const Claim& claim : claims) {
    text += cat(left(std::string(name(claim.verdict)), 14), claim.statement, "\n", left("", 14),
                claim.measured, "\n");
  }
  return text;
}

std::string wrong_text(const Line& line) {
  std::string text;
  for (const Check& check : line.checks) {
    if (check.passed()) continue;
    text += cat(text.empty() ? "" : "; ", check.column, ": largest error ",
                three_digits(check.error), " ulps, allowed ", three_digits(check.tolerance));
  }
  return text;
}

std::string footer_text(const Results& results) {
  std::string text =
      "\n~ spread (p90 - p10) above 5 % of the median; ratio: times as fast as the library, else "
      "as "
      "the plain loop;\nshare: of the limit; — not measured\n";
  if (results.left_out > 0) {
    text += cat(results.left_out, " lines that take long were left out: run without --quick\n");
  }
  const auto wrong =
      std::ranges::count_if(results.lines, [](const Line& l) { return !l.passed(); });
  if (wrong > 0) text += cat(wrong, " of ", results.lines.size(), " lines are wrong\n");
  return text;
}

}  // namespace tessera::bench
