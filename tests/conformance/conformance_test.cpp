// Every op of the op table, by its row in conformance/table.cpp: values, special values, fusion and
// gradients of first and second order.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "conformance/gradient_check.h"
#include "tessera/autodiff/backward.h"
#include "tessera/autodiff/gradients.h"
#include "tessera/conformance/harness.h"

namespace tessera {

void PrintTo(const Row& row, std::ostream* out) { *out << name(row.op); }

namespace {

using Values = std::vector<Value>;

std::vector<DType> dtypes_of(const Row& row) {
  std::vector<DType> result;
  for (int i = 0; i < kDTypeCount; ++i) {
    if (row.takes(DType(i))) result.push_back(DType(i));
  }
  return result;
}

std::vector<Array> evaluate(const Values& outputs) {
  std::vector<Array> result;
  for (const Value& output : outputs) result.push_back(read_array(Tensor(output)));
  return result;
}

TEST(ConformanceTable, EveryOpHasARow) {
  for (int i = 0; i < kOpCount; ++i) {
    int found = 0;
    for (const Row& row : rows()) found += row.op == Op(i);
    EXPECT_EQ(found, 1) << "rows in conformance/table.cpp for op " << name(Op(i));
    EXPECT_TRUE(has_gradient_row(Op(i))) << name(Op(i)) << " has no row in autodiff/gradients.cpp";
  }
}

class Conformance : public ::testing::TestWithParam<Row> {
 protected:
  const Row& row() const { return GetParam(); }
};
class ScalarConformance : public Conformance {};
class GradientConformance : public Conformance {};

// The op itself must be in the graph, or the row would test something else.
bool contains(const Values& outputs, Op op) {
  for (const NodePtr& node : topological_order(outputs)) {
    if (node->op == op) return true;
  }
  return false;
}

TEST_P(Conformance, Value) {
  const bool is_scalar = info(row().op).kind == OpKind::scalar;
  bool seen = false;
  for (const DType dtype : dtypes_of(row())) {
    for (const Case& c : row().cases(dtype)) {
      for (int layout = 0; layout < (c.inputs.empty() ? 1 : kLayouts); ++layout) {
        SCOPED_TRACE(cat(dtype, " ", c.name, " layout ", layout));
        const Application application = apply_row(row(), c, dtype, layout);
        const Values outputs = application.outputs();
        seen = seen || contains(outputs, row().op);
        const std::vector<Array> expected = reference(outputs), actual = evaluate(outputs);
        for (size_t i = 0; i < actual.size(); ++i) {
          EXPECT_LE(
              error_in_ulps(actual[i], expected[i], is_scalar ? Unit::element : Unit::largest),
              tolerance(row(), c, expected[i].type.dtype))
              << "output " << i;
        }
      }
    }
  }
  EXPECT_TRUE(seen);
}

// The expression of the op table against a definition that does not come from there.
TEST_P(ScalarConformance, Definition) {
  for (const DType dtype : {DType::f64, DType::i32, DType::boolean}) {
    if (!row().takes(dtype)) continue;
    const Case c = row().cases(dtype).back();
    const Application application = apply_row(row(), c, dtype, 0);
    const std::vector<double> a = to_doubles(application.leaves.front());
    const std::vector<double> b = to_doubles(application.leaves.back());
    const std::vector<double> y = to_doubles(reference(application.outputs())[0]);
    for (size_t i = 0; i < y.size(); ++i) {
      const double expected = row().exact(a[i], b[i]);
      EXPECT_NEAR(y[i], expected, 4 * ulp(DType::f64, expected))
          << name(dtype) << ": " << a[i] << ", " << b[i];
    }
  }
}

// What is not a number, infinite, signed zero or at the end of the range.
TEST_P(ScalarConformance, Special) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  for (const DType dtype : dtypes_of(row())) {
    if (!is_float(dtype)) continue;
    const double top = dtype == DType::f16 ? 65504 : dtype == DType::f64 ? 0x1p1023 : 0x1p127;
    const double specials[] = {0.0,        -0.0,         1,   -1,  2.5, kInfinite,
                               -kInfinite, std::nan(""), top, -top};
    Array a{{dtype, {100}}, {}, {}}, b = a;
    for (const double x : specials) {
      for (const double y : specials) {
        a.real.push_back(x);
        b.real.push_back(y);
      }
    }
    const Tensor operands[] = {to_tensor(a), to_tensor(b)};
    Values in = {operands[0].value(), operands[1].value()};
    in.resize(size_t(info(row().op).arity));
    const Values outputs = {Value{make_node(row().op, in), 0}};
    const Array actual = evaluate(outputs)[0], expected = reference(outputs)[0];
    for (size_t i = 0; i < 100; ++i) {
      Array one{{actual.type.dtype, {1}}, {}, {}}, other = one;
      if (is_float(actual.type.dtype)) {
        one.real = {actual.real[i]};
        other.real = {expected.real[i]};
      } else {
        one.integer = {actual.integer[i]};
        other.integer = {expected.integer[i]};
      }
      EXPECT_LE(error_in_ulps(one, other, Unit::element), tolerance(row(), {}, actual.type.dtype))
          << name(dtype) << ": " << a.real[i] << ", " << b.real[i] << " gives "
          << to_doubles(one)[0] << ", expected " << to_doubles(other)[0];
    }
  }
}

// Fused against unfused, with kernel ops and with their composites: at most 1.5 times the error to
// f64, plus one ulp.
TEST_P(Conformance, Fusion) {
  const bool is_scalar = info(row().op).kind == OpKind::scalar;
  for (const DType dtype : dtypes_of(row())) {
    for (const Case& c : row().cases(dtype)) {
      const Application application = apply_between_neighbours(row(), c, dtype);
      const std::vector<Array> expected = reference(application.outputs());
      for (const bool kernel_ops : {true, false}) {
        SCOPED_TRACE(cat(dtype, " ", c.name, kernel_ops ? " with" : " without", " kernel ops"));
        if (!kernel_ops && info(row().op).kind != OpKind::kernel) continue;
        CompileOptions options;
        options.kernel_ops = kernel_ops;
        const CompiledRun fused = run_compiled(application, options);
        options.fuse = false;
        const CompiledRun unfused = run_compiled(application, options);
        if (is_scalar && !c.inputs[0].shape.contains(0)) EXPECT_LT(fused.kernels, unfused.kernels);
        for (size_t i = 0; i < expected.size(); ++i) {
          const double before = error_in_ulps(unfused.outputs[i], expected[i], Unit::largest);
          const double after = error_in_ulps(fused.outputs[i], expected[i], Unit::largest);
          EXPECT_TRUE(std::isfinite(before)) << "output " << i << " unfused";
          EXPECT_LE(after, 1.5 * before + 1) << "output " << i << ", unfused " << before;
          EXPECT_TRUE(std::isfinite(after)) << "output " << i << " fused";
        }
      }
    }
  }
}

TEST_P(GradientConformance, Gradient) {
  for (const Case& c : row().cases(DType::f64)) {
    int64_t largest = 0;
    for (const Input& input : c.inputs) largest = std::max(largest, numel(input.shape));
    if (largest > 400) continue;  // more of the same, at the price of the interpreter
    for (int layout = 0; layout < (c.inputs.empty() ? 1 : kLayouts); ++layout) {
      SCOPED_TRACE(cat(c.name, " layout ", layout));
      check_gradients(row(), apply_row(row(), c, DType::f64, layout));
    }
  }
}

std::vector<Row> rows_where(bool (*wanted)(const Row&)) {
  std::vector<Row> result;
  std::copy_if(rows().begin(), rows().end(), std::back_inserter(result), wanted);
  return result;
}

std::string op_name(const ::testing::TestParamInfo<Row>& test) {
  return std::string(name(test.param.op));
}

bool is_scalar_function(const Row& row) { return row.exact != nullptr; }
bool takes_f64(const Row& row) { return row.takes(DType::f64); }

INSTANTIATE_TEST_SUITE_P(Op, Conformance, ::testing::ValuesIn(rows()), op_name);
INSTANTIATE_TEST_SUITE_P(Op, ScalarConformance, ::testing::ValuesIn(rows_where(is_scalar_function)),
                         op_name);
INSTANTIATE_TEST_SUITE_P(Op, GradientConformance, ::testing::ValuesIn(rows_where(takes_f64)),
                         op_name);

}  // namespace
}  // namespace tessera
