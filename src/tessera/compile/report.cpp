#include <iomanip>
#include <sstream>

#include "tessera/compile/program.h"

namespace tessera {

namespace {

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

}  // namespace

std::string to_string(const Report& r) {
  std::ostringstream out;
  out << "nodes          " << r.nodes << '\n'
      << "kernels        " << r.kernels << " (" << r.generated << " generated, "
      << r.kernels - r.generated << " named)\n"
      << "bytes moved    " << human(r.bytes_moved) << '\n'
      << "copies         " << r.copies << '\n'
      << "donated        " << r.donated << '\n'
      << "recomputed     " << r.rematerialized << '\n'
      << "memory         " << human(r.external_bytes) << " inputs and state, "
      << human(r.output_bytes) << " outputs, " << human(r.temporary_bytes)
      << " temporaries at peak\n";
  for (const MemoryItem& item : r.at_peak)
    out << "  at peak      " << human(item.bytes) << "  " << item.label << '\n';
  return out.str();
}

std::string to_string(const Program& program) {
  std::ostringstream out;
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    const Instruction& instruction = program.instructions[i];
    out << '#' << i << ' ' << instruction.label;
    if (instruction.lane != Lane::compute) out << " [" << lane_name(instruction.lane) << ']';
    out << " (";
    const size_t outputs = instruction.buffers.size() - size_t(instruction.call.outputs);
    for (size_t k = 0; k < instruction.buffers.size(); ++k) {
      if (k > 0) out << (k == outputs ? " -> " : ", ");
      if (k == 0 && outputs == 0) out << "-> ";
      const OperandView& operand = instruction.call.operands[k];
      out << buffer_name(program, instruction.buffers[k]) << ' ' << name(operand.dtype)
          << to_string(operand.view.shape);
    }
    out << ")\n";
    if (instruction.call.ir) out << to_string(*instruction.call.ir);
  }
  return out.str();
}

}  // namespace tessera
