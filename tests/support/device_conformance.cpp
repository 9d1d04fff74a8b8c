#include "support/device_conformance.h"

#include <cmath>
#include <cstdlib>

#include "tessera/autodiff/backward.h"
#include "tessera/conformance/check_op.h"
#include "tessera/graph/build.h"
#include "tessera/runtime/registry.h"
#include "tessera/tensor/device.h"

namespace tessera::test {

namespace {

std::string_view asked() {
  const char* word = std::getenv("TESSERA_CONFORMANCE");
  return word == nullptr ? "" : word;
}

bool tries_all() { return asked() == "all"; }

// Every dtype and case, in one of its layouts.
std::vector<Trial> all_cases(const Row& row) {
  std::vector<Trial> chosen;
  const std::vector<Trial> trials = all_trials(row);
  for (size_t begin = 0, end = 0; begin < trials.size(); begin = end) {
    do ++end;
    while (end < trials.size() && trials[end].layout > 0);
    chosen.push_back(trials[begin + chosen.size() % (end - begin)]);
  }
  return chosen;
}

std::vector<Trial> trials_of(const Row& row, const Target& target, int64_t index) {
  if (tries_all()) return all_trials(row);
  return asked() == "cases" ? all_cases(row) : some_trials(row, target, index);
}

// Scalar functions, moves and the like: generated kernels that are much alike.
bool is_plain(const Row& row) {
  switch (info(row.op).kind) {
    case OpKind::reduce:
    case OpKind::index:
    case OpKind::update:
    case OpKind::product:
    case OpKind::kernel: return false;
    default: return true;
  }
}

// The rows of the slice with their index in the table.
template <class F>
void for_each_row(int slice, F f) {
  for (int64_t i = slice; i < int64_t(rows().size()); i += kConformanceSlices) {
    SCOPED_TRACE(name(rows()[size_t(i)].op));
    f(rows()[size_t(i)], i);
  }
}

const Target& target() { return backend(default_device()).target(); }

// OpenCL compiles a kernel in about a second where it runs on the CPU: of its rows, some.
bool leaves_out(const Row& row, int64_t index, int64_t plain, int64_t others) {
  if (tries_all() || asked() == "cases") return false;
  const bool is_slow = target().device.starts_with("opencl");
  return index % (is_plain(row) ? plain : is_slow ? others : 1) != 0;
}

// At most 1.5 times the error of what is computed op by op, plus one ulp.
void check_fused(const Row& row, const Trial& trial) {
  const Application application = apply_between_neighbours(row, trial.c, trial.dtype);
  const std::vector<Array> expected = reference(application.outputs());
  CompileOptions options;
  const CompiledRun fused = run_compiled(application, options);
  options.fuse = false;
  const CompiledRun unfused = run_compiled(application, options);
  for (size_t i = 0; i < expected.size(); ++i) {
    const double before = error_in_ulps(unfused.outputs[i], expected[i], Unit::largest);
    const double after = error_in_ulps(fused.outputs[i], expected[i], Unit::largest);
    EXPECT_TRUE(std::isfinite(before)) << trial.c.name << " output " << i << " unfused";
    EXPECT_LE(after, 1.5 * before + 1) << trial.c.name << " output " << i;
  }
}

// The gradient of Σ w·y as the engine builds it, on the device against the interpreter.
void check_gradient(const Row& row, const Trial& trial) {
  const Application application = apply_row(row, trial.c, trial.dtype, trial.layout);
  std::vector<Value> ys, weights, variables;
  std::vector<Tensor> keep;
  for (const Value& y : application.outputs()) {
    if (!is_float(y.dtype())) continue;
    keep.push_back(random_tensor(y.shape(), first_seed(row.op) + 900, y.dtype()));
    ys.push_back(y);
    weights.push_back(keep.back().value());
  }
  for (const Tensor& leaf : application.leaves) {
    if (is_float(leaf.dtype())) variables.push_back(leaf.value());
  }
  std::vector<Value> gradients;
  for (const Value& gradient : backward(ys, weights, variables)) {
    if (gradient) gradients.push_back(gradient);
  }
  const std::vector<Array> expected = reference(gradients), actual = evaluate_on_device(gradients);
  for (size_t i = 0; i < expected.size(); ++i) {
    double largest = 1;
    for (const double x : expected[i].real) largest = std::max(largest, std::fabs(x));
    for (size_t k = 0; k < expected[i].real.size(); ++k) {
      ASSERT_NEAR(actual[i].real[k], expected[i].real[k], 3e-5 * largest)
          << trial.c.name << " gradient " << i << " element " << k;
    }
  }
}

}  // namespace

void check_values(int slice) {
  for_each_row(slice, [](const Row& row, int64_t index) {
    OpCheck check;
    check.op = row.op;
    std::vector<Trial> trials = trials_of(row, target(), index);
    if (leaves_out(row, index, 8, 1)) trials.pop_back();  // the one that turns
    for (const Trial& trial : trials) check_trial(row, trial, evaluate_on_device, check);
    EXPECT_TRUE(check.passed()) << check.failure;
  });
}

// Of plain ops every sixteenth, and of OpenCL's others every fourth.
void check_fusion(int slice) {
  for_each_row(slice, [](const Row& row, int64_t index) {
    if (leaves_out(row, index, 16, 4)) return;
    const std::vector<Trial> trials = some_trials(row, target(), index);
    for (const Trial& trial : tries_all() ? all_trials(row) : std::vector{trials.front()}) {
      if (trial.layout == 0) check_fused(row, trial);
    }
  });
}

// One case of f32; of OpenCL's, every third.
void check_gradients(int slice) {
  for_each_row(slice, [](const Row& row, int64_t index) {
    if (!row.takes(DType::f32) || (is_plain(row) && !tries_all())) return;
    if (leaves_out(row, index, 1, 3)) return;
    const std::vector<Trial> trials = some_trials(row, target(), index);
    check_gradient(row, trials[size_t(index) % (trials.size() - 1)]);
  });
}

}  // namespace tessera::test
