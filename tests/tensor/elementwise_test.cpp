// Broadcasting, promotion, operators and the rules of integers, against numbers worked out by hand.
// What every op computes is the business of tests/conformance.
#include "tessera/tensor/elementwise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/expect_error.h"
#include "tessera/conformance/reference.h"
#include "tessera/tensor/ops.h"
#include "tessera/tensor/var.h"

namespace tessera {
namespace {

using Doubles = std::vector<double>;
using Bools = std::vector<bool>;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Tensor vec(std::vector<float> values) { return tensor(values); }

// Equal, also where both are NaN, and zeros of the same sign.
void expect_same(const Tensor& actual, const Doubles& expected) {
  const Doubles values = to_doubles(actual);
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(expected[i])) {
      EXPECT_TRUE(std::isnan(values[i])) << "element " << i << " is " << values[i];
    } else {
      EXPECT_EQ(values[i], expected[i]) << "element " << i;
      EXPECT_EQ(std::signbit(values[i]), std::signbit(expected[i])) << "element " << i;
    }
  }
}

TEST(Promotion, OfTwoTensors) {
  struct {
    DType a, b, sum;
  } table[] = {{DType::f32, DType::f64, DType::f64},    {DType::f16, DType::bf16, DType::f32},
               {DType::f16, DType::f32, DType::f32},    {DType::i64, DType::f16, DType::f16},
               {DType::i8, DType::u8, DType::i32},      {DType::i32, DType::u32, DType::i64},
               {DType::u8, DType::i32, DType::i32},     {DType::boolean, DType::u8, DType::u8},
               {DType::boolean, DType::f32, DType::f32}};
  for (const auto& [a, b, sum] : table) {
    const Tensor result = ones({2}, a) + ones({2}, b);
    EXPECT_EQ(result.dtype(), sum) << name(a) << " + " << name(b);
    EXPECT_EQ((ones({2}, b) + ones({2}, a)).dtype(), sum) << name(b) << " + " << name(a);
    EXPECT_EQ(to_doubles(result), (Doubles{2, 2}));
  }
}

TEST(Promotion, OfALiteral) {
  EXPECT_EQ((ones({1}, DType::f16) * 2).dtype(), DType::f16);
  EXPECT_EQ((ones({1}, DType::f16) * 2.5).dtype(), DType::f16);
  EXPECT_EQ((ones({1}, DType::u8) + 2).dtype(), DType::u8);
  EXPECT_EQ((2.5 * ones({1}, DType::i64)).dtype(), DType::f32);
  EXPECT_EQ((ones({1}, DType::boolean) + 1).dtype(), DType::i64);
  EXPECT_EQ((ones({1}, DType::i64) == 1).dtype(), DType::boolean);
  EXPECT_EQ(to_doubles(full({1}, int64_t{1} << 60, DType::i64) == (int64_t{1} << 60)),
            (Doubles{1}));
}

TEST(Promotion, FunctionsOfFloatsTakeIntegers) {
  EXPECT_EQ(exp(ones({1}, DType::i32)).dtype(), DType::f32);
  EXPECT_EQ((ones({1}, DType::i32) / ones({1}, DType::i32)).dtype(), DType::f32);
  EXPECT_EQ(to_doubles(full({1}, 7, DType::i32) / 2), (Doubles{3.5}));
  EXPECT_EQ(mean(arange(4)).item(), 1.5);
}

TEST(Operators, WithTensorsAndLiterals) {
  const Tensor x = vec({1, 2, 3}), y = vec({3, 2, 1});
  EXPECT_EQ(to_doubles(x + y), (Doubles{4, 4, 4}));
  EXPECT_EQ(to_doubles(x - y), (Doubles{-2, 0, 2}));
  EXPECT_EQ(to_doubles(x * y), (Doubles{3, 4, 3}));
  EXPECT_EQ(to_doubles(y / vec({2, 4, 8})), (Doubles{1.5, 0.5, 0.125}));
  EXPECT_EQ(to_doubles(1 - x), (Doubles{0, -1, -2}));
  EXPECT_EQ(to_doubles(6 / x), (Doubles{6, 3, 2}));
  EXPECT_EQ(to_doubles(-x), (Doubles{-1, -2, -3}));
  EXPECT_EQ(to_doubles(x < y), (Doubles{1, 0, 0}));
  EXPECT_EQ(to_doubles(x <= 2), (Doubles{1, 1, 0}));
  EXPECT_EQ(to_doubles(2 > x), (Doubles{1, 0, 0}));
  EXPECT_EQ(to_doubles(x >= 2), (Doubles{0, 1, 1}));
  EXPECT_EQ(to_doubles(x == y), (Doubles{0, 1, 0}));
  EXPECT_EQ(to_doubles(x != 2), (Doubles{1, 0, 1}));
  EXPECT_EQ(to_doubles(pow(x, 2)), (Doubles{1, 4, 9}));
  EXPECT_EQ(to_doubles(maximum(x, 2)), (Doubles{2, 2, 3}));
  EXPECT_EQ(to_doubles(minimum(x, 2)), (Doubles{1, 2, 2}));
}

