// matmul against a plain f64 loop: odd shapes, strides, batches, types, instruction sets, threads.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "backend_cpu/named_kernels.h"
#include "backend_cpu/threads.h"
#include "tessera/backend/cpu/gemm_bf16.h"
#include "tessera/backend/cpu/isa.h"
#include "tessera/backend/cpu/kernels/product.h"
#include "tessera/backend/cpu/kernels/product_blocks.h"

namespace tessera::test {
namespace {

enum class Order { rows, columns, reversed, spread };

// A matrix view of the given shape (batch, m, n) in some order of memory.
View ordered(const Shape& s, Order order) {
  const int64_t b = s[0], m = s[1], n = s[2];
  switch (order) {
    case Order::rows: return {s, {m * n, n, 1}, 0};
    case Order::columns: return {s, {m * n, 1, m}, 0};
    case Order::reversed: return {s, {-m * n, -n, -1}, b * m * n - 1};
    case Order::spread: return {s, {2 * m * (n + 3), 2 * (n + 3), 2}, 1};
  }
  return {};
}

Operand matrix(DType dtype, const Shape& shape, Order order, int seed) {
  const View view = ordered(shape, order);
  const int64_t room = std::max<int64_t>(0, shape[0] * shape[1] * (shape[2] + 3) * 2 + 1);
  const double size = is_float(dtype) ? 1 : 4;
  return {random_array(dtype, room, info(dtype).is_signed ? -size : 0, size, seed), view};
}

std::vector<double> elements(const Operand& operand) {
  std::vector<double> result;
  for (int64_t i = 0; i < numel(operand.view.shape); ++i) result.push_back(at(operand, i));
  return result;
}

// |error| <= allowed for every element; products of integers are exact.
void expect_product(std::vector<Operand>& o, double allowed) {
  const Shape &a = o[0].view.shape, &c = o[2].view.shape;
  const int64_t m = c[1], n = c[2], k = a[2];
  call("matmul", o, 1);
  const std::vector<double> x = elements(o[0]), y = elements(o[1]), z = elements(o[2]);
  int shown = 0;
  for (int64_t b = 0; b < c[0]; ++b) {
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0, size = 0;
        for (int64_t p = 0; p < k; ++p) {
          const double term = x[size_t((b * m + i) * k + p)] * y[size_t((b * k + p) * n + j)];
          sum += term;
          size += std::abs(term);
        }
        const double got = z[size_t((b * m + i) * n + j)];
        if (o[2].array.dtype() == DType::i8) sum = double(int8_t(int64_t(sum)));
        if (o[2].array.dtype() == DType::u8) sum = double(uint8_t(int64_t(sum)));
        if (std::abs(got - sum) <= allowed * std::max(size, 1e-3)) continue;
        if (++shown <= 3) {
          ADD_FAILURE() << to_string(c) << " k " << k << " at " << b << "," << i << "," << j
                        << ": got " << got << ", expected " << sum;
        }
      }
    }
  }
}

double allowed(DType dtype) {
  switch (dtype) {
    case DType::f32: return 1e-6;
    case DType::f64: return 1e-14;
    case DType::f16: return 1e-3;
    case DType::bf16: return 8e-3;
    default: return 0;
  }
}

std::vector<Operand> operands(DType dtype, Shape c, int64_t k, Order a, Order b, Order out) {
  return {matrix(dtype, {c[0], c[1], k}, a, 1), matrix(dtype, {c[0], k, c[2]}, b, 2),
          matrix(dtype, c, out, 3)};
}

const Order kOrders[] = {Order::rows, Order::columns, Order::reversed, Order::spread};

TEST(Matmul, OddShapesInEveryOrder) {
  const int64_t sizes[][3] = {{1, 1, 1},     {1, 7, 5},   {3, 40, 33},   {5, 1, 17},
                              {13, 33, 300}, {37, 65, 9}, {50, 70, 257}, {150, 40, 20},
                              {1, 100, 300}, {4, 90, 50}};
  for (const auto& s : sizes) {
    for (Order a : kOrders) {
      for (Order b : kOrders) {
        for (Order c : kOrders) {
          auto o = operands(DType::f32, {1, s[0], s[1]}, s[2], a, b, c);
          expect_product(o, allowed(DType::f32));
        }
      }
    }
  }
}

