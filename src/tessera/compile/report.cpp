#include <algorithm>
#include <iomanip>
#include <sstream>
#include <utility>

#include "tessera/compile/program.h"
#include "tessera/graph/scope.h"

namespace tessera {

namespace {

constexpr size_t kTimelineRows = 32;
constexpr int kBarWidth = 40;

std::string human(int64_t bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = double(bytes);
  int unit = 0;
  while (value >= 1024 && unit < 4) {
    value /= 1024;
    ++unit;
  }
  std::ostringstream out;
  out << std::fixed << std::setprecision(unit == 0 ? 0 : 1) << value << ' ' << kUnits[unit];
  return out.str();
}

const char* lane_name(Lane lane) {
  switch (lane) {
    case Lane::compute: return "compute";
    case Lane::copy: return "copy";
    case Lane::communicate: return "communicate";
  }
  return "";
}

std::string buffer_name(const Program& program, int b) {
  if (b < 0) return "-";
  const PlannedBuffer& buffer = program.buffers[size_t(b)];
  switch (buffer.kind) {
    case BufferKind::temporary: return cat("temp", b, "@", buffer.offset);
    case BufferKind::external: return cat("external", buffer.index);
    case BufferKind::output: return cat("output", buffer.index);
  }
  return "";
}

// "#3 matmul (in mlp/fc1, model.cpp:42)"
std::string instruction_name(const Program& program, size_t i) {
  const Instruction& instruction = program.instructions[i];
  return cat('#', i, ' ', instruction.label, origin(instruction.scope, instruction.line));
}

// "external0 f32[8] -> output0 f32[8]", for each part of a joined kernel.
std::vector<std::string> operand_texts(const Program& program, const Instruction& instruction) {
  const KernelCall& call = instruction.call;
  const size_t outputs = call.operands.size() - size_t(call.outputs);
  std::vector<std::string> parts(std::max<size_t>(call.parts.size(), 1));
  std::vector<char> has_outputs(parts.size(), 0);
  for (size_t k = 0; k < call.operands.size(); ++k) {
    const size_t part = part_operand(call, k).part;
    std::string& text = parts[part];
    const bool is_first = k >= outputs && !std::exchange(has_outputs[part], 1);
    text += is_first ? (text.empty() ? "-> " : " -> ") : (text.empty() ? "" : ", ");
    text += cat(buffer_name(program, instruction.buffers[k]), ' ', name(call.operands[k].dtype),
                to_string(call.operands[k].view.shape));
  }
  return parts;
}

}  // namespace

std::string to_string(const Report& r) {
  std::ostringstream out;
  out << "nodes          " << r.nodes << '\n'
      << "kernels        " << r.kernels << " (" << r.generated << " generated, "
      << r.kernels - r.generated << " named)\n"
      << "bytes moved    " << human(r.bytes_moved) << '\n'
      << "copies         " << r.copies << '\n'
      << "donated        " << r.donated << '\n'
      << "recomputed     " << r.recomputed << '\n'
      << "rematerialized " << r.rematerialized << '\n'
      << "memory         " << human(r.external_bytes) << " inputs and state, "
      << human(r.output_bytes) << " outputs, " << human(r.temporary_bytes)
      << " temporaries at peak\n";
  for (const MemoryItem& item : r.at_peak) {
    out << "  at peak      " << human(item.bytes) << "  " << item.label
        << (item.scope.empty() ? "" : " in " + item.scope) << '\n';
  }
  return out.str();
}

std::string memory_text(const Program& program) {
  const Report& r = program.report;
  std::ostringstream out;
  out << "temporaries    " << human(r.temporary_bytes) << " in the arena";
  if (r.peak_at < 0) {
    out << '\n';
    return out.str();
  }
  out << ", at most " << human(r.peak_bytes) << " alive at once: while "
      << instruction_name(program, size_t(r.peak_at)) << " runs\n\ntimeline\n";
  const size_t step = (r.timeline.size() + kTimelineRows - 1) / kTimelineRows;
  for (size_t first = 0; first < r.timeline.size(); first += step) {
    const size_t end = std::min(first + step, r.timeline.size());
    const auto most =
        std::max_element(r.timeline.begin() + int64_t(first), r.timeline.begin() + int64_t(end));
    // Rounded up: what is alive shows.
    const int64_t bar = (*most * kBarWidth + r.peak_bytes - 1) / r.peak_bytes;
    const std::string range = step == 1 ? cat('#', first) : cat('#', first, "-#", end - 1);
    out << "  " << std::left << std::setw(13) << range << std::right << std::setw(10)
        << human(*most) << "  " << std::left << std::setw(kBarWidth)
        << std::string(size_t(bar), '#') << "  "
        << program.instructions[size_t(most - r.timeline.begin())].label << '\n';
  }
  out << "\npeak by scope\n";
  for (const ScopeBytes& item : r.peak_by_scope) {
    out << std::right << std::setw(12) << human(item.bytes) << std::setw(5)
        << (100 * item.bytes + r.peak_bytes / 2) / r.peak_bytes << " %  "
        << (item.scope.empty() ? "(no scope)" : item.scope) << '\n';
  }
  return out.str();
}

std::string to_string(const Program& program) {
  std::ostringstream out;
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    const Instruction& instruction = program.instructions[i];
    out << '#' << i << ' ' << instruction.label;
    if (instruction.lane != Lane::compute) out << " [" << lane_name(instruction.lane) << ']';
    const std::vector<std::string> parts = operand_texts(program, instruction);
    out << " (" << parts[0] << ")\n";
    for (size_t p = 1; p < parts.size(); ++p) out << "  and (" << parts[p] << ")\n";
    if (instruction.call.ir) out << to_string(*instruction.call.ir);
  }
  return out.str();
}

}  // namespace tessera
