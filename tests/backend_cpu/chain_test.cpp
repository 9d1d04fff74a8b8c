// Chains of scalar functions: each link against its loop, and chains inside kernels.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "backend_cpu/kernel_builder.h"
#include "backend_cpu/threads.h"
#include "tessera/backend/cpu/isa.h"

namespace tessera::test {
namespace {

using cpu::Link;
using cpu::LinkCode;

constexpr auto f32 = DType::f32;

struct LinkRow {
  LinkCode code;
  ScalarOp op;
  bool flipped;
  int arity;
};

constexpr LinkRow kLinks[] = {
    {LinkCode::add, ScalarOp::add, false, 2},
    {LinkCode::sub, ScalarOp::sub, false, 2},
    {LinkCode::sub_from, ScalarOp::sub, true, 2},
    {LinkCode::mul, ScalarOp::mul, false, 2},
    {LinkCode::div, ScalarOp::div, false, 2},
    {LinkCode::div_into, ScalarOp::div, true, 2},
    {LinkCode::max, ScalarOp::maximum, false, 2},
    {LinkCode::max_from, ScalarOp::maximum, true, 2},
    {LinkCode::min, ScalarOp::minimum, false, 2},
    {LinkCode::min_from, ScalarOp::minimum, true, 2},
    {LinkCode::neg, ScalarOp::neg, false, 1},
    {LinkCode::sqrt, ScalarOp::sqrt, false, 1},
    {LinkCode::call, ScalarOp::exp, false, 1},
    {LinkCode::call, ScalarOp::pow, false, 2},
    {LinkCode::call_flipped, ScalarOp::pow, true, 2},
};

template <class T>
std::vector<T> values(int64_t n, int seed) {
  const T special[] = {T(0), T(-0.0), T(INFINITY), T(-INFINITY), T(NAN), T(1), T(-1)};
  std::vector<T> result;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t k = i * seed + i / 7;
    result.push_back(k % 3 == 0 ? special[k / 3 % 7] : T(k % 101) / T(16) - T(3));
  }
  return result;
}

template <class T>
bool same(T a, T b) {
  return std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b);
}

template <class T>
void expect_link(const LinkRow& row, const cpu::LoopTable& loops, int64_t n, bool scalar) {
  const DType dtype = sizeof(T) == 4 ? DType::f32 : DType::f64;
  const std::vector<T> v = values<T>(n, 5), b = values<T>(n, 11);
  std::vector<T> want(size_t(n), 7), got(size_t(n) + 1, T(7));
  const cpu::ScalarLoop loop = loops.scalar[int(row.op)][int(dtype)];
  const unsigned bit = scalar ? (row.flipped ? 1 : 2) : 0;
  const T *first = row.flipped ? b.data() : v.data(), *second = row.flipped ? v.data() : b.data();
  loop(n, want.data(), first, second, nullptr, row.arity == 2 ? bit : 0);
  const Link link{row.code, scalar, false,  false, row.arity == 2 ? b.data() : nullptr,
                  nullptr,  loop,   nullptr};
  const cpu::Chain chain{v.data(), got.data(), false, false, &link, 1, false, {}, 0};
  (sizeof(T) == 4 ? loops.chain_f32 : loops.chain_f64)(n, &chain, 1);
  for (size_t i = 0; i < size_t(n); ++i) {
    ASSERT_TRUE(same(got[i], want[i]))
        << name(row.op) << " of " << v[i] << " and " << b[scalar ? 0 : i] << ": " << got[i]
        << ", not " << want[i] << ", n " << n;
  }
  EXPECT_EQ(got.back(), T(7));
}

TEST(Chain, EveryLinkIsItsLoop) {
  const cpu::Isa before = cpu::isa();
  for (cpu::Isa isa : cpu::available_isas()) {
    cpu::set_isa(isa);
    for (const LinkRow& row : kLinks) {
      for (int64_t n : {1, 7, 16, 50, 128, 300}) {
        for (bool scalar : {false, true}) {
          expect_link<float>(row, cpu::loops(), n, scalar);
          expect_link<double>(row, cpu::loops(), n, scalar);
        }
      }
    }
  }
  cpu::set_isa(before);
}

