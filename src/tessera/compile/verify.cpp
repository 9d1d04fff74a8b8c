#include <map>

#include "tessera/compile/passes.h"

namespace tessera {

namespace {

// Whether the view stays inside a buffer of `elements`.
bool inside(const View& view, int64_t elements) {
  const ViewSpan span = span_of(view);
  return span.begin >= 0 && span.end <= elements;
}

std::string check_operand(const Instances& instances, const Operand& o, size_t before) {
  if (o.inst < 0 || size_t(o.inst) >= before) return cat("reads instance ", o.inst, " too early");
  const Instance& source = instances.list[size_t(o.inst)];
  if (o.out < 0 || size_t(o.out) >= source.types.size()) return cat("reads output ", o.out);
  if (o.view.shape.rank() != o.view.strides.rank()) return "has a view with too few strides";
  if (!inside(o.view, stored(source, o.out).elements)) {
    return cat("reads outside ", source.types[size_t(o.out)]);
  }
  return {};
}

}  // namespace

std::string verify_instances(const Instances& instances) {
  for (size_t i = 0; i < instances.list.size(); ++i) {
    const Instance& x = instances.list[i];
    auto wrong = [&](const std::string& what) {
      return cat("instance ", i, " (", name(x.op), ") ", what);
    };
    if (info(x.op).kind == OpKind::move)
      return wrong("is a move, which layout should have removed");
    if (info(x.op).kind == OpKind::marker)
      return wrong("is a marker, which lower should have removed");
    if (x.used.size() != x.types.size()) return wrong("does not know which outputs are used");
    if (!x.stored.empty() && x.stored.size() != x.types.size())
      return wrong("does not know where its outputs lie");
    for (const Stored& where : x.stored) {
      if (!inside(where.view, where.elements)) return wrong("is stored outside its buffer");
    }
    for (const Operand& o : x.inputs) {
      if (const std::string what = check_operand(instances, o, i); !what.empty())
        return wrong(what);
    }
  }
  for (const Operand& o : instances.outputs) {
    if (const std::string what = check_operand(instances, o, instances.list.size());
        !what.empty()) {
      return "an output " + what;
    }
  }
  for (const auto& assign : instances.assigns) {
    const std::string what = check_operand(instances, assign.value, instances.list.size());
    if (!what.empty()) return "an assign " + what;
    const Type& type = instances.externals[size_t(assign.external)];
    if (assign.value.view.shape != type.shape)
      return cat("an assign of ", assign.value.view.shape, " to ", type);
  }
  return {};
}

std::string verify_kernels(const KernelGraph& graph) {
  std::vector<char> written(graph.buffers.size(), 0);
  for (size_t b = 0; b < graph.buffers.size(); ++b) {
    // Nobody computes what has no elements.
    written[b] = graph.buffers[b].kind == BufferKind::external || graph.buffers[b].bytes == 0;
  }
  for (size_t k = 0; k < graph.kernels.size(); ++k) {
    const KernelNode& node = graph.kernels[k];
    auto wrong = [&](const std::string& what) {
      return cat("kernel ", k, " (", node.label, ") ", what);
    };
    if (node.buffers.size() != node.call.operands.size())
      return wrong("has operands without buffers");
    if (node.call.ir) {
      if (const std::string what = verify(*node.call.ir); !what.empty()) return wrong(what);
    }
    for (size_t i = 0; i < node.buffers.size(); ++i) {
      const int b = node.buffers[i];
      const bool output = i >= first_output(node);
      if (b < 0) {
        if (!output) return wrong("has an input without a buffer");
        continue;
      }
      if (!output && !written[size_t(b)])
        return wrong(cat("reads buffer ", b, " before it is written"));
      const PlannedBuffer& buffer = graph.buffers[size_t(b)];
      const int64_t elements = buffer.bytes / size_of(buffer.type.dtype);
      if (!inside(node.call.operands[i].view, elements)) return wrong("leaves a buffer");
      if (output) written[size_t(b)] = 1;
    }
    for (const int before : graph.after[k]) {
      if (before >= int(k)) return wrong(cat("overwrites what kernel ", before, " still reads"));
    }
  }
  return {};
}

std::string verify_program(const Program& program) {
  // Runs the program on the names of what lies at each place: a read must find what was written for
  // it, so two live temporaries never overlap. Reads of a kernel come before its writes.
  std::map<int64_t, std::pair<int64_t, int>> memory;  // begin -> (end, buffer)
  auto write = [&memory](int64_t begin, int64_t end, int buffer) {
    for (auto it = memory.begin(); it != memory.end();) {
      const bool overlaps = it->first < end && begin < it->second.first;
      it = overlaps ? memory.erase(it) : std::next(it);
    }
    memory[begin] = {end, buffer};
  };
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    const Instruction& instruction = program.instructions[i];
    const size_t outputs = instruction.buffers.size() - size_t(instruction.call.outputs);
    for (size_t k = 0; k < instruction.buffers.size(); ++k) {
      const int b = instruction.buffers[k];
      if (b < 0) continue;
      const PlannedBuffer& buffer = program.buffers[size_t(b)];
      if (buffer.kind != BufferKind::temporary || buffer.bytes == 0) continue;
      if (buffer.offset < 0 || buffer.offset + buffer.bytes > program.arena_bytes) {
        return cat("instruction ", i, " leaves the arena");
      }
      if (k >= outputs) {
        write(buffer.offset, buffer.offset + buffer.bytes, b);
        continue;
      }
      const auto it = memory.find(buffer.offset);
      if (it == memory.end() || it->second.second != b) {
        return cat("instruction ", i, " (", instruction.label, ") reads buffer ", b,
                   ", which was overwritten");
      }
    }
  }
  return {};
}

}  // namespace tessera
