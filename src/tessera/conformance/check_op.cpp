#include "tessera/conformance/check_op.h"

#include <algorithm>
#include <tuple>

#include "tessera/tensor/eval.h"

namespace tessera {

void check_trial(const Row& row, const Trial& trial, const Evaluate& evaluate, OpCheck& check) {
  const std::string where =
      cat(trial.dtype, " ", trial.c.name, trial.layout == 0 ? "" : cat(" layout ", trial.layout));
  ++check.cases;
  try {
    const std::vector<Value> outputs = apply_row(row, trial.c, trial.dtype, trial.layout).outputs();
    const std::vector<Array> expected = reference(outputs), actual = evaluate(outputs);
    TESSERA_ASSERT(actual.size() == expected.size());
    const Unit unit = info(row.op).kind == OpKind::scalar ? Unit::element : Unit::largest;
    for (size_t i = 0; i < expected.size(); ++i) {
      check.add(ulp_errors(actual[i], expected[i], unit),
                tolerance(row, trial.c, expected[i].type.dtype), where);
    }
  } catch (const Error& error) {
    if (check.failure.empty()) check.failure = cat(where, ": ", error.what());
  }
}

namespace {

int layouts_of(const Case& c) { return c.inputs.empty() ? 1 : kLayouts; }

int64_t elements_of(const Case& c) {
  int64_t total = 0;
  for (const Input& input : c.inputs) total += numel(input.shape);
  return total;
}

}  // namespace

std::vector<Trial> all_trials(const Row& row) {
  std::vector<Trial> trials;
  for (const DType dtype : dtypes_taken(row)) {
    for (const Case& c : row.cases(dtype)) {
      for (int layout = 0; layout < layouts_of(c); ++layout) trials.push_back({c, dtype, layout});
    }
  }
  return trials;
}

std::vector<Trial> some_trials(const Row& row, const Target& target, int64_t turn) {
  const std::vector<DType> dtypes = dtypes_taken(row);
  const std::vector<Case> first = row.cases(dtypes[0]);
  std::vector<Trial> trials;
  if (target.has(info(row.op).kernel)) {
    constexpr size_t kMost = 4;
    const size_t step = (first.size() + kMost - 1) / kMost;
    for (size_t i = 0; i < first.size(); i += step) trials.push_back({first[i], dtypes[0], 0});
  } else {
    trials.push_back({*std::max_element(first.begin(), first.end(),
                                        [](const Case& a, const Case& b) {
                                          return elements_of(a) < elements_of(b);
                                        }),
                      dtypes[0], 0});
  }
  // Steps without a common factor with what they choose from: neighbours differ in all three.
  const DType dtype = dtypes[size_t(1 + turn) % dtypes.size()];
  const std::vector<Case> cases = row.cases(dtype);
  const Case& c = cases[size_t(3 * turn + 1) % cases.size()];
  trials.push_back({c, dtype, int(2 * turn + 1) % layouts_of(c)});
  return trials;
}

void OpCheck::add(const UlpErrors& errors, double allowed, const std::string& where) {
  error_sum += errors.sum;
  elements += errors.count;
  const bool failed = !(errors.largest <= allowed);
  if (std::tuple(failed, errors.largest, allowed) > std::tuple(!passed(), max_error, tolerance)) {
    max_error = errors.largest;
    tolerance = allowed;
  }
  if (failed && passed()) {
    failure = cat(where, ": ", errors.largest, " ulps, expected at most ", allowed);
  }
}

std::vector<DType> dtypes_taken(const Row& row) {
  std::vector<DType> result;
  for (int i = 0; i < kDTypeCount; ++i) {
    if (row.takes(DType(i))) result.push_back(DType(i));
  }
  return result;
}

std::vector<DType> first_dtype(const Row& row) {
  std::vector<DType> result = dtypes_taken(row);
  if (result.size() > 1) result.resize(1);  // f32 is DType(0)
  return result;
}

std::vector<Array> evaluate_on_device(std::span<const Value> outputs) {
  std::vector<Array> result;
  for (const Value& output : outputs) result.push_back(read_array(Tensor(output)));
  return result;
}

void prepare_ops(std::span<const Row> rows, std::vector<DType> (*choose)(const Row&)) {
  try {
    std::vector<Value> values;
    for (const Row& row : rows) {
      for (const DType dtype : choose(row)) {
        for (const Case& c : row.cases(dtype)) {
          const std::vector<Value> outputs = apply_row(row, c, dtype, 0).outputs();
          values.insert(values.end(), outputs.begin(), outputs.end());
        }
      }
    }
    prepare_kernels(values);
  } catch (const Error&) {
  }
}

OpCheck check_op(const Row& row, std::vector<DType> dtypes, const Evaluate& evaluate) {
  OpCheck check;
  check.op = row.op;
  check.dtypes = std::move(dtypes);
  for (const DType dtype : check.dtypes) {
    for (const Case& c : row.cases(dtype)) check_trial(row, {c, dtype, 0}, evaluate, check);
  }
  return check;
}

}  // namespace tessera
