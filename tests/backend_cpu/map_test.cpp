// Generated kernels without a reduction, against the plain interpretation.
#include <gtest/gtest.h>

#include "backend_cpu/kernel_builder.h"

namespace tessera::test {
namespace {

constexpr auto f32 = DType::f32;

TEST(Map, ChainOverOddSizes) {
  for (int64_t n : {1, 3, 16, 17, 1000, 2048, 5000, 100003}) {
    KernelBuilder k({n}, 0);
    const int x = k.input(random_array(f32, n, -3, 3, 1)),
              y = k.input(random_array(f32, n, -3, 3, 2));
    const int z = k.output(f32, n);
    const int a = k.load(x, {1}), b = k.load(y, {1});
    const int sum = k.scalar(ScalarOp::add, {a, b});
    const int scaled = k.scalar(ScalarOp::mul, {sum, k.constant(f32, 0.5)});
    k.store(z, k.scalar(ScalarOp::tanh, {scaled}), {1});
    k.expect_matches(1e-6);
  }
}

TEST(Map, BroadcastsRowsColumnsAndScalars) {
  for (int64_t rows : {1, 5, 300}) {
    for (int64_t columns : {1, 3, 16, 33, 5000}) {
      KernelBuilder k({rows, columns}, 1);
      const int x = k.input(random_array(f32, rows * columns, -1, 1, 1));
      const int bias = k.input(random_array(f32, columns, -1, 1, 2));
      const int scale = k.input(random_array(f32, rows, -1, 1, 3));
      const int rate = k.input(random_array(f32, 1, -1, 1, 4));
      const int y = k.output(f32, rows * columns);
      const int a = k.scalar(ScalarOp::mul, {k.load(x, {columns, 1}), k.load(scale, {1, 0})});
      const int b = k.scalar(ScalarOp::add, {k.load(bias, {0, 1}), a});
      const int c = k.scalar(ScalarOp::sub, {k.load(rate, {0, 0}), b});
      k.store(y, c, {columns, 1});
      k.expect_matches(1e-6);
    }
  }
}

TEST(Map, StoresBroadcastValues) {
  KernelBuilder k({7, 40}, 1);
  const int row = k.input(random_array(f32, 7, -1, 1));
  const int y = k.output(f32, 280), z = k.output(f32, 280);
  k.store(y, k.load(row, {1, 0}), {40, 1});
  k.store(z, k.constant(f32, 2.5), {40, 1});
  k.expect_matches(0);
}

TEST(Map, NegativeStridesAndTransposes) {
  for (int64_t n : {1, 5, 64, 130}) {
    const int64_t m = 77;
    KernelBuilder k({n, m}, 1);
    const int x = k.input(random_array(f32, n * m, -1, 1));
    const int reversed = k.output(f32, n * m), transposed = k.output(f32, n * m);
    k.store(reversed, k.load(x, {-m, -1}, n * m - 1), {m, 1});
    k.store(transposed, k.load(x, {m, 1}), {1, n});
    k.expect_matches(0);
  }
}

TEST(Map, HighRankViews) {
  KernelBuilder k({3, 4, 5, 6}, 3);
  const int x = k.input(random_array(f32, 360, -1, 1));
  const int bias = k.input(random_array(f32, 20, -1, 1));
  const int y = k.output(f32, 360);
  // x permuted to (0, 2, 1, 3), bias broadcast over the first and last.
  const int a = k.load(x, {120, 6, 24, 1}), b = k.load(bias, {0, 5, 1, 0});
  k.store(y, k.scalar(ScalarOp::add, {a, b}), {120, 30, 6, 1});
  k.expect_matches(0);
}

TEST(Map, MaskedLoadsPadAndConcatenate) {
  for (int64_t columns : {1, 10, 100}) {
    // y (8, columns + 3): rows [2, 6) and columns [3, …) come from x, the rest is -1.
    const int64_t width = columns + 3;
    KernelBuilder pad({8, width}, 1);
    const int x = pad.input(random_array(f32, 4 * columns, 0, 1));
    const int y = pad.output(f32, 8 * width);
    const int fill = pad.constant(f32, -1);
    const int v = pad.masked_load(x, {columns, 1}, -2 * columns - 3, {2, 3}, {6, width}, fill);
    pad.store(y, v, {width, 1});
    pad.expect_matches(0);

    // Two parts along the last axis, the second one masked over the first.
    KernelBuilder join({5, 2 * columns}, 1);
    const int p = join.input(random_array(f32, 5 * columns, 0, 1, 1));
    const int q = join.input(random_array(f32, 5 * columns, 2, 3, 2));
    const int z = join.output(f32, 10 * columns);
    const int zero = join.constant(f32, 0);
    const int first = join.masked_load(p, {columns, 1}, 0, {0, 0}, {5, columns}, zero);
    const int both =
        join.masked_load(q, {columns, 1}, -columns, {0, columns}, {5, 2 * columns}, first);
    join.store(z, both, {2 * columns, 1});
    join.expect_matches(0);
  }
}

TEST(Map, MaskWithARowAsFill) {
  KernelBuilder k({6, 50}, 1);
  const int x = k.input(random_array(DType::bf16, 300, 0, 1));
  const int fill = k.input(random_array(f32, 6, 5, 6));
  const int y = k.output(DType::bf16, 300);
  const int f = k.load(fill, {1, 0});
  k.store(y, k.masked_load(x, {50, 1}, 0, {1, 7}, {5, 31}, f), {50, 1});
  k.expect_matches(0);
}

TEST(Map, IndexedLoadsByRowAndByElement) {
  for (int64_t columns : {1, 4, 50}) {
    KernelBuilder k({9, columns}, 1);
    const int table = k.input(random_array(f32, 20 * columns, 0, 1));
    const int ids = k.input(random_array(DType::i32, 9, 0, 20));
    const int each = k.input(random_array(DType::i64, 9 * columns, 0, 20, 5));
    const int y = k.output(f32, 9 * columns), z = k.output(f32, 9 * columns);
    const int id = k.cast(k.load(ids, {1, 0}), DType::i64);
    k.store(y, k.indexed_load(table, {0, 1}, id, columns, 20), {columns, 1});
    const int other = k.load(each, {columns, 1});
    k.store(z, k.indexed_load(table, {0, 1}, other, columns, 20), {columns, 1});
    k.expect_matches(0);
  }
}

TEST(Map, IndexOutOfRangeThrowsFromAnyThread) {
  for (double bad : {-1.0, 20.0, 1e15}) {
    for (int64_t n : {4, 200000}) {
      KernelBuilder k({n, 2}, 1);
      const int table = k.input(random_array(f32, 40, 0, 1));
      Array ids = random_array(DType::i64, n, 0, 20);
      ids.set(n - 1, bad);
      const int i = k.input(ids), y = k.output(f32, 2 * n);
      k.store(y, k.indexed_load(table, {0, 1}, k.load(i, {1, 0}), 2, 20), {2, 1});
      try {
        k.run();
        FAIL() << "expected an Error";
      } catch (const Error& error) {
        EXPECT_EQ(error.what(), cat("index ", int64_t(bad), " is out of range [0, 20)"));
      }
    }
  }
}

TEST(Map, MaskedIndexIsNotChecked) {
  KernelBuilder k({10}, 0);
  const int table = k.input(random_array(f32, 3, 0, 1));
  Array ids(DType::i64, 10);
  for (int64_t i = 0; i < 10; ++i) ids.set(i, i < 4 ? double(i % 3) : 1e12);
  const int i = k.input(ids), y = k.output(f32, 10);
  const int zero = k.constant(f32, 0), id = k.load(i, {1});
  const int v = k.masked_load(table, {0}, 0, {0}, {4}, zero);
  k.last().indexed = true;
  k.last().args[1] = id;
  k.last().index_stride = 1;
  k.last().index_limit = 3;
  k.store(y, v, {1});
  k.expect_matches(0);
}

TEST(Map, IndicesAndUniform) {
  for (int64_t n : {1, 7, 64, 1000, 20001}) {
    KernelBuilder k({n}, 0);
    const int key = k.input(random_array(DType::i64, 1, 0, 1e15)), y = k.output(f32, n);
    const int scattered = k.output(f32, n);
    const int seed = k.load(key, {0}), offset = k.constant(DType::i64, 12345);
    const int i = k.index({1}, 3), odd = k.index({3}, 1);
    k.store(y, k.scalar(ScalarOp::uniform, {i, seed, offset}), {1});
    k.store(scattered, k.scalar(ScalarOp::uniform, {odd, seed, offset}), {1});
    k.expect_matches(0);
  }
}

TEST(Map, WhereWithEveryMixOfLevels) {
  const int64_t rows = 20, columns = 30;
  for (int mix = 0; mix < 27; ++mix) {
    KernelBuilder k({rows, columns}, 1);
    const Dims strides[] = {{columns, 1}, {1, 0}, {0, 0}};
    const int c = k.input(random_array(DType::boolean, rows * columns, 0, 2));
    const int x = k.input(random_array(f32, rows * columns, -1, 0, 2));
    const int y = k.input(random_array(f32, rows * columns, 0, 1, 3));
    const int z = k.output(f32, rows * columns);
    const int cr = k.load(c, strides[mix % 3]), xr = k.load(x, strides[mix / 3 % 3]);
    const int yr = k.load(y, strides[mix / 9]);
    k.store(z, k.scalar(ScalarOp::where, {cr, xr, yr}), {columns, 1});
    k.expect_matches(0);
  }
}

TEST(Map, EmptyDomainTouchesNothing) {
  KernelBuilder k({0, 5}, 1);
  const int x = k.input(Array(f32, 0)), y = k.output(f32, 0);
  k.store(y, k.scalar(ScalarOp::exp, {k.load(x, {5, 1})}), {5, 1});
  k.run();
}

TEST(Map, FirstExtentIsGivenAtLaunch) {
  KernelBuilder k({100, 7}, 1);
  const int x = k.input(random_array(f32, 700, 0, 1)), y = k.output(f32, 700);
  k.store(y, k.scalar(ScalarOp::neg, {k.load(x, {7, 1})}), {7, 1});
  const std::vector<Array> got = k.run_with_extent(31);
  for (int64_t i = 0; i < 700; ++i) {
    EXPECT_EQ(got[1].get(i), i < 31 * 7 ? -k.arrays()[0].get(i) : k.arrays()[1].get(i));
  }
}

TEST(Map, MayWriteOverItsInput) {
  KernelBuilder k({50000}, 0);
  const int x = k.input(random_array(f32, 50000, -1, 1)), y = k.output(f32, 50000);
  const int z = k.output(f32, 50000);
  const int v = k.load(x, {1});
  k.store(y, k.scalar(ScalarOp::exp, {v}), {1});
  k.store(z, k.scalar(ScalarOp::neg, {v}), {1});
  // A tile's stores come after all that reads the tile: z sees the old x.
  EXPECT_EQ(k.run_in_place(1, 0)[2].bytes(), k.run()[2].bytes());
  EXPECT_EQ(k.run_in_place(1, 0)[0].bytes(), k.run()[1].bytes());
}

}  // namespace
}  // namespace tessera::test
