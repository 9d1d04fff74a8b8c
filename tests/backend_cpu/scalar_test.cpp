// Every scalar op and every cast, in every type that takes it, on every instruction set.
#include <gtest/gtest.h>

#include <cmath>

#include "backend_cpu/kernel_builder.h"
#include "tessera/backend/cpu/isa.h"

namespace tessera::test {
namespace {

const DType kComputeTypes[] = {DType::f32, DType::f64, DType::i8,  DType::i32,
                               DType::i64, DType::u8,  DType::u32, DType::boolean};

class EveryIsa : public ::testing::Test {
 protected:
  template <class F>
  static void for_each_isa(F f) {
    const cpu::Isa before = cpu::isa();
    for (cpu::Isa isa : cpu::available_isas()) {
      SCOPED_TRACE(name(isa));
      cpu::set_isa(isa);
      f();
    }
    cpu::set_isa(before);
  }
};

// Values that stay in the range where the f64 of the interpretation is exact for i64 products.
Array values(DType dtype, int64_t n, int seed) {
  const bool negative = info(dtype).is_signed;
  const double size = dtype == DType::boolean ? 2 : is_float(dtype) ? 6 : 120;
  Array array = random_array(dtype, n, negative ? -size : 0, size, seed);
  if (is_float(dtype)) {
    const double special[] = {0.0, -0.0, INFINITY, -INFINITY, NAN, 1, -1};
    for (int64_t i = 0; i < 7 && i < n; ++i) array.set((i * 5 + seed) % n, special[i]);
  }
  return array;
}

double tolerance(ScalarOp op, DType dtype) {
  if (!is_float(dtype)) return 0;
  return info(op).ulp * (dtype == DType::f32 ? 0x1p-23 : 0x1p-52);
}

using ScalarOps = EveryIsa;

TEST_F(ScalarOps, EveryTypeAndLength) {
  for_each_isa([] {
    for (int op = 0; op < int(ScalarOp::where); ++op) {
      for (DType dtype : kComputeTypes) {
        if (!accepts(ScalarOp(op), dtype)) continue;
        for (int64_t n : {1, 100}) {
          SCOPED_TRACE(cat(name(ScalarOp(op)), " of ", dtype));
          KernelBuilder k({n}, 0);
          const int x = k.input(values(dtype, n, 1)), y = k.input(values(dtype, n, 2));
          std::vector<int> args = {k.load(x, {1}), k.load(y, {1})};
          args.resize(size_t(info(ScalarOp(op)).arity));
          const int r = k.scalar(ScalarOp(op), args);
          const int z = k.output(k.last().dtype, n);
          k.store(z, r, {1});
          k.expect_matches(tolerance(ScalarOp(op), dtype));
        }
      }
    }
  });
}

TEST_F(ScalarOps, EitherOperandMayBeOneValue) {
  for_each_isa([] {
    for (int op = 0; op < int(ScalarOp::where); ++op) {
      for (DType dtype : kComputeTypes) {
        if (!accepts(ScalarOp(op), dtype) || info(ScalarOp(op)).arity != 2) continue;
        SCOPED_TRACE(cat(name(ScalarOp(op)), " of ", dtype));
        KernelBuilder k({50}, 0);
        const int x = k.input(values(dtype, 50, 1)), v = k.load(x, {1});
        const int c = k.constant(dtype, 1);
        const int left = k.scalar(ScalarOp(op), {c, v});
        const int a = k.output(k.last().dtype, 50);
        const int right = k.scalar(ScalarOp(op), {v, c});
        const int b = k.output(k.last().dtype, 50);
        const int both = k.scalar(ScalarOp(op), {c, c});
        const int d = k.output(k.last().dtype, 50);
        k.store(a, left, {1});
        k.store(b, right, {1});
        k.store(d, both, {1});
        k.expect_matches(tolerance(ScalarOp(op), dtype));
      }
    }
  });
}

TEST_F(ScalarOps, IntegersWrap) {
  for_each_isa([] {
    for (DType dtype : {DType::i8, DType::i32, DType::u8, DType::u32}) {
      KernelBuilder k({3}, 0);
      Array x(dtype, 3);
      const double top = dtype == DType::i8    ? 127
                         : dtype == DType::i32 ? 2147483647
                         : dtype == DType::u8  ? 255
                                               : 4294967295;
      for (int64_t i = 0; i < 3; ++i) x.set(i, top - double(i));
      const int in = k.input(x), a = k.output(dtype, 3), b = k.output(dtype, 3),
                v = k.load(in, {1});
      k.store(a, k.scalar(ScalarOp::add, {v, v}), {1});
      k.store(b, k.scalar(ScalarOp::mul, {v, k.constant(dtype, 3)}), {1});
      k.expect_matches(0);
    }
  });
}

// Processors trap on x / 0 and lowest / -1, and take shifts modulo the width.
TEST_F(ScalarOps, DivisionsAndShiftsAreDefinedEverywhere) {
  for_each_isa([] {
    for (DType dtype : {DType::i8, DType::i32, DType::u8, DType::u32}) {
      const bool is_signed = info(dtype).is_signed;
      const double bits = 8 * size_of(dtype), top = std::ldexp(1, int(bits) - is_signed) - 1;
      const double low = is_signed ? -top - 1 : 0;
      const std::vector<double> values = {
          low, low + 1, is_signed ? -1.0 : 7, 0, 1, 2, bits - 1, bits, bits + 1, top - 1, top};
      const int64_t n = int64_t(values.size());
      Array x(dtype, n);
      for (int64_t i = 0; i < n; ++i) x.set(i, values[size_t(i)]);
      for (ScalarOp op :
           {ScalarOp::floor_div, ScalarOp::mod, ScalarOp::shift_left, ScalarOp::shift_right}) {
        SCOPED_TRACE(cat(name(op), " of ", dtype));
        KernelBuilder k({n, n}, 1);
        const int in = k.input(x), y = k.output(dtype, n * n);
        k.store(y, k.scalar(op, {k.load(in, {1, 0}), k.load(in, {0, 1})}), {n, 1});
        k.expect_matches(0);
      }
    }
  });
}

using Casts = EveryIsa;

TEST_F(Casts, EveryPairOfTypes) {
  for_each_isa([] {
    for (DType from : kComputeTypes) {
      for (DType to : kComputeTypes) {
        SCOPED_TRACE(cat(from, " to ", to));
        KernelBuilder k({60}, 0);
        Array x = values(from, 60, 1);
        const double large[] = {1e5, -1e5, 3e9, -3e9, 1e12, 300, -300, 1e19, -1e19, 127.9, 0.5};
        for (int64_t i = 0; i < 11 && is_float(from); ++i) x.set(40 + i, large[i]);
        const int in = k.input(x), y = k.output(to, 60);
        k.store(y, k.cast(k.load(in, {1}), to), {1});
        k.expect_matches(0);
      }
    }
  });
}

TEST_F(Casts, RoundToHalfTypes) {
  for_each_isa([] {
    for (DType half : {DType::f16, DType::bf16}) {
      for (DType from : {DType::f32, DType::f64, DType::i32}) {
        KernelBuilder k({500}, 0);
        const int x = k.input(random_array(from, 500, -1000, 1000)), y = k.output(DType::f32, 500);
        k.store(y, k.rounded_cast(k.load(x, {1}), half), {1});
        k.expect_matches(0);
      }
    }
  });
}

}  // namespace
}  // namespace tessera::test
