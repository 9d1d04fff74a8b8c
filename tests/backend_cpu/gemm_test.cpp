// How products are cut, and the instructions for bf16.
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "tessera/backend/cpu/gemm_bf16.h"
#include "tessera/backend/cpu/isa.h"
#include "tessera/backend/cpu/kernels/product_blocks.h"

namespace tessera::test {
namespace {

using namespace cpu;

ProductShape shape(int64_t m, int64_t n, int64_t k) { return {m, n, k, 12, 32, 4, 16}; }

TEST(Gemm, CachesHaveSizes) {
  EXPECT_GE(cache_sizes().first, 4 << 10);
  EXPECT_GE(cache_sizes().second, cache_sizes().first);
}

TEST(Gemm, BlocksFitTheCaches) {
  for (int64_t k : {1, 7, 300, 1000, 4096, 50257}) {
    const Blocks blocks = choose_blocks(shape(2048, 2048, k));
    EXPECT_GE(blocks.depth, 1);
    EXPECT_LE(blocks.depth, k);
    EXPECT_LE(blocks.depth * 12 * 4, std::max<int64_t>(cache_sizes().first, 64 * 12 * 4));
    EXPECT_EQ(blocks.rows % 12, 0);
    EXPECT_EQ(blocks.columns % 32, 0);
    // No short last block.
    const int64_t last = (k - 1) % blocks.depth + 1;
    EXPECT_GE(2 * last, blocks.depth) << k;
  }
}

TEST(Gemm, TheOrderOfSumsIsAFunctionOfKAlone) {
  for (int64_t k : {100, 700, 5000}) {
    EXPECT_EQ(choose_blocks(shape(1, 1, k)).depth, choose_blocks(shape(3000, 500, k)).depth);
  }
}

TEST(Gemm, GridsCoverTheProduct) {
  for (int64_t threads : {1, 2, 3, 8, 64}) {
    for (int64_t m : {1, 12, 13, 384, 2048}) {
      for (int64_t n : {1, 31, 65, 1152, 50257}) {
        const Grid grid = choose_grid(shape(m, n, 384), threads);
        for (const EvenParts& parts : {grid.rows, grid.columns}) {
          EXPECT_EQ(parts.begin(0), 0);
          EXPECT_EQ(parts.begin(parts.count), parts.extent);
          int64_t largest = 0;
          for (int64_t i = 0; i < parts.count; ++i) {
            EXPECT_GT(parts.size(i), 0) << m << " " << n << " " << i;
            EXPECT_EQ(parts.begin(i) % parts.unit, 0);
            largest = std::max(largest, parts.size(i));
          }
          EXPECT_LE(largest, parts.largest());
          EXPECT_LT(parts.largest(), largest + parts.unit);
        }
        EXPECT_EQ(grid.rows.extent, m);
        EXPECT_EQ(grid.columns.extent, n);
        if (threads == 1) EXPECT_EQ(grid.tasks(), 1);
      }
    }
  }
}

TEST(Gemm, LargeProductsOccupyAllThreads) {
  for (int64_t threads : {2, 8, 64}) {
    for (auto [m, n] : {std::pair(2048, 2048), std::pair(64, 50257), std::pair(50257, 64)}) {
      const Grid grid = choose_grid(shape(m, n, 768), threads);
      EXPECT_GE(grid.tasks(), threads) << m << " x " << n;
    }
  }
}

// Shares are counted in rows and vectors: by whole tiles of 9 x 48, 256 columns would be 144 and
// 112.
TEST(Gemm, TwoThreadsHaveTheSameToDo) {
  for (int64_t extent : {128, 256, 384, 512, 1024}) {
    const ProductShape s = {extent, extent, extent, 9, 48, 4, 16};
    const Grid grid = choose_grid(s, 2);
    EXPECT_EQ(grid.tasks() % 2, 0) << extent;
    const double largest = double(grid.rows.largest() * grid.columns.largest());
    EXPECT_LE(largest * double(grid.tasks()), 1.05 * double(extent * extent)) << extent;
  }
  // 11 tiles across cannot be halved; 57 up can, but for one.
  const ProductShape s = {512, 512, 512, 9, 48, 4, 16};
  const SharedBlocks shared = choose_shared_blocks(s, choose_blocks(s), 2);
  ASSERT_GT(shared.rows, 0);
  EXPECT_FALSE(shared.down_first);
  EXPECT_EQ(divide_up(s.m, shared.task_rows) % 2, 0);
}

TEST(Gemm, LargeProductsAreManyTasksThatShare) {
  for (int64_t threads : {2, 3, 16}) {
    for (auto [m, n, k] : {std::tuple(2048, 1152, 384), std::tuple(384, 1536, 2048),
                           std::tuple(2048, 65, 384), std::tuple(100000, 768, 768)}) {
      const ProductShape s = shape(m, n, k);
      const Blocks blocks = choose_blocks(s);
      const SharedBlocks shared = choose_shared_blocks(s, blocks, threads);
      if (shared.rows == 0) {  // a c of few tiles
        EXPECT_TRUE(m * n < 16 * 9 * threads * s.tile_rows * s.tile_columns) << m << " " << threads;
        continue;
      }
      const int64_t rows = divide_up(m, shared.task_rows);
      EXPECT_GE(rows * divide_up(n, shared.task_columns), 2 * threads) << m << " x " << n;
      EXPECT_EQ(shared.rows % shared.task_rows, 0);
      EXPECT_EQ(shared.task_rows % s.tile_rows, 0);
      EXPECT_EQ(shared.task_columns % s.tile_columns, 0);
      const int64_t bytes = blocks.depth * s.element;
      EXPECT_LE((shared.task_rows - s.tile_rows) * bytes, cache_sizes().second / 4);
      EXPECT_LE((shared.task_columns - s.tile_columns) * bytes, cache_sizes().second / 2);
      EXPECT_LE(shared.rows * bytes, std::max<int64_t>(16 << 20, shared.task_rows * bytes));
    }
  }
  EXPECT_EQ(choose_shared_blocks(shape(2048, 2048, 2048), choose_blocks(shape(9, 9, 9)), 1).rows,
            0);
  EXPECT_EQ(choose_shared_blocks(shape(64, 64, 64), choose_blocks(shape(64, 64, 64)), 2).rows, 0);
}

TEST(Gemm, SmallProductsStayInOneThread) {
  const Grid grid = choose_grid(shape(32, 32, 32), 64);
  EXPECT_EQ(grid.tasks(), 1);
}

TEST(Gemm, DeepProductsAreCutAlongK) {
  EXPECT_EQ(depth_parts(shape(16, 16, 1000)), 1);
  EXPECT_EQ(depth_parts(shape(16, 16, 8192)), 4);
  EXPECT_EQ(depth_parts(shape(2048, 2048, 1 << 20)), 1);
}

TEST(Gemm, InstructionsForBf16FollowTheInstructionSet) {
  const Isa before = isa();
  for (Isa one : available_isas()) {
    set_isa(one);
    if (one != Isa::avx512) EXPECT_EQ(bf16_gemm(), nullptr);
    if (one == Isa::avx512 && !available_bf16_gemms().empty()) {
      EXPECT_EQ(bf16_gemm(), available_bf16_gemms().back());
    }
  }
  set_isa(before);
}

TEST(Gemm, InstructionsForBf16HaveNames) {
  for (const Bf16Gemm* gemm : available_bf16_gemms()) {
    EXPECT_TRUE(std::string(gemm->name) == "avx512bf16" || std::string(gemm->name) == "amx");
  }
}

}  // namespace
}  // namespace tessera::test
