// Whether results go past the caches: the choice, and that it shows in nothing but the time.
#include "tessera/backend/cpu/stores.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <memory>

#include "backend_cpu/named_kernels.h"
#include "tessera/backend/cpu/host_memory.h"
#include "tessera/backend/cpu/isa.h"

namespace tessera::test {
namespace {

constexpr int64_t kMiB = int64_t(1) << 20;

// How many of so many runs went past the caches, where a run takes so long either way.
int runs_past(cpu::Stores& stores, int runs, float seconds, float seconds_past) {
  int count = 0;
  for (int i = 0; i < runs; ++i) {
    const bool past = stores.next();
    stores.took(past, past ? seconds_past : seconds);
    count += past;
  }
  return count;
}

TEST(Stores, WhatIsClearIsNotTried) {
  cpu::Stores small(4 * kMiB), large(512 * kMiB);
  EXPECT_EQ(runs_past(small, 100, 2, 1), 0);
  EXPECT_EQ(runs_past(large, 100, 1, 2), 100);
}

TEST(Stores, TheFasterWayIsTheRule) {
  cpu::Stores past(32 * kMiB), plain(32 * kMiB);
  EXPECT_EQ(runs_past(past, 8, 2, 1), 4);
  EXPECT_EQ(runs_past(past, 248, 2, 1), 244);
  EXPECT_EQ(runs_past(plain, 8, 1, 2), 4);
  EXPECT_EQ(runs_past(plain, 248, 1, 2), 4);
}

// Whoever reads the results next finds those that stayed.
TEST(Stores, ALittleFasterIsNotWorthIt) {
  cpu::Stores stores(32 * kMiB);
  EXPECT_EQ(runs_past(stores, 8, 1, 0.9f), 4);
  EXPECT_EQ(runs_past(stores, 248, 1, 0.9f), 4);
}

TEST(Stores, AChangeIsNoticed) {
  cpu::Stores stores(32 * kMiB);
  runs_past(stores, 100, 1, 1.5f);
  runs_past(stores, 256, 3, 1.5f);  // others take the cache
  EXPECT_GE(runs_past(stores, 128, 3, 1.5f), 124);
  runs_past(stores, 256, 1, 1.5f);  // and leave it
  EXPECT_LE(runs_past(stores, 128, 1, 1.5f), 4);
}

TEST(Stores, OneSlowRunChangesNothing) {
  cpu::Stores stores(32 * kMiB);
  runs_past(stores, 100, 1, 1.5f);
  stores.took(false, 100);
  EXPECT_LE(runs_past(stores, 128, 1, 1.5f), 4);
}

// Runs of one kernel on operands of 32 MiB: the first 8 take both ways.
void expect_equal_runs(const std::string& kernel, std::vector<Operand> operands, int outputs,
                       size_t result) {
  const auto executable = test_backend().compile(make_call(kernel, operands, outputs));
  std::vector<BufferRef> refs;
  for (Operand& operand : operands) refs.push_back({operand.array.data(), 0});
  const size_t bytes = operands[result].array.bytes().size();
  const std::unique_ptr<void, decltype(&std::free)> y(cpu::allocate_host(int64_t(bytes)),
                                                      std::free);
  ASSERT_EQ(reinterpret_cast<uintptr_t>(y.get()) % 64, 0u);
  refs[result] = {y.get(), 0};
  std::vector<char> first;
  for (int run = 0; run < 8; ++run) {
    std::memset(y.get(), 0xff, bytes);
    test_backend().launch(*executable, refs, 0, Stream{});
    const char* got = static_cast<const char*>(y.get());
    if (run == 0) first.assign(got, got + bytes);
    ASSERT_EQ(std::memcmp(first.data(), got, bytes), 0) << kernel << ", run " << run;
  }
}

TEST(Stores, BothWaysGiveTheSameBits) {
  constexpr int64_t kRows = 1024, kColumns = 4096;
  const Shape shape = {kRows, kColumns};
  const auto some = [](int64_t n) { return random_array(DType::f32, n, -5, 5); };
  const auto none = [](int64_t n) { return Array(DType::f32, n); };
  expect_equal_runs("softmax",
                    {dense(some(kRows * kColumns), shape), dense(none(kRows * kColumns), shape)}, 1,
                    1);
  expect_equal_runs("layer_norm",
                    {dense(some(kRows * kColumns), shape), dense(some(kColumns), {kColumns}),
                     dense(some(kColumns), {kColumns}), dense(none(kRows * kColumns), shape),
                     dense(none(kRows), {kRows, 1}), dense(none(kRows), {kRows, 1})},
                    3, 3);
}

// On every instruction set, with rows of whole lines.
TEST(Stores, RowsPastTheCachesAreTheSame) {
  constexpr int64_t kRows = 3, kColumns = 208, kCount = kRows * kColumns;
  alignas(64) float x[kCount], y[2][kCount], room[2 * kColumns], gamma[kColumns];
  for (int64_t i = 0; i < kCount; ++i) x[i] = float(i * i % 97) / 16 - 3;
  for (int64_t i = 0; i < kColumns; ++i) gamma[i] = float(i % 5) - 1.5f;
  for (cpu::Isa isa : cpu::available_isas()) {
    const cpu::Isa before = cpu::isa();
    cpu::set_isa(isa);
    const cpu::RowLoops& rows = cpu::loops().rows_f32;
    for (const bool past : {false, true})
      rows.softmax(kRows, kColumns, y[past], x, past ? room : nullptr);
    EXPECT_EQ(std::memcmp(y[0], y[1], sizeof x), 0) << "softmax, " << name(isa);
    for (const bool past : {false, true}) {
      rows.layer_norm(kRows, kColumns, y[past], nullptr, nullptr, x, gamma, gamma, 1e-5, past);
    }
    EXPECT_EQ(std::memcmp(y[0], y[1], sizeof x), 0) << "layer_norm, " << name(isa);
    cpu::set_isa(before);
  }
}

}  // namespace
}  // namespace tessera::test