TEST(Matmul, EveryType) {
  for (DType dtype : {DType::f64, DType::f16, DType::bf16, DType::i8, DType::i32, DType::i64,
                      DType::u8, DType::u32}) {
    for (Order b : kOrders) {
      SCOPED_TRACE(name(dtype));
      auto small = operands(dtype, {2, 3, 5}, 4, Order::rows, b, Order::rows);
      expect_product(small, allowed(dtype));
      auto large = operands(dtype, {1, 60, 70}, 520, Order::columns, b, Order::columns);
      expect_product(large, allowed(dtype));
    }
  }
}

TEST(Matmul, EveryInstructionSet) {
  const cpu::Isa before = cpu::isa();
  for (cpu::Isa isa : cpu::available_isas()) {
    cpu::set_isa(isa);
    for (DType dtype : {DType::f32, DType::f64}) {
      for (int64_t m : {1, 2, 5, 11, 12, 40, 149}) {
        for (Order b : {Order::rows, Order::columns}) {
          auto o = operands(dtype, {1, m, 101}, 301, Order::rows, b, Order::rows);
          expect_product(o, allowed(dtype));
        }
      }
    }
  }
  cpu::set_isa(before);
}

// Rows of a that share few ways of a cache, and rows that are all the same one, for every height of
// tiles.
TEST(Matmul, FewRowsHalfAPageApart) {
  const cpu::Isa before = cpu::isa();
  for (cpu::Isa isa : cpu::available_isas()) {
    cpu::set_isa(isa);
    for (DType dtype : {DType::f32, DType::f64}) {
      for (int64_t m = 5; m <= 14; ++m) {
        for (const int64_t n : {20, 40, 101}) {
          auto apart = operands(dtype, {1, m, n}, 2048 / size_of(dtype), Order::rows, Order::rows,
                                Order::rows);
          expect_product(apart, allowed(dtype));
          auto same = operands(dtype, {1, m, n}, 33, Order::rows, Order::rows, Order::rows);
          same[0].view.strides[1] = 0;
          expect_product(same, allowed(dtype));
        }
      }
    }
  }
  cpu::set_isa(before);
}

// One way to compute for each shape and order: few rows, few columns, b too large for the caches,
// dot products, sums in parts.
TEST(Matmul, EveryWayInEveryInstructionSet) {
  const int64_t sizes[][3] = {{1, 4100, 300},  {2, 4100, 300}, {9, 4100, 300}, {14, 4100, 300},
                              {70, 300, 60},   {60, 50, 600},  {20, 3, 600},   {700, 16, 40},
                              {16, 17, 5000},  {1, 1, 9000},   {600, 520, 30}, {25, 129, 800},
                              {1, 20011, 131}, {100, 330, 520}};
  const cpu::Isa before = cpu::isa();
  for (cpu::Isa isa : cpu::available_isas()) {
    cpu::set_isa(isa);
    for (const auto& s : sizes) {
      for (Order a : {Order::rows, Order::columns}) {
        for (Order b : {Order::rows, Order::columns}) {
          SCOPED_TRACE(name(isa));
          auto o = operands(DType::f32, {1, s[0], s[1]}, s[2], a, b, Order::rows);
          expect_product(o, allowed(DType::f32));
        }
      }
    }
  }
  cpu::set_isa(before);
}

// Some columns of c, those at both ends among them.
void expect_columns(const std::vector<Operand>& o, double allowed) {
  const Shape &a = o[0].view.shape, &c = o[2].view.shape;
  const int64_t n = c[2], k = a[2];
  for (int64_t j = 0; j < n; j += j < 50 || j >= n - 50 ? 1 : std::min<int64_t>(997, n - 50 - j)) {
    for (int64_t i = 0; i < c[1]; ++i) {
      double sum = 0, size = 0;
      for (int64_t p = 0; p < k; ++p) {
        const double term = at(o[0], i * k + p) * at(o[1], p * n + j);
        sum += term;
        size += std::abs(term);
      }
      ASSERT_NEAR(at(o[2], i * n + j), sum, allowed * size)
          << to_string(c) << " at " << i << "," << j;
    }
  }
}

