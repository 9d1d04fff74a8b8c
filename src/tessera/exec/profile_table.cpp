#include <algorithm>
#include <iomanip>
#include <sstream>

#include "tessera/exec/profile.h"

namespace tessera {

namespace {

constexpr size_t kTableRows = 40;  // the rest is one row
constexpr size_t kLabelWidth = 40, kScopeWidth = 28;

const char* prefix(Profile::Kind kind) {
  switch (kind) {
    case Profile::Kind::kernel: return "";
    case Profile::Kind::run: return "host: ";
    case Profile::Kind::compile: return "compile: ";
    case Profile::Kind::transfer: return "transfer: ";
    case Profile::Kind::trace: return "trace: ";
  }
  return "";
}

// The beginning of a label and the end of a path say most.
std::string shortened(const std::string& text, size_t width, bool keep_end) {
  if (text.size() <= width) return text;
  const size_t kept = width - 3;
  return keep_end ? "..." + text.substr(text.size() - kept) : text.substr(0, kept) + "...";
}

std::string number(double value, int digits) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(digits) << value;
  return out.str();
}

struct Column {
  const char* title;
  bool right;
};
constexpr Column kColumns[] = {
    {"kernel", false}, {"scope", false}, {"calls", true}, {"total ms", true}, {"share %", true},
    {"mean us", true}, {"MB", true},     {"GB/s", true},  {"GFLOP/s", true},
};
using Cells = std::vector<std::string>;

// `per_ns` is also 10⁹ a second: bytes a ns are GB/s.
std::string per_ns(double amount, int64_t nanoseconds) {
  return amount > 0 && nanoseconds > 0 ? number(amount / double(nanoseconds), 1) : "";
}

Cells cells_of(const Profile::Row& row, int64_t wall) {
  return {shortened(prefix(row.kind) + row.label, kLabelWidth, false),
          shortened(row.scope, kScopeWidth, true),
          row.calls > 0 ? cat(row.calls) : "",
          number(double(row.nanoseconds) / 1e6, 3),
          wall > 0 ? number(100.0 * double(row.nanoseconds) / double(wall), 1) : "",
          row.calls > 0 ? number(double(row.nanoseconds) / 1e3 / double(row.calls), 2) : "",
          row.bytes > 0 ? number(double(row.bytes) / 1e6, 2) : "",
          per_ns(double(row.bytes), row.nanoseconds),
          per_ns(row.flops, row.nanoseconds)};
}

std::string aligned(const std::vector<Cells>& lines) {
  size_t width[std::size(kColumns)] = {};
  for (const Cells& cells : lines) {
    for (size_t i = 0; i < cells.size(); ++i) width[i] = std::max(width[i], cells[i].size());
  }
  std::string text;
  for (const Cells& cells : lines) {
    std::string line;
    for (size_t i = 0; i < cells.size(); ++i) {
      const std::string space(width[i] - cells[i].size(), ' ');
      line += (i > 0 ? "  " : "") + (kColumns[i].right ? space + cells[i] : cells[i] + space);
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

// Keeps the first rows; the last then holds what the others add up to.
void fold_rest(std::vector<Profile::Row>& rows) {
  if (rows.size() <= kTableRows) return;
  Profile::Row rest{Profile::Kind::kernel, cat(rows.size() - kTableRows, " more rows"), ""};
  for (size_t i = kTableRows; i < rows.size(); ++i) {
    rest.calls += rows[i].calls;
    rest.nanoseconds += rows[i].nanoseconds;
    rest.bytes += rows[i].bytes;
  }
  rows.resize(kTableRows);
  rows.push_back(std::move(rest));
}

}  // namespace

std::string to_string(const Profile& profile) {
  std::vector<Profile::Row> rows = profile.rows();
  const int64_t wall = profile.nanoseconds();
  int64_t known = 0, in_kernels = 0;
  for (const Profile::Row& row : rows) {
    known += row.nanoseconds;
    if (row.kind == Profile::Kind::kernel) in_kernels += row.nanoseconds;
  }
  // Threads that work side by side may have spent more than the wall time.
  rows.push_back({Profile::Kind::run, "other", "", 0, std::max<int64_t>(wall - known, 0)});
  std::ranges::stable_sort(rows, std::greater<>(), &Profile::Row::nanoseconds);
  fold_rest(rows);
  std::vector<Cells> lines(1);
  for (const Column& column : kColumns) lines[0].emplace_back(column.title);
  for (const Profile::Row& row : rows) lines.push_back(cells_of(row, wall));
  std::string text = aligned(lines) + cat("wall time ", number(double(wall) / 1e6, 3), " ms, ",
                                          number(double(in_kernels) / 1e6, 3), " ms in kernels\n");
  if (const int64_t dropped = profile.dropped(); dropped > 0) {
    text += cat(dropped, " more events are in this table but not in the trace\n");
  }
  return text;
}

}  // namespace tessera
