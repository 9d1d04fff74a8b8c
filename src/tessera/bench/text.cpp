#include "tessera/bench/text.h"

#include <algorithm>

#include "tessera/bench/format.h"

namespace tessera::bench {

namespace {

constexpr size_t kNameWidth = 42, kCellWidth = 12, kRateWidth = 19, kNarrowWidth = 8;
constexpr const char* kAbsent = "—";

std::string gigabytes(double rate) { return three_digits(rate * 1e-9) + " GB/s"; }

std::string cell_text(const Line& line, const std::string& column, const Results& results) {
  const Measurement* cell = line.find(column);
  if (cell == nullptr) return cat(absence_text(results, column), " ");
  return time_text(cell->time.median) + (cell->time.is_noisy() ? "~" : " ");
}

std::string ratio_text(const std::optional<Relation>& ratio) {
  return ratio ? three_digits(ratio->value) : kAbsent;
}

std::string rate_of(const Line& line, const Measurement* cell) {
  return right(cell == nullptr ? kAbsent : rate_text(line.rate(*cell), line.unit), kRateWidth);
}

std::string share_of(const Line& line, const Measurement* cell, const Limits& limits) {
  const std::optional<Relation> share = cell == nullptr ? std::nullopt : line.share(limits, *cell);
  return right(share ? percent_text(share->value) : kAbsent, kNarrowWidth);
}

std::string absent_text(const Results& results) {
  std::string text;
  for (const AbsentDevice& one : results.absent) {
    text += cat("no device   ", one.device, ": ", one.reason, "\n");
  }
  return text;
}

// "  1 MB in 417 s on cpu; 2.31 GB on cpu; B = 32"
std::string notes_text(const Line& line) {
  std::string text;
  const auto add = [&](const std::string& note) { text += cat(text.empty() ? "  " : "; ", note); };
  for (const Measurement& cell : line.cells) {
    const std::optional<double> epoch = line.epoch_seconds(cell);
    if (epoch) add(cat("1 MB in ", time_text(*epoch), " on ", cell.column));
  }
  for (const Fact& fact : line.facts) {
    if (!fact.name.starts_with(kMemoryOn)) continue;
    add(cat(three_digits(fact.value * 1e-9), " GB on ", fact.name.substr(kMemoryOn.size())));
  }
  if (!line.note.empty()) add(line.note);
  return text;
}

// Columns behind the times.
std::string tail_text(const Line& line, const Results& results) {
  const Measurement* own = line.subject();
  std::string text = rate_of(line, own) + right(ratio_text(line.ratio()), kNarrowWidth) +
                     share_of(line, own, results.limits);
  for (size_t i = 1; i < results.devices.size(); ++i) {
    const Measurement* other = line.find(results.devices[i]);
    text += rate_of(line, other == own ? nullptr : other) +
            share_of(line, other == own ? nullptr : other, results.limits);
  }
  const Measurement* library = line.find(kLibrary);
  if (library != nullptr) text += cat("  ", library->by);
  return text + notes_text(line);
}

// "cuda:0 NVIDIA H200, …: copy 4,000 GB/s; products of f32 50.0 TFLOP/s (8192)"
std::string device_limits_text(const Limits::OfDevice& device) {
  std::string text = cat("            ", device.device, ", ", device.description,
                         "\n              copy ", gigabytes(device.copy_bytes));
  for (const Limits::Product& product : device.products) {
    text += cat("; product of ", name(product.dtype), " ", product.extent, ": ",
                three_digits(product.flops * 1e-9), " GFLOP/s");
  }
  return text + "\n";
}

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

std::string_view absence_text(const Results& results, std::string_view column) {
  return results.is_absent(column) ? "no device" : kAbsent;
}

std::string title_of(const std::string& column) { return column == kBytes ? "same bytes" : column; }

std::string machine_text(const Results& results) {
  const Machine& machine = results.machine;
  return cat(
      "machine     ", machine.cpu, ", ", machine.threads, " threads, ", machine.isa, "\n",
      "tessera     ", machine.version, ", ", machine.compiler, "\n", "device cpu  ",
      machine.description, "\n", absent_text(results),
      results.quick ? "quick       few samples: good for factors, not for percentages\n" : "");
}

std::string limits_text(const Limits& limits) {
  std::string text;
  for (const Limits::Fma& rate : limits.fma) {
    text += cat(text.empty() ? "limits      " : "            ", "f32 multiply-adds, ", rate.isa,
                ": ", three_digits(rate.one_thread * 1e-9), " GFLOP/s on one thread, ",
                three_digits(rate.all_threads * 1e-9), " on all\n");
  }
  text += cat("            memory, all threads: copy ", gigabytes(limits.copy_bytes),
              past(limits.copy_past), ", two read and one written ", gigabytes(limits.add_bytes),
              past(limits.add_past), "\n");
  for (const Limits::OfDevice& device : limits.devices) text += device_limits_text(device);
  return text;
}

std::string header_text(std::string_view suite, const std::vector<std::string>& devices) {
  std::string text = cat("\n", left(std::string(suite), kNameWidth));
  for (const std::string& column : columns_of(suite, devices)) {
    text += right(title_of(column) + " ", std::max(kCellWidth, column.size() + 2));
  }
  text +=
      cat(right("rate", kRateWidth), right("ratio", kNarrowWidth), right("share", kNarrowWidth));
  for (size_t i = 1; i < devices.size(); ++i) {
    text += cat(right(devices[i] + " rate", kRateWidth), right("share", kNarrowWidth));
  }
  return text + "\n";
}

std::string line_text(const Line& line, const Results& results) {
  if (line.no_device) return cat(left(line.name, kNameWidth), "  no device\n");
  if (!line.passed()) return cat(left(line.name, kNameWidth), "  wrong: ", wrong_text(line), "\n");
  std::string text = left(line.name, kNameWidth);
  for (const std::string& column : columns_of(line.suite, results.devices)) {
    text += right(cell_text(line, column, results), std::max(kCellWidth, column.size() + 2));
  }
  return cat(text, tail_text(line, results), "\n");
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
      "the plain loop;\nshare: of the device's limit; — not measured\n";
  if (results.left_out > 0) {
    text += cat(results.left_out, " lines that take long were left out: run without --quick\n");
  }
  const auto wrong =
      std::ranges::count_if(results.lines, [](const Line& l) { return !l.passed(); });
  if (wrong > 0) text += cat(wrong, " of ", results.lines.size(), " lines are wrong\n");
  return text;
}

}  // namespace tessera::bench
