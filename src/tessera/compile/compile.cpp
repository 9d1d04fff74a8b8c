#include "tessera/compile/compile.h"

#include "tessera/compile/passes.h"
#include "tessera/compile/rewrite_function.h"
#include "tessera/graph/verify.h"

namespace tessera {

namespace {

// A pass left something broken behind: our bug, not the user's.
void check(const char* pass, const std::string& problem) {
  if (!problem.empty()) throw std::logic_error(cat("after pass ", pass, ": ", problem));
}

int count_nodes(const GraphFunction& function) {
  int count = 0;
  const std::vector<Value> roots = computed_values(function);
  for (const NodePtr& node : topological_order(roots)) {
    count += node->op != Op::leaf && node->op != Op::constant;
  }
  return count;
}

}  // namespace

Program compile_graph(const GraphFunction& function, const Target& target,
                      const CompileOptions& options) {
  auto check_graph = [&](const char* pass, const GraphFunction& f) {
    if (options.verify) check(pass, verify_graph(computed_values(f)));
  };
  check_graph("trace", function);
  GraphFunction f = lower(function, target, options.kernel_ops);
  check_graph("lower", f);
  if (options.simplify) {
    f = simplify(f);
    check_graph("simplify", f);
  }
  if (options.match && options.kernel_ops) {
    f = match(f, target);
    check_graph("match", f);
  }
  const int nodes = count_nodes(f);

  Instances instances = layout(f);
  if (options.verify) check("layout", verify_instances(instances));
  if (options.rematerialize) {
    rematerialize(instances);
    if (options.verify) check("rematerialize", verify_instances(instances));
  }

  KernelGraph kernels = fuse(instances, options.fuse);
  if (options.verify) check("fuse", verify_kernels(kernels));
  schedule(kernels);
  if (options.verify) check("schedule", verify_kernels(kernels));
  Program program = plan_memory(kernels, target.alignment);
  if (options.verify) check("plan_memory", verify_program(program));

  program.report.nodes = nodes;
  program.report.copies += instances.copies;
  program.report.rematerialized = instances.rematerialized;
  return program;
}

}  // namespace tessera
