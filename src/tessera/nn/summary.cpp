#include "tessera/nn/summary.h"

#include <algorithm>
#include <array>
#include <vector>

#include "tessera/nn/module.h"

namespace tessera {

namespace {

constexpr size_t kColumns = 6;
constexpr std::array<bool, kColumns> kToTheRight = {false, false, false, true, true, false};

using Row = std::array<std::string, kColumns>;

int64_t bytes_of(const Var& var) { return byte_size(Type{var.dtype(), var.shape()}); }

Row row_of(const NamedVar& named, const char* note) {
  const Var& var = named.var;
  return {named.name,         cat(var.shape()),
          cat(var.dtype()),   cat(numel(var.shape())),
          cat(bytes_of(var)), note};
}

std::string to_text(const std::vector<Row>& rows) {
  std::array<size_t, kColumns> widths{};
  for (const Row& row : rows) {
    for (size_t c = 0; c < kColumns; ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (size_t c = 0; c < kColumns; ++c) {
      const std::string gap(widths[c] - row[c].size(), ' ');
      line += (kToTheRight[c] ? gap + row[c] : row[c] + gap) + "  ";
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace

std::string summary(const Module& module) {
  std::vector<Row> rows = {{"name", "shape", "type", "elements", "bytes", ""}};
  int64_t trained = 0, elements = 0, bytes = 0;
  const auto add = [&](const NamedVar& named, const char* note) {
    rows.push_back(row_of(named, note));
    bytes += bytes_of(named.var);
  };
  for (const NamedVar& named : module.named_parameters()) {
    const bool trainable = named.var.trainable();
    add(named, trainable ? "" : "frozen");
    elements += numel(named.var.shape());
    if (trainable) trained += numel(named.var.shape());
  }
  for (const NamedVar& named : module.named_buffers()) add(named, "buffer");
  return to_text(rows) +
         cat(elements, " parameters, ", trained, " of them trained; ", bytes, " bytes\n");
}

}  // namespace tessera