TEST(Operators, Broadcast) {
  const Tensor row = vec({1, 2, 3}), column = reshape(vec({10, 20}), {2, 1});
  const Tensor sum = row + column;
  EXPECT_EQ(sum.shape(), (Shape{2, 3}));
  EXPECT_EQ(to_doubles(sum), (Doubles{11, 12, 13, 21, 22, 23}));
  EXPECT_EQ((ones({3, 1, 5}) + ones({4, 1})).shape(), (Shape{3, 4, 5}));
  EXPECT_EQ((ones({0}) + ones({1})).shape(), (Shape{0}));
  EXPECT_EQ(error_text([] {
              ones({2, 3}) + ones({2});
            }),
            "add: shapes do not broadcast: (2, 3) and (2,)");
}

TEST(Where, BroadcastsAndTakesLiterals) {
  const Tensor x = vec({-1, 2, -3});
  EXPECT_EQ(to_doubles(where(x > 0, x, 0)), (Doubles{0, 2, 0}));
  EXPECT_EQ(to_doubles(where(x > 0, 1.5, x)), (Doubles{-1, 1.5, -3}));
  EXPECT_EQ(where(x > 0, ones({2, 1}, DType::i64), x).shape(), (Shape{2, 3}));
  EXPECT_EQ(where(x > 0, ones({1}, DType::i64), x).dtype(), DType::f32);
}

TEST(Operators, OfBits) {
  const Tensor x = tensor(std::vector<int32_t>{12, 10, -1}),
               y = tensor(std::vector<int32_t>{10, 6, 7});
  EXPECT_EQ(to_doubles(x & y), (Doubles{8, 2, 7}));
  EXPECT_EQ(to_doubles(x | y), (Doubles{14, 14, -1}));
  EXPECT_EQ(to_doubles(x ^ y), (Doubles{6, 12, -8}));
  EXPECT_EQ(to_doubles(~x), (Doubles{-13, -11, 0}));
  EXPECT_EQ(to_doubles(x & 3), (Doubles{0, 2, 3}));
  EXPECT_EQ(to_doubles(1 | x), (Doubles{13, 11, -1}));
  EXPECT_EQ(to_doubles(x ^ 1), (Doubles{13, 11, -2}));
  EXPECT_EQ(to_doubles(~tensor(std::vector<uint8_t>{0, 255, 1})), (Doubles{255, 0, 254}));
  EXPECT_EQ((x & tensor(std::vector<int64_t>{1, 1, 1})).dtype(), DType::i64);
}

TEST(Operators, OfBool) {
  const Tensor x = tensor(Bools{false, false, true, true}),
               y = tensor(Bools{false, true, false, true});
  EXPECT_EQ((x & y).to_vector<bool>(), (Bools{false, false, false, true}));
  EXPECT_EQ((x | y).to_vector<bool>(), (Bools{false, true, true, true}));
  EXPECT_EQ((x ^ y).to_vector<bool>(), (Bools{false, true, true, false}));
  EXPECT_EQ((~x).to_vector<bool>(), (Bools{true, true, false, false}));
  EXPECT_EQ((x & true).to_vector<bool>(), (Bools{false, false, true, true}));
  EXPECT_EQ((x ^ true).dtype(), DType::boolean);
}

TEST(Operators, ALiteralBeyondSignedNumbersIsReal) {
  EXPECT_EQ((vec({0}) + 18446744073709551615ull).item(), 0x1p64);
  EXPECT_EQ(full({1}, size_t{1} << 63, DType::f64).item(), 0x1p63);
}

