// tessera explain: what the compiler makes of a built-in training step.
#include <algorithm>
#include <ostream>
#include <sstream>

#include "tessera/cli/command.h"
#include "tessera/cli/explain_models.h"
#include "tessera/cli/options.h"
#include "tessera/codegen/render.h"
#include "tessera/compile/compile.h"
#include "tessera/compile/rewrite_function.h"
#include "tessera/graph/print.h"
#include "tessera/io/atomic_file.h"
#include "tessera/runtime/registry.h"

namespace tessera::cli {

namespace {

constexpr Option kOptions[] = {
    {"--text", "", "graph, kernels and report as text (the default)"},
    {"--dot", "", "the graph alone, for Graphviz"},
    {"--kernels", "ir|cuda|opencl", "kernels as KernelIR (the default) or as source"},
    {"--checkpoint", "", "compute blocks again for the gradient instead of keeping them"},
    {"--no-fuse", "", "one kernel per operation"},
    {"-o", "FILE", "write to FILE instead of standard output"},
    {"--help", "", "this text"},
};

std::string usage() {
  std::string text = "usage: tessera explain [MODEL] [OPTIONS]\n\nmodels:\n";
  for (const ExplainModel& model : explain_models()) text += help_line(model.name, model.help);
  return text + "\noptions:\n" + describe(kOptions);
}

const ExplainModel& find_model(const std::string& name) {
  const std::span<const ExplainModel> models = explain_models();
  const auto model = std::ranges::find(models, name, &ExplainModel::name);
  if (model != models.end()) return *model;
  std::string names;
  for (const ExplainModel& m : models) names += cat(names.empty() ? "" : "|", m.name);
  throw UsageError(cat("explain: expected ", names, ", got '", name, "'"));
}

void check(const Arguments& arguments) {
  if (arguments.words.size() > 1) {
    throw UsageError(cat("explain: expected one model, got ", arguments.words.size()));
  }
  for (const char* option : {"--text", "--kernels", "--no-fuse"}) {
    if (arguments.has("--dot") && arguments.has(option)) {
      throw UsageError(cat("explain: --dot shows the graph alone, expected no ", option));
    }
  }
}

// Generated kernels as source, in the order of their first call; named ones in a comment.
void print_source(const Program& program, const Dialect& dialect, std::ostream& out) {
  std::vector<std::string> printed;
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    const Instruction& instruction = program.instructions[i];
    out << "// #" << i << ' ' << instruction.label;
    const auto& ir = instruction.call.ir;
    if (!ir) {
      out << ": a named kernel\n";
      continue;
    }
    const RenderedKernel kernel = render(*ir, dialect);
    const bool repeated = std::ranges::find(printed, kernel.source) != printed.end();
    out << ": " << kernel.group_count(*ir, ir->extents[0]) << " groups of " << kernel.group_size
        << (repeated ? ", " + kernel.entry + " again\n" : "\n" + kernel.source + "\n");
    if (!repeated) printed.push_back(kernel.source);
  }
}

void print_text(const GraphFunction& function, const Arguments& arguments, std::ostream& out) {
  CompileOptions options;
  options.fuse = !arguments.has("--no-fuse");
  const Program program = compile_graph(function, backend("cpu").target(), options);
  const std::string form = arguments.value("--kernels", "ir");
  out << "== graph\n" << to_text(computed_values(function)) << "\n== kernels\n";
  if (form == "ir") {
    out << to_string(program);
  } else {
    print_source(program, form == "cuda" ? cuda_dialect() : opencl_dialect(), out);
  }
  out << "\n== report\n" << to_string(program.report);
}

}  // namespace

void explain(std::span<const std::string> words, std::ostream& out) {
  const Arguments arguments = parse_arguments("explain", kOptions, words);
  if (arguments.has("--help")) {
    out << usage();
    return;
  }
  check(arguments);
  const std::string name = arguments.words.empty() ? "mlp" : arguments.words[0];
  const ExplainModel& model = find_model(name);
  const GraphFunction function = model.trace(arguments.has("--checkpoint"));
  std::ostringstream text;
  if (arguments.has("--dot")) {
    text << to_dot(computed_values(function));
  } else {
    print_text(function, arguments, text);
  }
  if (!arguments.has("-o")) {
    out << text.str();
    return;
  }
  AtomicFile file(arguments.value("-o", ""));
  file.write(std::as_bytes(std::span<const char>(text.str())));
  file.commit();
}

}  // namespace tessera::cli