// b's rows are walked, or panels fetched ahead, also where its rows lie whole pages apart.
TEST(Matmul, FewRowsTimesWhatNoCacheHolds) {
  const cpu::Isa before = cpu::isa();
  cpu::set_product_library(cpu::ProductLibrary::own);
  for (DType dtype : {DType::f32, DType::f64}) {
    const int64_t k = 70, element = size_of(dtype);
    const int64_t pages = cpu::divide_up(16 * cpu::cache_sizes().second, k * 4096) + 1;
    for (int64_t n : {pages * 4096 / element, pages * 4096 / element + 37}) {
      auto o = operands(dtype, {1, 30, n}, k, Order::rows, Order::rows, Order::rows);
      for (cpu::Isa isa : cpu::available_isas()) {
        SCOPED_TRACE(name(isa));
        cpu::set_isa(isa);
        for (int64_t m : {1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 30}) {
          o[0].view.shape[1] = o[2].view.shape[1] = m;
          o[2].array = Array(dtype, 30 * n);  // nothing of what the last one wrote
          call("matmul", o, 1);
          ASSERT_NO_FATAL_FAILURE(expect_columns(o, allowed(dtype)));
        }
      }
    }
  }
  cpu::set_isa(before);
  cpu::set_product_library(cpu::ProductLibrary::automatic);
}

// By the processor's own instructions, as far as it has any, and without.
TEST(Matmul, EveryInstructionForBf16) {
  const int64_t sizes[][3] = {{33, 40, 70},   {1, 200, 300}, {200, 2, 300}, {64, 64, 64},
                              {300, 600, 33}, {50, 31, 801}, {12, 100, 999}};
  const cpu::Bf16Gemm* before = cpu::bf16_gemm();
  std::vector<const cpu::Bf16Gemm*> gemms = {nullptr};
  for (const cpu::Bf16Gemm* gemm : cpu::available_bf16_gemms()) gemms.push_back(gemm);
  for (const cpu::Bf16Gemm* gemm : gemms) {
    cpu::set_bf16_gemm(gemm);
    for (const auto& s : sizes) {
      for (Order a : kOrders) {
        for (Order b : kOrders) {
          SCOPED_TRACE(gemm == nullptr ? "none" : gemm->name);
          auto o = operands(DType::bf16, {1, s[0], s[1]}, s[2], a, b, Order::rows);
          expect_product(o, allowed(DType::bf16));
        }
      }
    }
  }
  cpu::set_bf16_gemm(before);
}

TEST(Matmul, NonFiniteValuesSpread) {
  for (DType dtype : {DType::f32, DType::f64, DType::bf16}) {
    for (int64_t m : {1, 5, 40, 80}) {
      for (Order b : {Order::rows, Order::columns}) {
        auto o = operands(dtype, {1, m, 45}, 130, Order::rows, b, Order::rows);
        o[1].array.set(o[1].view.offset, std::nan(""));  // b(0, 0)
        call("matmul", o, 1);
        for (int64_t i = 0; i < m; ++i) {
          EXPECT_TRUE(std::isnan(at(o[2], i * 45)));
          EXPECT_TRUE(std::isfinite(at(o[2], i * 45 + 1)));
          EXPECT_TRUE(std::isfinite(at(o[2], i * 45 + 44)));
        }
      }
    }
  }
}

TEST(Matmul, NothingToSumIsZero) {
  for (DType dtype : {DType::f32, DType::bf16, DType::i32}) {
    auto o = operands(dtype, {2, 3, 4}, 0, Order::rows, Order::rows, Order::spread);
    expect_product(o, 0);
  }
}

TEST(Matmul, EmptyResults) {
  for (Shape c : {Shape{0, 3, 4}, Shape{2, 0, 4}, Shape{2, 3, 0}}) {
    auto o = operands(DType::f32, c, 5, Order::rows, Order::rows, Order::rows);
    expect_product(o, 0);
  }
}

TEST(Matmul, BatchesBroadcastAndLarge) {
  auto many = operands(DType::f32, {70, 20, 30}, 40, Order::rows, Order::columns, Order::rows);
  expect_product(many, 1e-6);
  // One b for all: with a's and c's batches side by side they become rows.
  auto shared = operands(DType::f32, {9, 20, 30}, 40, Order::rows, Order::rows, Order::rows);
  shared[1].view.strides[0] = 0;
  expect_product(shared, 1e-6);
  auto shared_apart =
      operands(DType::f32, {9, 20, 30}, 40, Order::spread, Order::rows, Order::spread);
  shared_apart[1].view.strides[0] = 0;
  expect_product(shared_apart, 1e-6);
  auto few_large = operands(DType::f32, {2, 200, 210}, 300, Order::rows, Order::rows, Order::rows);
  expect_product(few_large, 1e-6);
}