// x, y -> two outputs; values that are used again, twice at once, and across the chain.
KernelBuilder tangled(DType dtype, int64_t rows, int64_t columns) {
  KernelBuilder k({rows, columns}, 1);
  const int64_t n = rows * columns;
  const int x = k.input(random_array(dtype, n, -1, 1, 1)),
            y = k.input(random_array(dtype, n, -1, 1, 2));
  const int row = k.input(random_array(dtype, rows, 1, 2, 3));
  const int column = k.input(random_array(dtype, columns, 1, 2, 4));
  const int p = k.output(dtype, n), q = k.output(dtype, n);
  const DType type = compute_type(dtype);
  const Dims s = {columns, 1};
  const int a = k.load(x, s), b = k.load(y, s), r = k.load(row, {1, 0});
  const int sum = k.scalar(ScalarOp::add, {a, b});
  const int scaled = k.scalar(ScalarOp::mul, {sum, r});
  const int square = k.scalar(ScalarOp::mul, {scaled, scaled});
  const int twice = k.scalar(ScalarOp::add, {square, square});
  const int back = k.scalar(ScalarOp::sub, {r, twice});
  const int mixed = k.scalar(ScalarOp::maximum, {scaled, back});
  const int late = k.load(column, {0, 1});
  const int divided = k.scalar(ScalarOp::div, {late, k.scalar(ScalarOp::exp, {mixed})});
  k.store(p, k.scalar(ScalarOp::mul, {divided, k.constant(type, 0.5)}), s);
  k.store(q, k.scalar(ScalarOp::sub, {mixed, sum}), s);
  return k;
}

TEST(Chain, ValuesThatAreUsedAgain) {
  for (DType dtype : {DType::f32, DType::f64, DType::bf16}) {
    for (int64_t columns : {1, 5, 40, 129, 5000}) {
      for (int64_t rows : {1, 9, 200}) {
        const KernelBuilder k = tangled(dtype, rows, columns);
        k.expect_matches(dtype == DType::bf16 ? 1e-2 : 4e-6);
        // Each output in each input's memory.
        for (int out : {4, 5}) {
          for (int in : {0, 1}) {
            const auto apart = k.run(), shared = k.run_in_place(out, in);
            EXPECT_EQ(shared[size_t(in)].bytes(), apart[size_t(out)].bytes());
            const size_t other = size_t(9 - out);
            EXPECT_EQ(shared[other].bytes(), apart[other].bytes());
          }
        }
      }
    }
  }
}

// Moments and values as an optimiser has them, m, v, p, g -> m, v, p. Several chains, whose results
// may be written before the last of them reads m once more.
KernelBuilder braided(int64_t rows, int64_t columns, bool by_rows) {
  KernelBuilder k({rows, columns}, 1);
  const int64_t n = rows * columns;
  const Dims s = {columns, 1};
  int in[4], loads[4];
  for (int i = 0; i < 4; ++i) in[i] = k.input(random_array(f32, n, 0.1, 1, i));
  const int factor = k.load(k.input(random_array(f32, rows, 1, 2, 5)), {by_rows ? 1 : 0, 0});
  for (int i = 0; i < 4; ++i) loads[i] = k.load(in[i], s);
  const auto mul = [&](int a, int b) { return k.scalar(ScalarOp::mul, {a, b}); };
  const auto [m, v, p, g] = loads;
  const int old_m = mul(m, k.constant(f32, 0.9)), old_v = mul(v, factor);
  const int old_p = mul(p, k.constant(f32, 0.99));
  const int new_m = k.scalar(ScalarOp::add, {old_m, mul(g, k.constant(f32, 0.1))});
  const int new_v = k.scalar(ScalarOp::add, {old_v, mul(g, g)});
  const int change = k.scalar(ScalarOp::div, {new_m, k.scalar(ScalarOp::sqrt, {new_v})});
  const int new_p = mul(k.scalar(ScalarOp::sub, {old_p, change}), m);
  for (const int value : {new_m, new_v, new_p}) k.store(k.output(f32, n), value, s);
  return k;
}

