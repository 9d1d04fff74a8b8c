#include "tessera/conformance/check_op.h"

#include <tuple>

namespace tessera {

namespace {

constexpr int kContiguous = 0;  // of harness.h's layouts; the others are the tests'

void check_case(const Row& row, const Case& c, DType dtype, const Evaluate& evaluate,
                OpCheck& check) {
  const std::string where = cat(dtype, " ", c.name);
  ++check.cases;
  try {
    const std::vector<Value> outputs = apply_row(row, c, dtype, kContiguous).outputs();
    const std::vector<Array> expected = reference(outputs), actual = evaluate(outputs);
    TESSERA_ASSERT(actual.size() == expected.size());
    const Unit unit = info(row.op).kind == OpKind::scalar ? Unit::element : Unit::largest;
    for (size_t i = 0; i < expected.size(); ++i) {
      check.add(ulp_errors(actual[i], expected[i], unit), tolerance(row, c, expected[i].type.dtype),
                where);
    }
  } catch (const Error& error) {
    if (check.failure.empty()) check.failure = cat(where, ": ", error.what());
  }
}

}  // namespace

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

OpCheck check_op(const Row& row, std::vector<DType> dtypes, const Evaluate& evaluate) {
  OpCheck check;
  check.op = row.op;
  check.dtypes = std::move(dtypes);
  for (const DType dtype : check.dtypes) {
    for (const Case& c : row.cases(dtype)) check_case(row, c, dtype, evaluate, check);
  }
  return check;
}

}  // namespace tessera
