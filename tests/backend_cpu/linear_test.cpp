// linear and linear_slope: bits are those of matmul (matmul_test.cpp) and of the scalar functions
// (isa_test.cpp) one after the other, whatever way the product takes; values are checked against
// the formulae in f64.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "backend_cpu/named_kernels.h"
#include "backend_cpu/threads.h"
#include "tessera/backend/cpu/isa.h"

namespace tessera::test {
namespace {

struct Case {
  int64_t m, n, k;
  bool a_turned, b_turned, beside_apart;
  DType dtype = DType::f32;
};

// Few rows, few columns, odd extents, sums in parts, blocks along k, many tasks.
const int64_t kSizes[][3] = {{1, 1, 1},     {1, 100, 300},  {1, 4100, 300},  {13, 33, 300},
                             {50, 70, 257}, {150, 40, 20},  {60, 50, 600},   {700, 16, 40},
                             {20, 3, 600},  {16, 17, 5000}, {300, 400, 600}, {390, 321, 1100}};

std::vector<Case> all_cases(DType dtype = DType::f32) {
  std::vector<Case> result;
  for (const auto& s : kSizes) {
    for (int i = 0; i < 8; ++i) {
      result.push_back({s[0], s[1], s[2], (i & 1) != 0, (i & 2) != 0, (i & 4) != 0, dtype});
    }
  }
  return result;
}

std::string to_string(const Case& c) {
  return cat(c.m, " x ", c.n, " x ", c.k, c.a_turned ? " a turned" : "",
             c.b_turned ? " b turned" : "", c.beside_apart ? " apart" : "");
}

Operand matrix(DType dtype, int64_t m, int64_t n, bool turned, int seed) {
  const View view = turned ? View{{m, n}, {1, m}, 0} : contiguous_view({m, n});
  return {random_array(dtype, m * n, -1, 1, seed), view};
}

Operand row(DType dtype, int64_t n, bool apart, int seed) {
  const int64_t step = apart ? 3 : 1;
  return {random_array(dtype, n * step, -1, 1, seed), View{{n}, {step}, 0}};
}

// a, b, the bias or x, and two results.
std::vector<Operand> operands(const Case& c, bool is_slope) {
  std::vector<Operand> o = {matrix(c.dtype, c.m, c.k, c.a_turned, 1),
                            matrix(c.dtype, c.k, c.n, c.b_turned, 2)};
  o.push_back(is_slope ? matrix(c.dtype, c.m, c.n, c.beside_apart, 3)
                       : row(c.dtype, c.n, c.beside_apart, 3));
  o.push_back(matrix(c.dtype, c.m, c.n, false, 4));
  o.push_back(is_slope ? row(c.dtype, c.n, false, 5) : matrix(c.dtype, c.m, c.n, false, 5));
  return o;
}

// What the kernel "matmul" makes of a and b.
Array product_of(const Case& c, const std::vector<Operand>& o) {
  std::vector<Operand> plain = {o[0], o[1], matrix(c.dtype, c.m, c.n, false, 6)};
  call("matmul", plain, 1);
  return plain[2].array;
}

// A scalar function of the instruction set in use.
Array apply(ScalarOp op, const Array& x) {
  Array y(x.dtype(), x.count());
  cpu::loops().scalar[int(op)][int(x.dtype())](x.count(), y.data(), x.bytes().data(), nullptr,
                                               nullptr, 0);
  return y;
}

double gelu(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

double gelu_slope(double x) {
  const double c = std::sqrt(2 / M_PI), t = std::tanh(c * (x + 0.044715 * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * c * (1 + 3 * 0.044715 * x * x);
}

double activated(int64_t activation, double x) {
  return activation == 0 ? x : activation == 1 ? gelu(x) : std::max(x, 0.0);
}

void expect_near(const Array& got, const std::vector<double>& expected, double allowed) {
  int shown = 0;
  for (int64_t i = 0; i < got.count() && shown < 3; ++i) {
    const double want = expected[size_t(i)];
    if (std::abs(got.get(i) - want) <= allowed * (1 + std::abs(want))) continue;
    ++shown;
    ADD_FAILURE() << "at " << i << ": got " << got.get(i) << ", expected " << want;
  }
}

// Left out: -1 none of the results, else which.
void launch(const std::string& kernel, std::vector<Operand>& o, int left_out, KernelAttrs attrs) {
  const auto executable = test_backend().compile(make_call(kernel, o, 2, attrs));
  std::vector<BufferRef> refs;
  for (Operand& operand : o) refs.push_back({operand.array.data(), 0});
  if (left_out >= 0) refs[size_t(3 + left_out)].handle = nullptr;
  test_backend().launch(*executable, refs, 0, Stream{});
}

void expect_linear(const Case& c, int64_t activation) {
  SCOPED_TRACE(cat(to_string(c), " activation ", activation));
  std::vector<Operand> o = operands(c, false);
  Array sum = product_of(c, o);
  std::vector<double> expected;
  for (int64_t i = 0; i < c.m * c.n; ++i) {
    const double bias = at(o[2], i % c.n);
    // Of two floats the sum in f64, rounded, is the sum in f32.
    sum.set(i, sum.get(i) + bias);
    expected.push_back(activated(activation, sum.get(i)));
  }
  const std::vector<Operand> fresh = o;
  KernelAttrs attrs;
  attrs.axis = activation;
  launch("linear", o, -1, attrs);
  EXPECT_EQ(o[4].array.bytes(), sum.bytes());
  const double allowed = c.dtype == DType::f64 ? 1e-13 : 2e-6;
  expect_near(o[3].array, expected, allowed);
  if (activation == 1) {
    EXPECT_EQ(o[3].array.bytes(), apply(ScalarOp::gelu_tanh, sum).bytes());
  }
  for (const int left_out : {0, 1}) {
    std::vector<Operand> one = fresh;
    launch("linear", one, left_out, attrs);
    EXPECT_EQ(one[size_t(4 - left_out)].array.bytes(), o[size_t(4 - left_out)].array.bytes());
    EXPECT_EQ(one[size_t(3 + left_out)].array.bytes(), fresh[size_t(3 + left_out)].array.bytes());
  }
}

void expect_slope(const Case& c) {
  SCOPED_TRACE(to_string(c) + " slope");
  std::vector<Operand> o = operands(c, true);
  const Array product = product_of(c, o);
  Array x(c.dtype, c.m * c.n);
  for (int64_t i = 0; i < x.count(); ++i) x.set(i, at(o[2], i));
  const Array slope = apply(ScalarOp::gelu_tanh_slope, x);
  Array y(c.dtype, x.count());
  std::vector<double> expected, sums(size_t(c.n), 0), sizes(size_t(c.n), 0);
  for (int64_t i = 0; i < x.count(); ++i) {
    y.set(i, product.get(i) * slope.get(i));
    expected.push_back(product.get(i) * gelu_slope(x.get(i)));
    sums[size_t(i % c.n)] += y.get(i);
    sizes[size_t(i % c.n)] += std::abs(y.get(i));
  }
  const std::vector<Operand> fresh = o;
  launch("linear_slope", o, -1, {});
  const double allowed = c.dtype == DType::f64 ? 1e-13 : 2e-6;
  expect_near(o[3].array, expected, 2 * allowed);
  if (c.dtype == DType::f32) EXPECT_EQ(o[3].array.bytes(), y.bytes());
  for (int64_t j = 0; j < c.n; ++j) {
    EXPECT_NEAR(o[4].array.get(j), sums[size_t(j)], allowed * (sizes[size_t(j)] + 1e-3)) << j;
  }
  for (const int left_out : {0, 1}) {
    std::vector<Operand> one = fresh;
    launch("linear_slope", one, left_out, {});
    EXPECT_EQ(one[size_t(4 - left_out)].array.bytes(), o[size_t(4 - left_out)].array.bytes());
    EXPECT_EQ(one[size_t(3 + left_out)].array.bytes(), fresh[size_t(3 + left_out)].array.bytes());
  }
}

template <class F>
void for_each_isa(F work) {
  const cpu::Isa before = cpu::isa();
  for (cpu::Isa isa : cpu::available_isas()) {
    cpu::set_isa(isa);
    SCOPED_TRACE(name(isa));
    work();
  }
  cpu::set_isa(before);
}

TEST(Linear, BiasAndActivationsOfEveryWayInEveryInstructionSet) {
  for_each_isa([] {
    for (const Case& c : all_cases()) expect_linear(c, 1);
    for (const Case& c : all_cases()) {
      if (c.a_turned != c.b_turned) continue;
      expect_linear(c, 0);
      expect_linear(c, 2);
    }
  });
}

TEST(Linear, SlopesAndSumsOfEveryWayInEveryInstructionSet) {
  for_each_isa([] {
    for (const Case& c : all_cases()) expect_slope(c);
  });
}

TEST(Linear, OfF64) {
  for (const Case& c : all_cases(DType::f64)) {
    if (c.a_turned || c.m * c.n * c.k > 20'000'000) continue;
    expect_linear(c, c.b_turned ? 1 : 2);
    expect_slope(c);
  }
}

// A kept sum of so many bytes goes past the caches where its rows begin at cache lines.
TEST(Linear, LargeResults) {
  const Case c = {4100, 1040, 8, false, false, false};
  expect_linear(c, 1);
  expect_slope(c);
  std::vector<Operand> o = operands(c, false), lined = o;
  lined[4].array = Array(DType::f32, c.m * c.n + 16);
  const auto start = reinterpret_cast<uintptr_t>(lined[4].array.data());
  lined[4].view.offset = int64_t((64 - start % 64) % 64 / sizeof(float));
  KernelAttrs attrs;
  attrs.axis = 1;
  launch("linear", o, -1, attrs);
  launch("linear", lined, -1, attrs);
  EXPECT_EQ(o[3].array.bytes(), lined[3].array.bytes());
  EXPECT_EQ(std::memcmp(o[4].array.data(), lined[4].array.data() + lined[4].view.offset * 4,
                        size_t(c.m * c.n) * sizeof(float)),
            0);
}

TEST(Linear, RowsThatLieApart) {
  const Case c = {30, 40, 50, false, false, false};
  for (const bool is_slope : {false, true}) {
    std::vector<Operand> o = operands(c, is_slope), apart = o;
    apart[3] = {random_array(DType::f32, c.m * 64, -1, 1, 4), View{{c.m, c.n}, {64, 1}, 0}};
    const char* kernel = is_slope ? "linear_slope" : "linear";
    launch(kernel, o, is_slope ? -1 : 1, {});
    launch(kernel, apart, is_slope ? -1 : 1, {});
    for (int64_t i = 0; i < c.m * c.n; ++i) EXPECT_EQ(at(apart[3], i), at(o[3], i));
  }
}

TEST(Linear, NonFiniteValues) {
  const Case c = {2, 40, 3, false, false, false};
  std::vector<Operand> o = operands(c, false);
  o[2].array.set(0, std::nan(""));
  o[2].array.set(1, INFINITY);
  o[2].array.set(2, -INFINITY);
  for (const int64_t activation : {1, 2}) {
    KernelAttrs attrs;
    attrs.axis = activation;
    launch("linear", o, -1, attrs);
    EXPECT_TRUE(std::isnan(o[3].array.get(0)));
    EXPECT_EQ(o[3].array.get(1), INFINITY);
    EXPECT_EQ(o[3].array.get(2), 0);
    EXPECT_EQ(o[4].array.get(2), -INFINITY);
  }
}

TEST(Linear, NothingToMultiply) {
  const Case c = {3, 20, 0, false, false, false};
  std::vector<Operand> o = operands(c, false);
  launch("linear", o, -1, {});
  for (int64_t i = 0; i < c.m * c.n; ++i) EXPECT_EQ(at(o[3], i), at(o[2], i % c.n));
}

std::string digest() {
  uint64_t result = 0;
  for (const auto& [m, n, k] : {std::tuple(300, 400, 600), {2017, 65, 384}, {390, 321, 1100}}) {
    for (const bool is_slope : {false, true}) {
      std::vector<Operand> o = operands({m, n, k, false, true, false}, is_slope);
      KernelAttrs attrs;
      attrs.axis = is_slope ? 0 : 1;
      launch(is_slope ? "linear_slope" : "linear", o, -1, attrs);
      for (const int i : {3, 4}) {
        for (const char byte : o[size_t(i)].array.bytes()) result = 31 * result + uint8_t(byte);
      }
    }
  }
  return std::to_string(result);
}

TEST(LinearDeathTest, EqualBitsInProcessesOfOtherThreads) { expect_equal_in_processes(digest); }

TEST(Linear, Refuses) {
  const auto text = [](const std::string& kernel, std::vector<View> views, int64_t axis = 0,
                       DType dtype = DType::f32) {
    KernelCall call;
    call.kernel = kernel;
    call.outputs = 2;
    call.attrs.axis = axis;
    for (const View& view : views) call.operands.push_back({dtype, view});
    return error_of([&] { test_backend().compile(call); });
  };
  const auto dense_view = [](Shape shape) { return contiguous_view(shape); };
  const View a = dense_view({2, 3}), b = dense_view({3, 4}), c = dense_view({2, 4});
  const View bias = dense_view({4});
  EXPECT_EQ(text("linear", {a, b, bias, c, c}), "");
  EXPECT_EQ(text("linear_slope", {a, b, c, c, bias}), "");
  EXPECT_EQ(text("linear", {a, a, bias, c, c}),
            "linear: expected (m, k) and (k, n), got (2, 3) @ (2, 3)");
  EXPECT_EQ(text("linear", {a, b, bias, c, c}, 0, DType::bf16),
            "linear: expected f32 or f64, got bf16");
  EXPECT_EQ(text("linear", {a, b, bias, c, c}, 3), "linear: expected an axis in [0, 3), got 3");
  EXPECT_EQ(text("linear", {a, b, c, c, c}),
            "linear: expected the third operand of shape (4,), got (2, 4)");
  EXPECT_EQ(text("linear_slope", {a, b, c, View{{2, 4}, {1, 2}, 0}, bias}),
            "linear_slope: expected y with contiguous rows, got strides (1, 2)");
}

}  // namespace
}  // namespace tessera::test