TEST(Chain, RunTogether) {
  for (const int64_t columns : {1, 40, 129, 5000}) {
    for (const int64_t rows : {1, 9, 200}) {
      for (const bool by_rows : {true, false}) {
        SCOPED_TRACE(cat(rows, " rows, ", columns, " columns", by_rows ? ", a factor each" : ""));
        const KernelBuilder k = braided(rows, columns, by_rows);
        k.expect_matches(2e-6);
        const std::vector<Array> apart = k.run();
        for (const size_t out : {5, 6, 7}) {
          for (const size_t in : {0, 1, 2, 3}) {
            std::vector<Array> shared = k.run_in_place(int(out), int(in));
            shared[out] = shared[in];
            for (const size_t result : {5, 6, 7}) {
              EXPECT_EQ(shared[result].bytes(), apart[result].bytes()) << out << " in " << in;
            }
          }
        }
      }
    }
  }
}

TEST(Chain, MoreThanRunTogether) {
  KernelBuilder k({3000}, 0);
  const int x = k.input(random_array(f32, 20 * 3000, -1, 1)), y = k.output(f32, 3000);
  std::vector<int> products;
  for (int i = 0; i < 20; ++i) {
    const int v = k.load(x, {1}, 3000 * i);
    products.push_back(k.scalar(ScalarOp::mul, {v, k.constant(f32, i + 0.5)}));
  }
  int sum = products[0];
  for (size_t i = 1; i < products.size(); ++i) sum = k.scalar(ScalarOp::add, {sum, products[i]});
  k.store(y, sum, {1});
  k.expect_matches(1e-5);
}

TEST(Chain, LongOnesAndManyRowOperandsAreCut) {
  KernelBuilder k({30, 70}, 1);
  const int x = k.input(random_array(f32, 2100, -1, 1)), y = k.output(f32, 2100);
  const int rows = k.input(random_array(f32, 30 * 60, 0.5, 1, 2));
  int v = k.load(x, {70, 1});
  for (int i = 0; i < 60; ++i) {
    const int row = k.load(rows, {1, 0}, 30 * i);
    v = k.scalar(i % 3 == 0 ? ScalarOp::mul : i % 3 == 1 ? ScalarOp::add : ScalarOp::sub, {v, row});
  }
  k.store(y, v, {70, 1});
  k.expect_matches(1e-5);
}

TEST(Chain, RoundsBetweenHalfTypes) {
  KernelBuilder k({1000}, 0);
  const int x = k.input(random_array(DType::bf16, 1000, -4, 4)), y = k.output(DType::bf16, 1000);
  int v = k.load(x, {1});
  v = k.rounded_cast(k.scalar(ScalarOp::mul, {v, k.constant(f32, 1.3)}), DType::bf16);
  v = k.rounded_cast(k.scalar(ScalarOp::add, {v, k.constant(f32, 0.7)}), DType::bf16);
  k.store(y, v, {1});
  k.expect_matches(0);
}

// Results beyond the caches are written past them, from wherever they start.
TEST(Chain, ResultsBeyondTheCaches) {
  constexpr int64_t kCount = (int64_t(9) << 20) + 37;
  for (int64_t offset : {0, 1, 16}) {
    KernelBuilder k({kCount}, 0);
    const int x = k.input(random_array(f32, 1000, -1, 1)), y = k.output(f32, kCount + 16);
    const int i = k.index({1});
    const int v = k.cast(k.scalar(ScalarOp::bitwise_and, {i, k.constant(DType::i64, 1023)}), f32);
    const int scale = k.load(x, {0});
    k.store(y, k.scalar(ScalarOp::add, {k.scalar(ScalarOp::mul, {v, scale}), v}), {1}, offset);
    const std::vector<Array> got = k.run();
    const float factor = float(got[0].get(0));
    int64_t wrong = 0;
    for (int64_t p = 0; p < kCount; ++p) {
      const float value = float(p & 1023), product = value * factor;
      wrong += got[1].get(p + offset) != double(product + value);
    }
    EXPECT_EQ(wrong, 0) << "offset " << offset;
  }
}

TEST(Chain, EqualBitsForAnyNumberOfThreadsAndOnEveryInstructionSet) {
  const cpu::Isa before = cpu::isa();
  const KernelBuilder k = tangled(f32, 300, 1001);
  std::vector<char> first;
  run_alone([&] { first = all_bytes(k.run()); });
  for (cpu::Isa isa : cpu::available_isas()) {
    cpu::set_isa(isa);
    EXPECT_EQ(all_bytes(k.run()), first) << name(isa);
  }
  cpu::set_isa(before);
}

}  // namespace
}  // namespace tessera::test