TEST(Operators, AConditionReadsTheOneElement) {
  const Tensor loss = scalar(0.5f);
  EXPECT_TRUE(bool(loss < 1));
  EXPECT_FALSE(bool(loss < 0.25));
  EXPECT_FALSE(loss == 1 ? true : false);
  EXPECT_TRUE(!(loss > 1) && loss != 0);
  EXPECT_EQ(error_text([] {
              return bool(vec({1, 1}) == vec({1, 1}));
            }),
            "a condition: expected a tensor of one element, got (2,): use any() or all()");
  EXPECT_EQ(error_text([] { return bool(Tensor()); }),
            "Tensor: expected a tensor, got an empty handle");
}

TEST(Logical, NumbersAreTrueUnlessZero) {
  const Tensor x = vec({0, 0, 2, -0.5}), y = tensor(std::vector<int64_t>{0, 3, 0, 7});
  EXPECT_EQ(logical_and(x, y).to_vector<bool>(), (Bools{false, false, false, true}));
  EXPECT_EQ(logical_or(x, y).to_vector<bool>(), (Bools{false, true, true, true}));
  EXPECT_EQ(logical_xor(x, y).to_vector<bool>(), (Bools{false, true, true, false}));
  EXPECT_EQ(logical_not(y).to_vector<bool>(), (Bools{true, false, true, false}));
  EXPECT_EQ(logical_and(x, 1).to_vector<bool>(), (Bools{false, false, true, true}));
  EXPECT_EQ(logical_not(tensor(Doubles{kNan, -0.0})).to_vector<bool>(), (Bools{false, true}));
}

// What torch.floor_divide and torch.remainder give, and Python's // and %.
TEST(Division, OfFloatsAsPython) {
  const Doubles a = {5, -5, 5, -5, 5, -5, 1, 7.5, 0, -0.0};
  const Doubles b = {3, 3, -3, -3, kInf, kInf, 0.1, -2, 5, 5};
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Tensor x = tensor(a).to(dtype), y = tensor(b).to(dtype);
    Doubles remainders = {2, 1, -1, -2, 5, kInf, 0, -0.5, 0, -0.0};
    // Exactly what 9 times the number that 0.1 is rounded to leaves of 1.
    remainders[6] =
        dtype == DType::f64 ? double(1 - 9 * 0x1.999999999999ap-4L) : 1 - 9 * double(0.1f);
    expect_same(floor_div(x, y), {1, -2, -2, 1, 0, -1, 9, -4, 0, -0.0});
    expect_same(mod(x, y), remainders);
    expect_same(x % y, remainders);
  }
  const Tensor special = tensor(Doubles{kInf, -kInf, 5, 0, kNan, 5, -5});
  const Tensor by = tensor(Doubles{2, 2, 0, 0, 1, -kInf, -kInf});
  expect_same(floor_div(special, by), {kNan, kNan, kInf, kNan, kNan, -1, 0});
  expect_same(mod(special, by), {kNan, kNan, kNan, kNan, kNan, -kInf, -5});
}

TEST(Division, OfIntegersRoundsDownAndKeepsThem) {
  const Tensor a = tensor(std::vector<int32_t>{7, -7, 7, -7, 6}),
               b = tensor(std::vector<int32_t>{3, 3, -3, -3, -2});
  EXPECT_EQ(floor_div(a, b).dtype(), DType::i32);
  EXPECT_EQ(to_doubles(floor_div(a, b)), (Doubles{2, -3, -3, 2, -3}));
  EXPECT_EQ(to_doubles(a % b), (Doubles{1, 2, -2, -1, 0}));
  EXPECT_EQ(to_doubles(floor_div(a, 2)), (Doubles{3, -4, 3, -4, 3}));
  EXPECT_EQ(to_doubles(100 % b), (Doubles{1, 1, -2, -2, 0}));
  EXPECT_EQ((a % 2.5).dtype(), DType::f32);
}

template <class T>
std::vector<T> read(const Tensor& x) {
  return x.to_vector<T>();
}

template <class T>
void expect_no_trap() {
  const T low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
  const Tensor a = tensor(std::vector<T>{low, high, 0, low, 5}), zero = zeros({5}, dtype_of<T>);
  EXPECT_EQ(read<T>(floor_div(a, zero)), std::vector<T>(5, 0));
  EXPECT_EQ(read<T>(mod(a, zero)), std::vector<T>(5, 0));
  EXPECT_EQ(read<T>(floor_div(a, high)),
            (std::vector<T>{T(low < 0 ? -2 : 0), 1, 0, T(low < 0 ? -2 : 0), 0}));
  if constexpr (std::is_signed_v<T>) {
    EXPECT_EQ(read<T>(floor_div(a, -1)), (std::vector<T>{low, T(-high), 0, low, -5}));
    EXPECT_EQ(read<T>(mod(a, -1)), std::vector<T>(5, 0));
    EXPECT_EQ(read<T>(mod(a, low)), (std::vector<T>{0, -1, 0, 0, T(low + 5)}));
  }
}

