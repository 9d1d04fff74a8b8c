// Judging an op by its row of the conformance table, as `tessera selftest` does: every case,
// evaluated on the device, against the reference.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "tessera/conformance/harness.h"
#include "tessera/conformance/table.h"
#include "tessera/kernel/kernel_call.h"

namespace tessera {

struct OpCheck {
  Op op;
  std::vector<DType> dtypes;
  int64_t cases = 0;
  // In ulps: the largest error and what that case may have. Once a case has failed, only failed
  // ones count here.
  double max_error = 0, tolerance = 0;
  std::string failure;  // of the first case that failed; empty: all passed

  bool passed() const { return failure.empty(); }
  double mean_error() const { return elements == 0 ? 0 : error_sum / double(elements); }

  // Adds an output. `where` names its dtype and case.
  void add(const UlpErrors& errors, double allowed, const std::string& where);

  double error_sum = 0;
  int64_t elements = 0;
};

// The dtypes the row's op takes; f32 alone, or the first where it does not take f32.
std::vector<DType> dtypes_taken(const Row& row);
std::vector<DType> first_dtype(const Row& row);

using Evaluate = std::function<std::vector<Array>(std::span<const Value> outputs)>;

// By way of the compiler and the device.
std::vector<Array> evaluate_on_device(std::span<const Value> outputs);

// One application of a row's op: a case, a dtype it takes, and a layout of harness.h.
struct Trial {
  Case c;
  DType dtype;
  int layout = 0;
};

std::vector<Trial> all_trials(const Row& row);

// A few, for devices that take long to compile a kernel: of the first dtype, contiguous, the
// largest case, or up to eight where the device has a kernel for the op, which serves many; and one
// trial in another dtype, case and layout, which follow from `turn`.
std::vector<Trial> some_trials(const Row& row, const Target& target, int64_t turn);

// What `evaluate` throws fails the op.
void check_trial(const Row& row, const Trial& trial, const Evaluate& evaluate, OpCheck& check);

// Compiles the kernels that check_op() of these rows launches, with the dtypes that `choose` gives,
// all in one go. What does not compile is left to check_op(), which says so.
void prepare_ops(std::span<const Row> rows, std::vector<DType> (*choose)(const Row&));

// Every case of these dtypes, contiguous.
OpCheck check_op(const Row& row, std::vector<DType> dtypes,
                 const Evaluate& evaluate = evaluate_on_device);

}  // namespace tessera