TEST(Matmul, EqualBitsForAnyNumberOfThreads) {
  const std::pair<Shape, int64_t> cases[] = {
      {{1, 3, 2000}, 600},   {{1, 300, 400}, 600}, {{30, 40, 50}, 600}, {{1, 30, 900}, 600},
      {{1, 2000, 3}, 600},   {{1, 20, 40}, 10000}, {{1, 1, 1}, 10000},  {{1, 5, 5000}, 300},
      {{1, 8300, 300}, 512}, {{1, 4, 70000}, 64}};
  for (const auto& [c, k] : cases) {
    for (Order b : {Order::rows, Order::columns}) {
      for (DType dtype : {DType::f32, DType::bf16}) {
        auto o = operands(dtype, c, k, Order::rows, b, Order::rows);
        auto p = o;
        call("matmul", o, 1);
        run_alone([&] { call("matmul", p, 1); });
        EXPECT_EQ(o[2].array.bytes(), p[2].array.bytes()) << to_string(c);
      }
    }
  }
}

TEST(Matmul, Refuses) {
  auto text = [](Shape a, Shape b, Shape c, DType dtype = DType::f32) {
    std::vector<Operand> o = {dense(Array(dtype, numel(a)), a), dense(Array(dtype, numel(b)), b),
                              dense(Array(dtype, numel(c)), c)};
    return error_of([&] { call("matmul", o, 1); });
  };
  EXPECT_EQ(text({4, 2}, {4, 2}, {4, 2}), "matmul: inner dimensions differ: (4, 2) @ (4, 2)");
  EXPECT_EQ(text({2, 4, 2}, {3, 2, 4}, {2, 4, 4}),
            "matmul: batch dimensions differ: (2, 4, 2) @ (3, 2, 4)");
  EXPECT_EQ(text({4}, {4}, {}),
            "matmul: expected two operands of one rank, at least 2, got (4,) @ (4,)");
  EXPECT_EQ(text({4, 2}, {2, 4}, {4, 2}), "matmul: expected c of shape (4, 4), got (4, 2)");
  EXPECT_EQ(text({4, 2}, {2, 4}, {4, 4}, DType::boolean),
            "matmul: expected a numeric type, got bool");
}

// The sums' bits of products that several threads cut otherwise than one does, as text.
std::string digest_of_sums() {
  uint64_t digest = 0;
  for (const auto& [c, k] : {std::pair(Shape{1, 300, 400}, 600), std::pair(Shape{1, 2017, 65}, 384),
                             std::pair(Shape{1, 390, 321}, 1100)}) {
    for (Order a : {Order::rows, Order::columns}) {
      for (Order b : {Order::rows, Order::columns}) {
        auto o = operands(DType::f32, c, k, a, b, Order::rows);
        call("matmul", o, 1);
        for (const char byte : o[2].array.bytes()) digest = 31 * digest + uint8_t(byte);
      }
    }
  }
  return std::to_string(digest);
}

TEST(MatmulDeathTest, EqualBitsInProcessesOfOtherThreads) {
  expect_equal_in_processes(digest_of_sums);
}

// All positions of TESSERA_ONEDNN, unset as "": the setting is read once, so each runs in a process
// of its own. _exit: a leak checker cannot stop the threads of oneDNN's runtime.
TEST(MatmulDeathTest, OneDnnSwitch) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  for (const char* setting : {"0", "1", ""}) {
    EXPECT_EXIT(
        {
          setenv("TESSERA_ONEDNN", setting, 1);
          std::fprintf(stderr, "status: %s;", cpu::onednn_status());
          for (Order b : {Order::rows, Order::columns}) {
            auto o = operands(DType::f32, {1, 130, 120}, 140, Order::columns, b, Order::rows);
            expect_product(o, 1e-6);
            for (auto library : {cpu::ProductLibrary::onednn, cpu::ProductLibrary::own}) {
              cpu::set_product_library(library);
              // The second is cut along its columns.
              for (const Shape& c : {Shape{2, 33, 20}, Shape{1, 12, 5000}}) {
                auto forced = operands(DType::f32, c, 14, Order::columns, b, Order::rows);
                expect_product(forced, 1e-6);
              }
            }
            cpu::set_product_library(cpu::ProductLibrary::automatic);
          }
          _exit(testing::Test::HasFailure() ? 1 : 0);
        },
        testing::ExitedWithCode(0),
        *setting != '1'
            ? "status: own matrix products;"
            : "status: (large f32 matrix products by oneDNN|own matrix products .libdnnl)");
  }
  EXPECT_EXIT(
      {
        setenv("TESSERA_ONEDNN", "maybe", 1);
        std::fprintf(stderr, "%s", error_of([] { cpu::onednn_status(); }).c_str());
        _exit(0);
      },
      testing::ExitedWithCode(0), "TESSERA_ONEDNN: expected 0 or 1, got 'maybe'");
}

}  // namespace
}  // namespace tessera::test
