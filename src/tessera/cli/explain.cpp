// tessera explain: what the compiler makes of a built-in training step.
#include <algorithm>
#include <ostream>
#include <sstream>

#include "tessera/cli/command.h"
#include "tessera/cli/explain_json.h"
#include "tessera/cli/explain_models.h"
#include "tessera/cli/suggest.h"
#include "tessera/codegen/render.h"
#include "tessera/compile/rewrite_function.h"
#include "tessera/exec/profile.h"
#include "tessera/graph/print.h"
#include "tessera/io/atomic_file.h"
#include "tessera/kernel/part_table.h"
#include "tessera/runtime/registry.h"

namespace tessera::cli {

namespace {

constexpr Option kOptions[] = {
    {"--text", "", "graph, kernels and report as text (the default)"},
    {"--dot", "", "the graph alone, for Graphviz"},
    {"--memory", "", "memory over time alone, and who holds it at the peak"},
    {"--kernels", "ir|cuda|opencl", "kernels as KernelIR (the default) or as source"},
    {"--checkpoint", "", "compute blocks again for the gradient instead of keeping them"},
    {"--no-fuse", "", "one kernel per operation"},
    {"--device", "DEVICE", "for what cpu, cuda:N or opencl:N can do (default: cpu)"},
    {"--json", "", "the report and the kernels' names as a JSON document"},
    {"-o", "FILE", "write to FILE instead of standard output"},
};

constexpr std::string_view kExamples[] = {
    "tessera explain",
    "tessera explain mlp --checkpoint --json",
    "tessera explain attention --kernels cuda",
    "tessera explain softmax --dot",
    "tessera explain mlp --memory",
};

std::string topics() {
  std::string text = "models:\n";
  for (const ExplainModel& model : explain_models()) text += help_line(model.name, model.help);
  return text;
}

const ExplainModel& find_model(std::string_view name) {
  const std::span<const ExplainModel> models = explain_models();
  const auto model = std::ranges::find(models, name, &ExplainModel::name);
  if (model != models.end()) return *model;
  std::string list;
  std::vector<std::string_view> names;
  for (const ExplainModel& known : models) {
    list += cat(list.empty() ? "" : "|", known.name);
    names.push_back(known.name);
  }
  throw UsageError(
      cat("explain: expected ", list, ", got '", name, "'", did_you_mean(name, names)));
}

// Forms that exclude others: which option, what it shows, and what cannot be beside it.
struct Form {
  std::string_view option, shows;
  std::vector<std::string_view> excludes;
};

void check(const Arguments& arguments) {
  if (arguments.words.size() > 1) {
    throw UsageError(cat("explain: expected one model, got ", arguments.words.size()));
  }
  const Form forms[] = {
      {"--dot",
       "the graph alone",
       {"--text", "--kernels", "--no-fuse", "--json", "--memory", "--device"}},
      {"--memory", "memory alone", {"--text", "--kernels"}},
      {"--json", "the report alone", {"--text", "--kernels"}},
  };
  for (const Form& form : forms) {
    for (const std::string_view other : form.excludes) {
      if (!arguments.has(form.option) || !arguments.has(other)) continue;
      throw UsageError(
          cat("explain: ", form.option, " shows ", form.shows, ", expected no ", other));
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
    std::vector<int64_t> parts = instruction.call.parts;
    RenderOptions options;
    // Programs with joined kernels are a CUDA device's, whose own text is shown.
    if (!parts.empty() && &dialect == &cuda_dialect()) {
      options.parts = int(table_capacity(int64_t(parts.size())));
    }
    if (parts.empty()) parts = {ir->extents[0]};
    const RenderedKernel kernel = render(*ir, dialect, options);
    int64_t groups = 0;
    for (const int64_t extent0 : parts) groups += kernel.group_count(*ir, extent0);
    const bool repeated = std::ranges::find(printed, kernel.source) != printed.end();
    out << ": " << groups << " groups of " << kernel.group_size
        << (repeated ? ", " + kernel.entry + " again\n" : "\n" + kernel.source + "\n");
    if (!repeated) printed.push_back(kernel.source);
  }
}

const Target& target_of(const Arguments& arguments) {
  Device device;
  try {
    device = Device(arguments.value("--device", "cpu"));
  } catch (const Error& error) {
    throw UsageError(cat("explain: ", error.what()));
  }
  return backend(device).target();
}

Program compile(const GraphFunction& function, const Arguments& arguments) {
  CompileOptions options;
  options.fuse = !arguments.has("--no-fuse");
  return compile_profiled(function, target_of(arguments), options);
}

void print_text(const GraphFunction& function, const Arguments& arguments, std::ostream& out) {
  const Program program = compile(function, arguments);
  const std::string form = arguments.value("--kernels", "ir");
  out << "== graph\n" << to_text(computed_values(function)) << "\n== kernels\n";
  if (form == "ir") {
    out << to_string(program);
  } else {
    print_source(program, form == "cuda" ? cuda_dialect() : opencl_dialect(), out);
  }
  out << "\n== report\n" << to_string(program.report);
}

Status run_explain(const Arguments& arguments, Console& console) {
  check(arguments);
  const std::string name = arguments.words.empty() ? "mlp" : arguments.words[0];
  const ExplainModel& model = find_model(name);
  const GraphFunction function = [&] {
    const HostSpan span(Profile::Kind::trace, "model");
    return model.trace(arguments.has("--checkpoint"));
  }();
  std::ostringstream text;
  if (arguments.has("--dot")) {
    text << to_dot(computed_values(function));
  } else if (arguments.has("--json")) {
    text << explain_json(model.name, compile(function, arguments));
  } else if (arguments.has("--memory")) {
    text << memory_text(compile(function, arguments));
  } else {
    print_text(function, arguments, text);
  }
  if (!arguments.has("-o")) {
    console.out << text.str();
    return Status::done;
  }
  AtomicFile file(arguments.value("-o", ""));
  file.write(std::as_bytes(std::span<const char>(text.str())));
  file.commit();
  return Status::done;
}

}  // namespace

constexpr Command kExplain = {
    "explain",  "show graph, kernels and memory of a built-in training step",
    "[MODEL]",  kOptions,
    kExamples,  topics,
    run_explain};

}  // namespace tessera::cli