TEST(Division, OfIntegersNeverTraps) {
  expect_no_trap<int8_t>();
  expect_no_trap<int32_t>();
  expect_no_trap<int64_t>();
  expect_no_trap<uint8_t>();
  expect_no_trap<uint32_t>();
}

template <class T>
void expect_shifts() {
  constexpr int kBits = 8 * sizeof(T);
  const Tensor amounts = tensor(std::vector<T>{0, 1, kBits - 1, kBits, kBits + 1, T(-1)});
  const T low = std::numeric_limits<T>::min(), all = T(-1), rest = T(low < 0 ? -1 : 0);
  const std::vector<T> lefts = {all, T(all - 1), T(uint64_t{1} << (kBits - 1)), 0, 0, 0};
  EXPECT_EQ(read<T>(shift_left(full({6}, 0, dtype_of<T>) - 1, amounts)), lefts);
  const std::vector<T> rights = {all, T(all >> 1), T(low < 0 ? -1 : 1), rest, rest, rest};
  EXPECT_EQ(read<T>(shift_right(full({6}, 0, dtype_of<T>) - 1, amounts)), rights);
  EXPECT_EQ(read<T>(shift_left(ones({1}, dtype_of<T>), 3)), std::vector<T>{8});
  EXPECT_EQ(read<T>(shift_right(9, ones({1}, dtype_of<T>))), std::vector<T>{4});
}

TEST(Shifts, AreDefinedForEveryAmount) {
  expect_shifts<int8_t>();
  expect_shifts<int32_t>();
  expect_shifts<int64_t>();
  expect_shifts<uint8_t>();
  expect_shifts<uint32_t>();
}

TEST(Rounding, HalfToEvenAndTowardsZero) {
  const Doubles x = {0.5, 1.5, 2.5, -0.5, -1.5, -2.7, 1e20, kInf, kNan, -0.0};
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Tensor t = tensor(x).to(dtype);
    const double large = to_doubles(t)[6];
    expect_same(round(t), {0, 2, 2, -0.0, -2, -3, large, kInf, kNan, -0.0});
    expect_same(trunc(t), {0, 1, 2, -0.0, -1, -2, large, kInf, kNan, -0.0});
    expect_same(ceil(t), {1, 2, 3, -0.0, -1, -2, large, kInf, kNan, -0.0});
    expect_same(floor(t), {0, 1, 2, -1, -2, -3, large, kInf, kNan, -0.0});
  }
  const Tensor whole = full({2}, (int64_t{1} << 53) + 1, DType::i64);
  for (const Tensor& same : {round(whole), trunc(whole), ceil(whole), floor(whole)}) {
    EXPECT_EQ(same.to_vector<int64_t>(), whole.to_vector<int64_t>());
  }
}

TEST(Classes, OfFloatsAndIntegers) {
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    const Tensor x = tensor(Doubles{0, 1, kInf, -kInf, kNan}).to(dtype);
    EXPECT_EQ(isnan(x).to_vector<bool>(), (Bools{false, false, false, false, true}));
    EXPECT_EQ(isinf(x).to_vector<bool>(), (Bools{false, false, true, true, false}));
    EXPECT_EQ(isfinite(x).to_vector<bool>(), (Bools{true, true, false, false, false}));
  }
  EXPECT_EQ(isfinite(arange(2)).to_vector<bool>(), (Bools{true, true}));
  EXPECT_EQ(isnan(arange(2)).to_vector<bool>(), (Bools{false, false}));
}

TEST(Elementwise, ErrorsNameTheTypes) {
  EXPECT_EQ(error_text([] { vec({1}) & vec({2}); }), "bitwise_and: not defined for f32");
  EXPECT_EQ(error_text([] { shift_left(vec({1}), 2); }), "shift_left: not defined for f32");
  EXPECT_EQ(error_text([] { ~vec({1}); }), "bitwise_not: not defined for f32");
  const Tensor truth = tensor(Bools{true});
  EXPECT_EQ(error_text([&] { shift_right(truth, truth); }), "shift_right: not defined for bool");
  EXPECT_EQ(error_text([&] { floor_div(truth, truth); }), "floor_div: not defined for bool");
}

}  // namespace
}  // namespace tessera
