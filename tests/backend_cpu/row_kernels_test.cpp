// softmax, layer_norm and its backward against plain loops.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "backend_cpu/named_kernels.h"
#include "backend_cpu/threads.h"

namespace tessera::test {
namespace {

double tolerance(DType dtype) {
  switch (dtype) {
    case DType::f32: return 1e-5;
    case DType::f64: return 1e-13;
    case DType::f16: return 2e-3;
    default: return 1.6e-2;
  }
}

const DType kFloats[] = {DType::f32, DType::f64, DType::f16, DType::bf16};

void expect_close(const Operand& got, int64_t i, double expected, const std::string& what) {
  const DType dtype = got.array.dtype();
  ASSERT_NEAR(got.array.get(i), expected, tolerance(dtype) * std::max(1.0, std::abs(expected)))
      << what << " of " << name(dtype) << ", element " << i;
}

TEST(Softmax, RowsOfEveryLengthAndType) {
  for (DType dtype : kFloats) {
    for (int64_t columns : {1, 2, 15, 16, 1000, 20000}) {
      const int64_t rows = 5;
      const Shape shape = {rows, columns};
      std::vector<Operand> o = {dense(random_array(dtype, rows * columns, -5, 5), shape),
                                dense(Array(dtype, rows * columns), shape)};
      call("softmax", o, 1);
      for (int64_t r = 0; r < rows; ++r) {
        double sum = 0;
        for (int64_t c = 0; c < columns; ++c) sum += std::exp(o[0].array.get(r * columns + c));
        for (int64_t c = 0; c < columns; ++c) {
          const int64_t i = r * columns + c;
          expect_close(o[1], i, std::exp(o[0].array.get(i)) / sum, "softmax");
        }
      }
    }
  }
}

TEST(Softmax, LargeValuesDoNotOverflow) {
  Array x(DType::f32, 3);
  for (int64_t i = 0; i < 3; ++i) x.set(i, 1000 + double(i));
  std::vector<Operand> o = {dense(x, {3}), dense(Array(DType::f32, 3), {3})};
  call("softmax", o, 1);
  EXPECT_NEAR(o[1].array.get(2), 0.66524096, 1e-6);
}

std::vector<double> softmax_of(const std::vector<double>& values) {
  const int64_t n = int64_t(values.size());
  Array x(DType::f32, n);
  for (int64_t i = 0; i < n; ++i) x.set(i, values[size_t(i)]);
  std::vector<Operand> o = {dense(x, {n}), dense(Array(DType::f32, n), {n})};
  call("softmax", o, 1);
  std::vector<double> y;
  for (int64_t i = 0; i < n; ++i) y.push_back(o[1].array.get(i));
  return y;
}

// 4 ulp, its tolerance in ops.def, over all that a float can hold: 40 columns, so that whole
// vectors and the rest of a row take part. The 0 that leads keeps the sum close to 1.
TEST(Softmax, SmallResultsAreAsAccurateAsLargeOnes) {
  for (double below = 0; below < 103; below += 0.37) {
    std::vector<double> x(40, -200.0);
    x[0] = 0;
    for (size_t i = 1; i < x.size(); i += 2) x[i] = double(float(-below - 0.009 * double(i)));
    double sum = 0;
    for (const double value : x) sum += std::exp(value);
    const std::vector<double> y = softmax_of(x);
    for (size_t i = 0; i < x.size(); ++i) {
      const double expected = std::exp(x[i]) / sum;
      const double ulp = std::max(std::ldexp(1.0, std::ilogb(std::max(expected, 1e-45)) - 23),
                                  double(std::numeric_limits<float>::denorm_min()));
      ASSERT_LE(std::abs(y[i] - expected), 4 * ulp) << "e^" << x[i];
    }
  }
}

TEST(Softmax, InfinitiesAndNaN) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  for (const size_t at : {0, 5, 16, 38}) {  // in a vector, and in the rest
    std::vector<double> x(39, 1.0);
    x[at] = -kInf;
    std::vector<double> y = softmax_of(x);
    EXPECT_EQ(y[at], 0.0);
    EXPECT_NEAR(y[at == 0 ? 1 : 0], 1.0 / 38, 1e-8);
    for (const double bad : {kNan, kInf}) {
      x[at] = bad;
      for (const double value : softmax_of(x))
        EXPECT_TRUE(std::isnan(value)) << bad << " at " << at;
    }
  }
  for (const double value : softmax_of(std::vector<double>(39, -kInf))) {
    EXPECT_TRUE(std::isnan(value));
  }
}

struct Norm {
  std::vector<double> mean, rstd;
};

Norm statistics(const Array& x, int64_t rows, int64_t columns, double epsilon) {
  Norm result;
  for (int64_t r = 0; r < rows; ++r) {
    double sum = 0, square = 0;
    for (int64_t c = 0; c < columns; ++c) sum += x.get(r * columns + c);
    const double mean = sum / double(columns);
    for (int64_t c = 0; c < columns; ++c) square += std::pow(x.get(r * columns + c) - mean, 2);
    result.mean.push_back(mean);
    result.rstd.push_back(1 / std::sqrt(square / double(columns) + epsilon));
  }
  return result;
}

std::vector<Operand> layer_norm_operands(DType dtype, int64_t rows, int64_t columns) {
  const DType statistic = compute_type(dtype);
  return {dense(random_array(dtype, rows * columns, -1, 3, 1), {rows, columns}),
          dense(random_array(dtype, columns, -1, 1, 2), {columns}),
          dense(random_array(dtype, columns, -1, 1, 3), {columns}),
          dense(Array(dtype, rows * columns), {rows, columns}),
          dense(Array(statistic, rows), {rows, 1}),
          dense(Array(statistic, rows), {rows, 1})};
}

TEST(LayerNorm, MatchesItsDefinition) {
  for (DType dtype : kFloats) {
    for (int64_t columns : {1, 3, 17, 768}) {
      const int64_t rows = 9;
      std::vector<Operand> o = layer_norm_operands(dtype, rows, columns);
      call("layer_norm", o, 3, {0, 1e-3});
      const Norm norm = statistics(o[0].array, rows, columns, 1e-3);
      for (int64_t i = 0; i < rows * columns; ++i) {
        const size_t r = size_t(i / columns);
        const double normal = (o[0].array.get(i) - norm.mean[r]) * norm.rstd[r];
        const int64_t c = i % columns;
        expect_close(o[3], i, normal * o[1].array.get(c) + o[2].array.get(c), "layer_norm");
      }
      for (int64_t r = 0; r < rows; ++r) {
        expect_close(o[4], r, norm.mean[size_t(r)], "mean");
        expect_close(o[5], r, norm.rstd[size_t(r)], "rstd");
      }
    }
  }
}

std::vector<Operand> backward_operands(DType dtype, int64_t rows, int64_t columns) {
  const Array x = random_array(dtype, rows * columns, -1, 3, 1);
  const Norm norm = statistics(x, rows, columns, 1e-3);
  Array mean(compute_type(dtype), rows), rstd(compute_type(dtype), rows);
  for (int64_t r = 0; r < rows; ++r) {
    mean.set(r, norm.mean[size_t(r)]);
    rstd.set(r, norm.rstd[size_t(r)]);
  }
  return {dense(random_array(dtype, rows * columns, -1, 1, 4), {rows, columns}),
          dense(x, {rows, columns}),
          dense(random_array(dtype, columns, -1, 1, 2), {columns}),
          dense(mean, {rows, 1}),
          dense(rstd, {rows, 1}),
          dense(Array(dtype, rows * columns), {rows, columns}),
          dense(Array(dtype, columns), {columns}),
          dense(Array(dtype, columns), {columns})};
}

TEST(LayerNormBackward, MatchesTheFormula) {
  for (DType dtype : kFloats) {
    for (int64_t rows : {1, 7, 200}) {
      const int64_t columns = 37;
      std::vector<Operand> o = backward_operands(dtype, rows, columns);
      call("layer_norm_backward", o, 3);
      std::vector<double> dgamma(size_t(columns), 0.0), dbeta(size_t(columns), 0.0);
      for (int64_t r = 0; r < rows; ++r) {
        const double mean = o[3].array.get(r), rstd = o[4].array.get(r);
        auto g = [&](int64_t c) { return o[0].array.get(r * columns + c); };
        auto h = [&](int64_t c) { return g(c) * o[2].array.get(c); };
        auto normal = [&](int64_t c) { return (o[1].array.get(r * columns + c) - mean) * rstd; };
        double one = 0, along = 0;
        for (int64_t c = 0; c < columns; ++c) {
          one += h(c) / double(columns);
          along += h(c) * normal(c) / double(columns);
          dgamma[size_t(c)] += g(c) * normal(c);
          dbeta[size_t(c)] += g(c);
        }
        for (int64_t c = 0; c < columns; ++c) {
          expect_close(o[5], r * columns + c, rstd * (h(c) - one - normal(c) * along), "dx");
        }
      }
      for (int64_t c = 0; c < columns; ++c) {
        expect_close(o[6], c, dgamma[size_t(c)], "dgamma");
        expect_close(o[7], c, dbeta[size_t(c)], "dbeta");
      }
    }
  }
}

TEST(LayerNormBackward, EqualBitsForAnyNumberOfThreads) {
  std::vector<Operand> o = backward_operands(DType::f32, 3000, 64), p = o;
  call("layer_norm_backward", o, 3);
  run_alone([&] { call("layer_norm_backward", p, 3); });
  for (size_t i = 5; i < 8; ++i) EXPECT_EQ(o[i].array.bytes(), p[i].array.bytes());
}

// Each output left out in turn: the others keep their bits.
void expect_outputs_optional(const std::string& kernel, const std::vector<Operand>& given) {
  std::vector<Operand> all = given;
  call(kernel, all, 3);
  for (size_t left_out = given.size() - 3; left_out < given.size(); ++left_out) {
    std::vector<Operand> o = given;
    const auto executable = test_backend().compile(make_call(kernel, o, 3));
    std::vector<BufferRef> refs;
    for (Operand& operand : o) refs.push_back({operand.array.data(), 0});
    refs[left_out] = {};
    test_backend().launch(*executable, refs, 0, Stream{});
    for (size_t i = given.size() - 3; i < given.size(); ++i) {
      const Operand& expected = i == left_out ? given[i] : all[i];
      EXPECT_EQ(o[i].array.bytes(), expected.array.bytes()) << kernel << " " << i;
    }
  }
}

TEST(LayerNorm, OutputsMayBeLeftOut) {
  for (DType dtype : {DType::f32, DType::bf16}) {
    expect_outputs_optional("layer_norm", layer_norm_operands(dtype, 40, 70));
    expect_outputs_optional("layer_norm_backward", backward_operands(dtype, 40, 70));
  }
}

TEST(LayerNorm, Refuses) {
  std::vector<Operand> o = layer_norm_operands(DType::f32, 4, 6);
  auto text = [](std::vector<Operand> operands) {
    return error_of([&] { call("layer_norm", operands, 3); });
  };
  std::vector<Operand> wrong = o;
  wrong[1] = dense(Array(DType::f32, 5), {5});
  EXPECT_EQ(text(wrong), "layer_norm: expected a value per column of shape (6,), got (5,)");
  wrong = o;
  wrong[3] = dense(Array(DType::f32, 6), {6});
  EXPECT_EQ(text(wrong), "layer_norm: expected an operand like x of shape (4, 6), got (6,)");
  wrong = o;
  wrong[4] = dense(Array(DType::f64, 4), {4, 1});
  EXPECT_EQ(text(wrong), "layer_norm: expected a statistic per row of type f32, got f64");
  wrong = o;
  wrong[0].view.strides = {1, 4};
  EXPECT_EQ(text(wrong),
            "layer_norm: expected contiguous operands, got strides (1, 4) for shape (4, 6)");
  wrong = o;
  wrong[0] = dense(Array(DType::f32, 1), {});
  EXPECT_EQ(text(wrong), "layer_norm: expected x of at least 1 dimension, got ()");
  std::vector<Operand> ints = {dense(Array(DType::i32, 3), {3}), dense(Array(DType::i32, 3), {3})};
  EXPECT_EQ(error_of([&] { call("softmax", ints, 1); }),
            "softmax: expected x of a floating type, got i32");
  std::vector<Operand> scalar = {dense(Array(DType::f32, 1), {}), dense(Array(DType::f32, 1), {})};
  EXPECT_EQ(error_of([&] { call("softmax", scalar, 1); }),
            "softmax: expected x of at least 1 dimension, got ()");
}

}  // namespace
}  // namespace tessera::test
