// Generated kernels with reductions, against the plain interpretation, over rows that fit a tile
// and rows that do not, along rows and along columns.
#include <gtest/gtest.h>

#include <cmath>

#include "backend_cpu/kernel_builder.h"
#include "backend_cpu/threads.h"
#include "tessera/backend/cpu/isa.h"

namespace tessera::test {
namespace {

constexpr auto f32 = DType::f32;
constexpr auto kRow = IrLevel::row;

// x laid out with rows contiguous, or with columns contiguous.
Dims strides_of(int64_t rows, int64_t columns, bool by_rows) {
  return by_rows ? Dims{columns, 1} : Dims{1, rows};
}

KernelBuilder softmax(DType dtype, int64_t rows, int64_t columns, bool by_rows) {
  KernelBuilder k({rows, columns}, 1);
  const Dims strides = strides_of(rows, columns, by_rows);
  const int x = k.input(random_array(dtype, rows * columns, -4, 4));
  const int y = k.output(dtype, rows * columns), lse = k.output(f32, rows);
  const int v = k.load(x, strides);
  const int top = k.reduce(ReduceOp::max, v);
  const int e = k.scalar(ScalarOp::exp, {k.scalar(ScalarOp::sub, {v, top})});
  const int sum = k.reduce(ReduceOp::sum, e);
  k.store(y, k.scalar(ScalarOp::div, {e, sum}), strides);
  const int log = k.scalar(ScalarOp::add, {k.scalar(ScalarOp::log, {sum}, kRow), top}, kRow);
  k.store(lse, k.cast(log, f32), {1, 0}, 0, kRow);
  return k;
}

const int64_t kLengths[] = {1, 3, 17, 1000, 5000, 100003};

TEST(Reduce, SoftmaxRowsAndColumns) {
  for (int64_t length : kLengths) {
    for (bool by_rows : {true, false}) {
      for (int64_t rows : {1, 3, 300}) {
        if (rows * length > 1000000) continue;
        SCOPED_TRACE(
            cat(rows, " rows of ", length, by_rows ? ", rows" : ", columns", " contiguous"));
        softmax(f32, rows, length, by_rows).expect_matches(2e-6);
      }
    }
  }
}

TEST(Reduce, LayerNormLikeWithTwoDependentSums) {
  for (int64_t length : {1, 3, 17, 1000, 5000}) {
    KernelBuilder k({11, length}, 1);
    const int x = k.input(random_array(f32, 11 * length, -2, 5)), y = k.output(f32, 11 * length);
    const int var = k.output(f32, 11);
    const int v = k.load(x, {length, 1}), n = k.constant(f32, double(length), kRow);
    const int mean = k.scalar(ScalarOp::div, {k.reduce(ReduceOp::sum, v), n}, kRow);
    const int d = k.scalar(ScalarOp::sub, {v, mean});
    const int square = k.reduce(ReduceOp::sum, k.scalar(ScalarOp::mul, {d, d}));
    const int variance = k.scalar(ScalarOp::div, {square, n}, kRow);
    const int eps = k.scalar(ScalarOp::add, {variance, k.constant(f32, 1e-5, kRow)}, kRow);
    k.store(y, k.scalar(ScalarOp::mul, {d, k.scalar(ScalarOp::rsqrt, {eps}, kRow)}), {length, 1});
    k.store(var, variance, {1, 0}, 0, kRow);
    k.expect_matches(5e-5);
  }
}

TEST(Reduce, EveryOpAndType) {
  const DType types[] = {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i8,
                         DType::i32, DType::i64, DType::u8,  DType::u32,  DType::boolean};
  for (DType dtype : types) {
    for (ReduceOp op :
         {ReduceOp::sum, ReduceOp::prod, ReduceOp::max, ReduceOp::min, ReduceOp::argmax}) {
      for (int64_t length : {1, 7, 70, 5000}) {
        for (bool by_rows : {true, false}) {
          const bool adds = op == ReduceOp::sum || op == ReduceOp::prod;
          if (dtype == DType::boolean && adds) continue;  // not in the language
          if (op == ReduceOp::prod && length > 70 && is_float(dtype)) continue;  // it vanishes
          SCOPED_TRACE(cat(name(op), " of ", dtype, ", length ", length, by_rows));
          KernelBuilder k({37, length}, 1);
          const double low = dtype == DType::boolean ? 0 : info(dtype).is_signed ? -2 : 0;
          const int x = k.input(random_array(dtype, 37 * length, low, 2, int(length)));
          const DType out = op == ReduceOp::argmax ? DType::i64 : dtype;
          const int y = k.output(out, 37);
          const int v = k.load(x, strides_of(37, length, by_rows));
          k.store(y, k.reduce(op, v), {1, 0}, 0, kRow);
          const bool half = is_half(dtype);
          k.expect_matches(half ? 8e-3 : dtype == DType::f64 ? 1e-12 : 2e-5);
        }
      }
    }
  }
}

// Wider than the vectors of any type, with a rest; bytes count more rows than a byte can.
TEST(Reduce, ManyColumns) {
  for (DType dtype : {DType::f32, DType::f64, DType::i8, DType::i64, DType::boolean}) {
    for (ReduceOp op : {ReduceOp::max, ReduceOp::min, ReduceOp::argmax}) {
      for (int64_t length : {3, 130, 700}) {
        SCOPED_TRACE(cat(name(op), " of ", dtype, ", length ", length));
        KernelBuilder k({203, length}, 1);
        const double low = dtype == DType::boolean ? 0 : -100;
        const double high = dtype == DType::boolean ? 1 : 100;
        Array values = random_array(dtype, 203 * length, low, high, int(length));
        for (int64_t i = 0; i < length && dtype == DType::i8; ++i)
          values.set(i * 203 + 7, double(i / 8));
        for (int64_t c = 0; c < 203 && is_float(dtype); c += 9)
          values.set((length - 2) * 203 + c, NAN);
        const int x = k.input(values);
        const int y = k.output(op == ReduceOp::argmax ? DType::i64 : dtype, 203);
        k.store(y, k.reduce(op, k.load(x, {1, 203})), {1, 0}, 0, kRow);
        k.expect_matches(0);
      }
    }
  }
}

// A chain may write its result where it belongs before it is folded, unless the fold wants what
// that memory held.
TEST(Reduce, WhatIsStoredIsFoldedToo) {
  for (const int64_t columns : {5, 300, 1536, 5000}) {
    for (const bool by_rows : {true, false}) {
      for (const bool of_result : {true, false}) {
        const int64_t length = 90;
        const Dims strides = strides_of(columns, length, by_rows);
        KernelBuilder k({columns, length}, 1);
        const int x = k.input(random_array(f32, columns * length, -2, 3));
        const int y = k.input(random_array(f32, columns * length, -1, 1, 2));
        const int out = k.output(f32, columns * length), sums = k.output(f32, columns);
        const int v = k.load(x, strides);
        const int product = k.scalar(ScalarOp::mul, {v, k.load(y, strides)});
        const int sum = k.reduce(ReduceOp::sum, of_result ? product : v);
        k.store(out, product, strides);
        k.store(sums, sum, {1, 0}, 0, kRow);
        SCOPED_TRACE(cat(columns, by_rows ? " rows" : " columns", of_result));
        k.expect_matches(5e-6);
        EXPECT_EQ(k.run()[size_t(sums)].bytes(), k.run_in_place(out, x)[size_t(sums)].bytes());
      }
    }
  }
}

TEST(Reduce, EverythingToOneValue) {
  for (int64_t n : {1, 2, 100, 4097, 1000000}) {
    KernelBuilder k({n}, 0);
    const int x = k.input(random_array(f32, n, 0, 1)), s = k.output(f32, 1), m = k.output(f32, 1);
    const int v = k.load(x, {1});
    k.store(s, k.reduce(ReduceOp::sum, v), {0}, 0, kRow);
    k.store(m, k.reduce(ReduceOp::max, k.scalar(ScalarOp::mul, {v, v})), {0}, 0, kRow);
    k.expect_matches(1e-6);
  }
}

TEST(Reduce, InnerOfTwoDimensionsWithHoles) {
  // Sum over (1, 3) of a (4, 6, 5, 8) that is a slice of a larger array.
  KernelBuilder k({4, 5, 6, 8}, 2);
  const int x = k.input(random_array(f32, 4 * 6 * 5 * 20, -1, 1)), y = k.output(f32, 20);
  const int at = k.output(DType::i64, 20);
  const int v = k.load(x, {600, 20, 100, 2}, 3);
  k.store(y, k.reduce(ReduceOp::sum, v), {5, 1, 0, 0}, 0, kRow);
  k.store(at, k.reduce(ReduceOp::argmax, v), {5, 1, 0, 0}, 0, kRow);
  k.expect_matches(1e-6);
}

TEST(Reduce, ArgmaxTakesTheFirstOfEqualsAndNaNAboveAll) {
  for (int64_t length : {4, 40, 9000}) {
    for (bool by_rows : {true, false}) {
      Array x = random_array(f32, 6 * length, -1, 1);
      const Dims s = strides_of(6, length, by_rows);
      auto put = [&](int64_t row, int64_t i, double v) { x.set(row * s[0] + i * s[1], v); };
      put(0, length - 1, 7), put(0, 1, 7), put(0, 2, 7);
      put(1, 2, NAN), put(1, 1, 9), put(1, length - 1, NAN);
      for (int64_t i = 0; i < length; ++i) put(2, i, -INFINITY), put(3, i, NAN), put(4, i, 0);
      put(5, 3, INFINITY);
      KernelBuilder k({6, length}, 1);
      const int in = k.input(x), y = k.output(DType::i64, 6), m = k.output(f32, 6);
      const int v = k.load(in, s);
      k.store(y, k.reduce(ReduceOp::argmax, v), {1, 0}, 0, kRow);
      k.store(m, k.reduce(ReduceOp::max, v), {1, 0}, 0, kRow);
      k.expect_matches(0);
      const std::vector<Array> got = k.run();
      const int64_t expected[] = {1, 2, 0, 0, 0, 3};
      for (int64_t row = 0; row < 6; ++row) EXPECT_EQ(got[1].get(row), double(expected[row]));
    }
  }
}

TEST(Reduce, OfNothingIsTheIdentity) {
  KernelBuilder k({0}, 0);
  const int x = k.input(Array(f32, 0)), y = k.input(Array(DType::i32, 0));
  const int bias = k.input(random_array(f32, 1, 1, 2));
  const int sum = k.output(f32, 1), top = k.output(f32, 1), product = k.output(DType::i32, 1);
  const int low = k.output(DType::i32, 1);
  const int v = k.load(x, {1}), w = k.load(y, {1});
  const int b = k.load(bias, {0}, 0, kRow);
  k.store(sum, k.scalar(ScalarOp::add, {k.reduce(ReduceOp::sum, v), b}, kRow), {0}, 0, kRow);
  k.store(top, k.reduce(ReduceOp::max, v), {0}, 0, kRow);
  k.store(product, k.reduce(ReduceOp::prod, w), {0}, 0, kRow);
  k.store(low, k.reduce(ReduceOp::min, w), {0}, 0, kRow);
  const std::vector<Array> got = k.run();
  EXPECT_EQ(got[size_t(sum)].get(0), k.arrays()[size_t(bias)].get(0));
  EXPECT_EQ(got[size_t(top)].get(0), -INFINITY);
  EXPECT_EQ(got[size_t(product)].get(0), 1);
  EXPECT_EQ(got[size_t(low)].get(0), 2147483647);
}

TEST(Reduce, OfNoRowsDoesNothing) {
  KernelBuilder k({0, 5}, 1);
  const int x = k.input(Array(f32, 0)), y = k.output(f32, 0);
  k.store(y, k.reduce(ReduceOp::sum, k.load(x, {5, 1})), {1, 0}, 0, kRow);
  k.run();
}

TEST(Reduce, OfABroadcastValue) {
  for (int64_t length : {5, 6000}) {
    KernelBuilder k({4, length}, 1);
    const int row = k.input(random_array(f32, 4, -1, 1)), y = k.output(f32, 4),
              z = k.output(f32, 4);
    k.store(y, k.reduce(ReduceOp::sum, k.load(row, {1, 0})), {1, 0}, 0, kRow);
    k.store(z, k.reduce(ReduceOp::sum, k.constant(f32, 1)), {1, 0}, 0, kRow);
    k.expect_matches(1e-6);
  }
}

TEST(Reduce, MaskedAndIndexedInside) {
  for (int64_t length : {30, 6000}) {
    KernelBuilder k({5, length}, 1);
    const int x = k.input(random_array(f32, 5 * length, -1, 1));
    const int ids = k.input(random_array(DType::i64, 5, 0, double(length)));
    const int y = k.output(f32, 5), z = k.output(f32, 5);
    const int v = k.masked_load(x, {length, 1}, 0, {1, 7}, {4, length - 3}, k.constant(f32, 0));
    k.store(y, k.reduce(ReduceOp::sum, v), {1, 0}, 0, kRow);
    const int id = k.load(ids, {1, 0}, 0, kRow);
    k.store(z, k.indexed_load(x, {length, 0}, id, 1, length, kRow), {1, 0}, 0, kRow);
    k.expect_matches(2e-6);
  }
}

TEST(Reduce, SumsAreAccurate) {
  const int64_t n = 1 << 22;
  KernelBuilder k({n}, 0);
  const int x = k.input(random_array(f32, n, 0, 1)), s = k.output(f32, 1);
  k.store(s, k.reduce(ReduceOp::sum, k.load(x, {1})), {0}, 0, kRow);
  double exact = 0;
  for (int64_t i = 0; i < n; ++i) exact += k.arrays()[0].get(i);
  EXPECT_NEAR(k.run()[1].get(0) / exact, 1, 5e-7);
}

// A kernel of each shape of work.
std::vector<KernelBuilder> samples() {
  std::vector<KernelBuilder> kernels;
  for (int64_t length : {17, 1000, 5000, 100003}) {
    for (bool by_rows : {true, false}) {
      kernels.push_back(softmax(f32, length > 5000 ? 3 : 130, length, by_rows));
      kernels.push_back(softmax(DType::bf16, length > 5000 ? 2 : 40, length, by_rows));
    }
  }
  return kernels;
}

TEST(Reduce, EqualBitsForAnyNumberOfThreads) {
  for (const KernelBuilder& k : samples()) {
    std::vector<char> alone;
    run_alone([&] { alone = all_bytes(k.run()); });
    EXPECT_EQ(all_bytes(k.run()), alone) << to_string(k.ir());
  }
}

TEST(Reduce, EqualBitsOnEveryInstructionSet) {
  const cpu::Isa before = cpu::isa();
  for (const KernelBuilder& k : samples()) {
    std::vector<char> first;
    for (cpu::Isa isa : cpu::available_isas()) {
      cpu::set_isa(isa);
      const std::vector<char> bytes = all_bytes(k.run());
      if (first.empty()) first = bytes;
      EXPECT_EQ(bytes, first) << name(isa) << "\n" << to_string(k.ir());
    }
  }
  cpu::set_isa(before);
}

}  // namespace
}  // namespace tessera::test
