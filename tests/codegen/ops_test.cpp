// Every scalar op, cast and dtype through the renderer, run on the host.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "codegen/host_kernel.h"
#include "codegen/zoo.h"
#include "kernel/ir_builder.h"

namespace tessera {
namespace {

class RenderedOps : public testing::TestWithParam<DType> {
 protected:
  void SetUp() override {
    const std::string reason = host_compiler_missing();
    if (!reason.empty()) GTEST_SKIP() << reason;
  }
};

template <class T>
T t_abs(T a) {
  return a > 0 ? a : 0 - a;
}

template <class T>
T t_mod(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return b == 0 ? 0 : (a % b + b) % b;
  } else {
    const T rest = std::fmod(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
  }
}

template <class T>
T t_floor_div(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return b == 0 ? 0 : (a - t_mod(a, b)) / b;
  } else if (b != 0 && std::isinf(a)) {
    return T(NAN);
  } else if (std::isinf(b)) {
    return a != 0 && (a < 0) != (b < 0) ? T(-1) : a * 0;
  } else {
    return std::floor(a / b);
  }
}

// GPT-2's gelu and its derivative, in double whatever T is.
template <class T>
T t_gelu_tanh(T a) {
  const double x = double(a), w = 1.5957691216057308 * (x + 0.044715 * x * x * x);
  return T(x < -1e4 ? 0 : x / (1 + std::exp(-w)));
}

template <class T>
T t_gelu_tanh_slope(T a) {
  const double x = double(a), w = 1.5957691216057308 * (x + 0.044715 * x * x * x);
  const double s = 1 / (1 + std::exp(-w)), slope = 1.5957691216057308 * (1 + 0.134145 * x * x);
  return T(std::abs(x) > 1e4 ? double(x > 0) : s + x * s * (1 - s) * slope);
}

int64_t t_shift_left(int64_t a, int64_t b) { return b < 0 || b > 63 ? 0 : a << b; }
int64_t t_shift_right(int64_t a, int64_t b) { return b < 0 || b > 63 ? -(a < 0) : a >> b; }

template <class T>
constexpr bool has_form(ScalarIn in) {
  return std::is_floating_point_v<T> ? takes_floats(in) : takes_integers(in) || takes_bool(in);
}

// The rows of scalar_ops.def over one of the types that hold all values of a kind: int64_t for
// integers and bool, float and double.
template <class T>
T apply(ScalarOp op, T a, T b) {
  using namespace std;
  if constexpr (is_integral_v<T>) {
    if (op == ScalarOp::mul) return T(uint64_t(a) * uint64_t(b));  // u32's may leave int64_t
  }
  switch (op) {
#define SCALAR_OP(name, arity, in, out, algebra, ulp, ...)          \
  case ScalarOp::name:                                              \
    if constexpr (has_form<T>(ScalarIn::in)) return T(__VA_ARGS__); \
    break;
#include "tessera/base/scalar_ops.def"
#undef SCALAR_OP
    case ScalarOp::where: return a != b ? a : b;
    default: ADD_FAILURE() << "no reference for " << name(op);
  }
  return T(0);
}

template <class T>
using Wide = std::conditional_t<std::is_integral_v<T>, int64_t,
                                std::conditional_t<std::is_same_v<T, double>, double, float>>;

// Room for any output: bool results take one byte an element, others sizeof(T).
template <class T>
std::vector<std::vector<T>> outputs_of(const KernelIR& ir, size_t inputs, size_t n) {
  return std::vector<std::vector<T>>(ir.operands.size() - inputs, std::vector<T>(n));
}

template <class T>
void check_ops(const std::vector<T>& a, const std::vector<T>& b) {
  const AllOps all = all_ops_kernel(dtype_of<T>);
  auto outputs = outputs_of<T>(all.ir, 2, a.size());
  std::vector<void*> operands = {const_cast<T*>(a.data()), const_cast<T*>(b.data())};
  for (auto& output : outputs) operands.push_back(output.data());
  EXPECT_EQ(HostKernel(all.ir).run(operands, int64_t(a.size())), 0);

  for (size_t k = 0; k < all.ops.size(); ++k) {
    const bool logical = info(all.ops[k]).out == ScalarOut::logical;
    for (size_t i = 0; i < a.size(); ++i) {
      SCOPED_TRACE(cat(name(all.ops[k]), " of ", Wide<T>(a[i]), " and ", Wide<T>(b[i])));
      const Wide<T> expected = apply<Wide<T>>(all.ops[k], Wide<T>(a[i]), Wide<T>(b[i]));
      if (logical) {
        const uint8_t got = reinterpret_cast<const uint8_t*>(outputs[k].data())[i];
        EXPECT_EQ(got, expected != 0 ? 1 : 0);
        continue;
      }
      const T rounded = T(expected), got = outputs[k][i];
      if (expected != expected) {
        EXPECT_TRUE(got != got) << Wide<T>(got);
      } else if constexpr (std::is_same_v<T, double>) {
        EXPECT_DOUBLE_EQ(got, rounded);
      } else {
        EXPECT_FLOAT_EQ(float(got), float(rounded));
      }
    }
  }
}

TEST_P(RenderedOps, AgreeWithTheTable) {
  visit(GetParam(), []<class T>() {
    if constexpr (std::is_same_v<T, bool>) {
      // std::vector<bool> has no data(): four elements on their own.
      const AllOps all = all_ops_kernel(DType::boolean);
      const std::vector<uint8_t> a = {0, 0, 1, 1}, b = {0, 1, 0, 1};
      std::vector<std::vector<uint8_t>> outputs(all.ops.size(), std::vector<uint8_t>(4));
      std::vector<void*> operands = {const_cast<uint8_t*>(a.data()),
                                     const_cast<uint8_t*>(b.data())};
      for (auto& output : outputs) operands.push_back(output.data());
      EXPECT_EQ(HostKernel(all.ir).run(operands, 4), 0);
      for (size_t k = 0; k < all.ops.size(); ++k) {
        for (size_t i = 0; i < 4; ++i) {
          EXPECT_EQ(outputs[k][i], apply<int64_t>(all.ops[k], a[i], b[i])) << name(all.ops[k]);
        }
      }
    } else if constexpr (std::is_integral_v<T>) {
      const T lowest = std::numeric_limits<T>::is_signed ? T(-11) : T(0);
      check_ops<T>({0, 1, 2, 3, 7, 11, lowest, 5, 100}, {3, 0, lowest, 3, 2, 1, lowest, 9, 1});
      // Where a device must not overflow; 64 bits hold what narrower types compute.
      if constexpr (sizeof(T) < 8) {
        const T low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
        check_ops<T>({low, low, low, high, high, low, 7}, {T(-1), low, 0, T(-1), high, 40, T(-7)});
      }
    } else {
      const float inf = HUGE_VALF, nan = std::nanf("");
      std::vector<T> a, b;
      for (const float v : {0.0f, -0.0f, 1.5f, -2.25f, 0.125f, 3.0f, inf, -inf, nan, 2.0f}) {
        for (const float w : {0.0f, 1.5f, -0.75f, inf, nan}) {
          a.push_back(T(v));
          b.push_back(T(w));
        }
      }
      check_ops<T>(a, b);
    }
  });
}

TEST_P(RenderedOps, CastToEveryType) {
  visit(GetParam(), []<class T>() {
    using Element = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;
    const bool fractions = is_float(dtype_of<T>);
    std::vector<Element> x;
    for (const float v : {0.0f, 1.0f, 100.0f, 2.5f, 0.1f, 97.75f}) {
      if (std::is_same_v<T, bool> && v > 1) continue;
      x.push_back(Element(fractions ? v : std::floor(v)));
    }
    const KernelIR ir = all_casts_kernel(dtype_of<T>);
    std::vector<std::vector<double>> outputs(kDTypeCount, std::vector<double>(x.size()));
    std::vector<void*> operands = {x.data()};
    for (auto& output : outputs) operands.push_back(output.data());
    EXPECT_EQ(HostKernel(ir).run(operands, int64_t(x.size())), 0);
    for (int k = 0; k < kDTypeCount; ++k) {
      visit(static_cast<DType>(k), [&]<class To>() {
        const auto* got = reinterpret_cast<const To*>(outputs[size_t(k)].data());
        for (size_t i = 0; i < x.size(); ++i) {
          const auto wide = Wide<Element>(x[i]);
          const To expected = std::is_same_v<To, bool> ? To(wide != 0) : To(wide);
          EXPECT_EQ(double(got[i]), double(expected)) << name(static_cast<DType>(k));
        }
      });
    }
  });
}

INSTANTIATE_TEST_SUITE_P(AllTypes, RenderedOps,
                         testing::Values(DType::f32, DType::f64, DType::f16, DType::bf16, DType::i8,
                                         DType::i32, DType::i64, DType::u8, DType::u32,
                                         DType::boolean),
                         [](const auto& param) { return std::string(name(param.param)); });

class RenderedCasts : public RenderedOps {};

TEST_P(RenderedCasts, RoundToAHalfTypeInsideTheKernel) {
  IrBuilder b("cast sub", {3}, 0);
  const int x = b.in(DType::f64), y = b.out(DType::f64);
  const int v = b.load(x, {1});
  const int rounded = b.cast(b.cast(v, GetParam()), DType::f64);
  b.store(y, {1}, b.scalar(ScalarOp::sub, {v, rounded}));
  const std::vector<double> in = {1.0, 0.1, 3.14159};
  std::vector<double> out(3);
  EXPECT_EQ(HostKernel(b.build())(3, in, out), 0);
  for (size_t i = 0; i < 3; ++i) {
    const float half =
        GetParam() == DType::f16 ? float(f16(float(in[i]))) : float(bf16(float(in[i])));
    EXPECT_EQ(out[i], in[i] - double(half));
  }
}

INSTANTIATE_TEST_SUITE_P(Halves, RenderedCasts, testing::Values(DType::f16, DType::bf16),
                         [](const auto& param) { return std::string(name(param.param)); });

}  // namespace
}  // namespace tessera
