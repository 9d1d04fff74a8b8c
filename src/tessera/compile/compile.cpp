#include "tessera/compile/compile.h"

#include <chrono>

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

// How long each pass took, its check included.
class PassClock {
 public:
  void done(const char* pass) {
    const auto now = Clock::now();
    times_.push_back(
        {pass, std::chrono::duration_cast<std::chrono::nanoseconds>(now - last_).count()});
    last_ = now;
  }
  std::vector<PassTime> times() && { return std::move(times_); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point last_ = Clock::now();
  std::vector<PassTime> times_;
};

}  // namespace

Program compile_graph(const GraphFunction& function, const Target& target,
                      const CompileOptions& options) {
  if (options.verify) check("trace", verify_graph(computed_values(function)));
  PassClock clock;
  auto check_graph = [&](const char* pass, const GraphFunction& f) {
    if (options.verify) check(pass, verify_graph(computed_values(f)));
    clock.done(pass);
  };
  GraphFunction f = lower(function, target, options.kernel_ops);
  check_graph("lower", f);
  if (options.simplify) {
    f = simplify(f);
    check_graph("simplify", f);
  }
  if (options.match && options.kernel_ops) {
    f = match(f, target);
    check_graph("match", f);
    f = join(std::move(f), target);
    check_graph("join", f);
  }
  const int nodes = count_nodes(f);

  Instances instances = layout(f);
  if (options.verify) check("layout", verify_instances(instances));
  clock.done("layout");
  if (options.rematerialize) {
    rematerialize(instances);
    if (options.verify) check("rematerialize", verify_instances(instances));
    clock.done("rematerialize");
  }
  if (options.order_outputs && target.orders_outputs) {
    order_outputs(instances);
    if (options.verify) check("order_outputs", verify_instances(instances));
    clock.done("order_outputs");
  }
  if (options.fuse && options.recompute) {
    recompute(instances, target.table_words);
    if (options.verify) check("recompute", verify_instances(instances));
    clock.done("recompute");
  }
  if (options.pad_rows && target.row_bytes > 0) {
    pad_rows(instances, target.row_bytes);
    if (options.verify) check("pad_rows", verify_instances(instances));
    clock.done("pad_rows");
  }

  KernelGraph kernels = fuse(instances, options.fuse, target.table_words);
  if (options.verify) check("fuse", verify_kernels(kernels));
  clock.done("fuse");
  schedule(kernels);
  if (options.verify) check("schedule", verify_kernels(kernels));
  clock.done("schedule");
  if (options.horizontal && target.table_words > 0) {
    horizontal(kernels, target);
    if (options.verify) check("horizontal", verify_kernels(kernels));
    clock.done("horizontal");
  }
  Program program = plan_memory(kernels, target.alignment);
  if (options.verify) check("plan_memory", verify_program(program));
  clock.done("plan_memory");

  program.report.nodes = nodes;
  program.report.copies += instances.copies;
  program.report.rematerialized = instances.rematerialized;
  program.report.recomputed = instances.recomputed;
  program.report.passes = std::move(clock).times();
  return program;
}

}  // namespace tessera
