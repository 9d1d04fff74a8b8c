#include "tessera/backend/cpu/isa.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <sstream>

#include "backend_cpu/kernel_builder.h"

namespace tessera::test {
namespace {

TEST(Isa, SettingSelectsAndRefuses) {
  EXPECT_EQ(cpu::choose_isa(nullptr), cpu::available_isas().back());
  EXPECT_EQ(cpu::choose_isa(""), cpu::available_isas().back());
  for (cpu::Isa isa : cpu::available_isas()) {
    EXPECT_EQ(cpu::choose_isa(std::string(name(isa)).c_str()), isa);
  }
  try {
    cpu::choose_isa("mmx");
    FAIL() << "expected an Error";
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_EQ(text.find("TESSERA_ISA: expected one of baseline"), 0u) << text;
    EXPECT_NE(text.find("(what this processor has), got 'mmx'"), std::string::npos) << text;
  }
}

// The float that follows x by `steps` units of the last place is steps away.
double ulps(float got, double exact) {
  const float rounded = float(exact);
  if (std::isnan(exact)) return std::isnan(got) ? 0 : INFINITY;
  if (std::isinf(rounded) || std::isinf(got)) return got == rounded ? 0 : INFINITY;
  int exponent;
  std::frexp(rounded, &exponent);
  const double unit = std::ldexp(1.0, std::max(exponent - 24, -149));
  return std::abs(double(got) - exact) / unit;
}

struct MathRow {
  ScalarOp op;
  double ulp;  // what docs/dtypes.md says of the CPU
  std::function<double(double)> exact;
};

// Every 2003rd float, both signs, and the special values.
std::vector<float> sweep() {
  std::vector<float> values = {0.f, -0.f,      INFINITY, -INFINITY, NAN,
                               1.f, 88.72284f, -87.4f,   -103.9f};
  for (uint32_t bits = 1; bits < 0x7f800000u; bits += 2003) {
    values.push_back(std::bit_cast<float>(bits));
    values.push_back(-values.back());
  }
  return values;
}

double gelu_tanh(double x) {
  if (x < -1e4) return -0.0;
  const double w = 1.5957691216057308 * (x + 0.044715 * x * x * x);
  return w < 0 ? x * std::exp(w) / (1 + std::exp(w)) : x / (1 + std::exp(-w));
}

const MathRow kMathRows[] = {
    {ScalarOp::exp, 1, [](double x) { return std::exp(x); }},
    {ScalarOp::log, 1, [](double x) { return std::log(x); }},
    {ScalarOp::tanh, 1.5, [](double x) { return std::tanh(x); }},
    {ScalarOp::erf, 2.5, [](double x) { return std::erf(x); }},
    {ScalarOp::sqrt, 0.5, [](double x) { return std::sqrt(x); }},
    {ScalarOp::rsqrt, 1.5, [](double x) { return 1 / std::sqrt(x); }},
    {ScalarOp::floor, 0, [](double x) { return std::floor(x); }},
    {ScalarOp::sin, 2, [](double x) { return std::sin(x); }},
    {ScalarOp::cos, 2, [](double x) { return std::cos(x); }},
    {ScalarOp::tan, 3.5, [](double x) { return std::tan(x); }},
    {ScalarOp::asin, 2.5, [](double x) { return std::asin(x); }},
    {ScalarOp::acos, 1.5, [](double x) { return std::acos(x); }},
    {ScalarOp::atan, 2, [](double x) { return std::atan(x); }},
    {ScalarOp::sinh, 2, [](double x) { return std::sinh(x); }},
    {ScalarOp::cosh, 1.5, [](double x) { return std::cosh(x); }},
    {ScalarOp::expm1, 2, [](double x) { return std::expm1(x); }},
    {ScalarOp::log1p, 1.5, [](double x) { return std::log1p(x); }},
    {ScalarOp::log2, 2, [](double x) { return std::log2(x); }},
    {ScalarOp::gelu_tanh, 192, gelu_tanh},
    {ScalarOp::ceil, 0, [](double x) { return std::ceil(x); }},
    {ScalarOp::round, 0, [](double x) { return std::nearbyint(x); }},
    {ScalarOp::trunc, 0, [](double x) { return std::trunc(x); }},
};

TEST(Math, FloatsAreWithinTheTableOnEveryInstructionSet) {
  const std::vector<float> in = sweep();
  std::vector<float> out(in.size());
  for (const MathRow& row : kMathRows) {
    std::vector<float> first;
    std::vector<double> exact;
    for (float x : in) exact.push_back(row.exact(x));
    for (cpu::Isa isa : cpu::available_isas()) {
      const cpu::Isa before = cpu::isa();
      cpu::set_isa(isa);
      cpu::loops().scalar[int(row.op)][int(DType::f32)](int64_t(in.size()), out.data(), in.data(),
                                                        nullptr, nullptr, 0);
      cpu::set_isa(before);
      double worst = 0;
      float where = 0;
      for (size_t i = 0; i < in.size(); ++i) {
        const double error = ulps(out[i], exact[i]);
        if (error > worst) worst = error, where = in[i];
      }
      EXPECT_LE(worst, row.ulp) << name(row.op) << " at " << where << ", " << name(isa);
      EXPECT_LE(row.ulp, info(row.op).ulp) << name(row.op);
      RecordProperty(cat(name(row.op), "_", name(isa)), cat(worst));
      if (first.empty()) first = out;
      EXPECT_EQ(std::memcmp(first.data(), out.data(), out.size() * sizeof(float)), 0)
          << name(row.op) << " differs on " << name(isa);
    }
  }
}

// The first walk over a row is made while the row before it is written: its results are those of
// the row alone.
TEST(Math, RowsTogetherAreLikeRowsAlone) {
  constexpr size_t kRows = 3;
  const cpu::RowLoops& loops = cpu::loops().rows_f32;
  for (const size_t n : {7, 64, 1000}) {
    std::vector<float> x(kRows * n), together(2 * x.size() + 2 * kRows), alone(together.size());
    const std::vector<float> gamma(n, 1.5f);
    for (size_t i = 0; i < x.size(); ++i) x[i] = float(std::sin(double(i * i))) * float(i % 19);
    const auto run = [&](std::vector<float>& to, size_t first, int64_t rows) {
      float* const y = to.data() + first * n;
      float* const statistics = to.data() + 2 * x.size() + first;
      const float* const from = x.data() + first * n;
      loops.softmax(rows, int64_t(n), y, from, nullptr);
      loops.layer_norm(rows, int64_t(n), y + x.size(), statistics, statistics + kRows, from,
                       gamma.data(), gamma.data(), 1e-5, false);
    };
    run(together, 0, int64_t(kRows));
    for (size_t row = 0; row < kRows; ++row) run(alone, row, 1);
    EXPECT_EQ(together, alone) << n << " columns";
  }
}

// Rows have functions of their own. Lengths with and without a rest; from near 0 to where results
// are 0.
TEST(Math, RowsAreTheSameOnEveryInstructionSet) {
  for (const int64_t n : {7, 64, 1000, 4099}) {
    std::vector<float> x, gamma, y(static_cast<size_t>(n)), first;
    for (int64_t i = 0; i < n; ++i) {
      x.push_back(float(std::sin(double(i * i))) * 60.f);
      gamma.push_back(float(i % 5) - 1.5f);
    }
    for (cpu::Isa isa : cpu::available_isas()) {
      const cpu::Isa before = cpu::isa();
      cpu::set_isa(isa);
      const cpu::RowLoops& rows = cpu::loops().rows_f32;
      std::vector<float> results(2);
      rows.softmax(1, n, y.data(), x.data(), nullptr);
      results.insert(results.end(), y.begin(), y.end());
      rows.layer_norm(1, n, y.data(), &results[0], &results[1], x.data(), gamma.data(),
                      gamma.data(), 1e-5, false);
      cpu::set_isa(before);
      results.insert(results.end(), y.begin(), y.end());
      if (first.empty()) first = results;
      EXPECT_EQ(std::memcmp(first.data(), results.data(), results.size() * sizeof(float)), 0)
          << n << " columns differ on " << name(isa);
    }
  }
}

struct BinaryRow {
  ScalarOp op;
  double ulp;
  double (*exact)(double a, double b);
};

const BinaryRow kBinaryRows[] = {
    {ScalarOp::pow, 1, [](double a, double b) { return std::pow(a, b); }},
    {ScalarOp::atan2, 2.5, [](double a, double b) { return std::atan2(a, b); }},
};

// All pairs of special values, then bases of all magnitudes and around 1, with exponents that are
// whole and that are not.
void binary_sweep(std::vector<float>& a, std::vector<float>& b) {
  const float special[] = {0.f,    -0.f,  1.f,  -1.f,  INFINITY,   -INFINITY,  NAN,        0.5f,
                           -0.5f,  2.f,   -2.f, 3.f,   -3.f,       1e-45f,     -1e-40f,    3e38f,
                           -3e38f, 1e10f, 1.5f, -1.5f, 1.0000001f, 16777216.f, -33554432.f};
  for (float x : special) {
    for (float y : special) a.push_back(x), b.push_back(y);
  }
  for (uint32_t i = 0; i < 200000; ++i) {
    const uint32_t bits = i * 21473u + 5u;
    const float any = std::bit_cast<float>(bits % 0x7f800000u);
    const float spread = float(int(i * 7919u % 20001u) - 10000) / 331.f;
    a.push_back(any), b.push_back(spread / 8);
    a.push_back(1 + spread / 64), b.push_back(spread * 5);
    a.push_back(-any), b.push_back(std::round(spread / 3));
    a.push_back(std::bit_cast<float>(bits)), b.push_back(std::bit_cast<float>(bits * 3u));
  }
}

TEST(Math, PowersAndAnglesAreWithinTheTableOnEveryInstructionSet) {
  std::vector<float> a, b;
  binary_sweep(a, b);
  std::vector<float> out(a.size());
  for (const BinaryRow& row : kBinaryRows) {
    std::vector<float> first;
    for (cpu::Isa isa : cpu::available_isas()) {
      const cpu::Isa before = cpu::isa();
      cpu::set_isa(isa);
      cpu::loops().scalar[int(row.op)][int(DType::f32)](int64_t(a.size()), out.data(), a.data(),
                                                        b.data(), nullptr, 0);
      cpu::set_isa(before);
      if (first.empty()) first = out;
      EXPECT_EQ(std::memcmp(first.data(), out.data(), out.size() * sizeof(float)), 0) << name(isa);
    }
    int wrong = 0;
    for (size_t i = 0; i < a.size() && wrong < 5; ++i) {
      const double exact = row.exact(a[i], b[i]);
      const bool sign = std::isnan(exact) || std::signbit(out[i]) == std::signbit(exact);
      if (ulps(out[i], exact) <= row.ulp && sign) continue;
      ADD_FAILURE() << name(row.op) << "(" << a[i] << ", " << b[i] << ") is " << out[i] << ", not "
                    << exact;
      ++wrong;
    }
  }
}

TEST(Math, TheDocumentSaysTheSame) {
  const std::ifstream file(TESSERA_TEST_DIR "/../../docs/dtypes.md");
  std::ostringstream text;
  text << file.rdbuf();
  auto expect = [&](ScalarOp op, double ulp) {
    if (ulp <= 0.5) return;
    const std::string row = cat("| `", name(op), "` | ", ulp, " | ", info(op).ulp, " |");
    EXPECT_NE(text.str().find(row), std::string::npos) << "docs/dtypes.md should contain " << row;
  };
  for (const MathRow& row : kMathRows) expect(row.op, row.ulp);
  for (const BinaryRow& row : kBinaryRows) expect(row.op, row.ulp);
}

TEST(Math, SigmoidIsWithinTheTableWhereItIsNormal) {
  std::vector<float> in, out;
  for (float x = -87.f; x < 30.f; x += 0.00013f) in.push_back(x);
  out.resize(in.size());
  cpu::loops().scalar[int(ScalarOp::sigmoid)][int(DType::f32)](int64_t(in.size()), out.data(),
                                                               in.data(), nullptr, nullptr, 0);
  double worst = 0;
  for (size_t i = 0; i < in.size(); ++i) {
    worst = std::max(worst, ulps(out[i], 1 / (1 + std::exp(-double(in[i])))));
  }
  EXPECT_LE(worst, info(ScalarOp::sigmoid).ulp);
}

TEST(Halves, LoopsEqualTheBaseTypes) {
  for (cpu::Isa isa : cpu::available_isas()) {
    const cpu::Isa before = cpu::isa();
    cpu::set_isa(isa);
    const cpu::LoopTable& loops = cpu::loops();
    cpu::set_isa(before);
    std::vector<uint16_t> all(65536), back(65536);
    for (size_t i = 0; i < all.size(); ++i) all[i] = uint16_t(i);
    std::vector<float> wide(65536);
    const cpu::Block block{1, 65536, 0, 1, 0, 1};
    loops.load[int(cpu::Storage::f16)](wide.data(), all.data(), block);
    for (size_t i = 0; i < all.size(); ++i) {
      ASSERT_EQ(std::bit_cast<uint32_t>(wide[i]),
                std::bit_cast<uint32_t>(detail::f16_to_float(all[i])));
    }
    loops.load[int(cpu::Storage::bf16)](wide.data(), all.data(), block);
    for (size_t i = 0; i < all.size(); ++i) {
      ASSERT_EQ(std::bit_cast<uint32_t>(wide[i]),
                std::bit_cast<uint32_t>(detail::bf16_to_float(all[i])));
    }
    for (uint32_t start = 0; start < 64; ++start) {
      // 65536 floats spread over all exponents and both signs, with different low bits each time.
      for (size_t i = 0; i < wide.size(); ++i) {
        wide[i] = std::bit_cast<float>(uint32_t(i << 16) + start * 1021u + (start % 3) * 0x7fffu);
      }
      loops.store[int(cpu::Storage::f16)](back.data(), wide.data(), block);
      for (size_t i = 0; i < all.size(); ++i) ASSERT_EQ(back[i], detail::float_to_f16(wide[i]));
      loops.store[int(cpu::Storage::bf16)](back.data(), wide.data(), block);
      for (size_t i = 0; i < all.size(); ++i) ASSERT_EQ(back[i], detail::float_to_bf16(wide[i]));
    }
  }
}

}  // namespace
}  // namespace tessera::test
