// What the machine is measured with: loops, movers, limits, and the libraries beside us.
#include <gtest/gtest.h>

#include <cstdlib>
#include <numeric>
#include <string_view>

#include "tessera/backend/cpu/isa.h"
#include "tessera/backend/cpu/peak.h"
#include "tessera/bench/limits.h"
#include "tessera/bench/movers.h"
#include "tessera/bench/peers.h"

namespace tessera::bench {
namespace {

class Peak : public ::testing::TestWithParam<cpu::Isa> {};
INSTANTIATE_TEST_SUITE_P(Isas, Peak, ::testing::ValuesIn(cpu::available_isas()),
                         [](const auto& test) { return std::string(cpu::name(test.param)); });

TEST_P(Peak, LoopsMoveEveryElement) {
  const cpu::PeakLoops& loops = cpu::peaks(GetParam());
  for (const int64_t n : {0, 1, 15, 64, 1000, 4099}) {
    for (const int64_t shift : {0, 1, 3}) {  // stores past the caches must be aligned
      std::vector<float> a(size_t(n + 8)), b(a.size()), d(a.size());
      std::iota(a.begin(), a.end(), 1.f);
      std::iota(b.begin(), b.end(), 1000.f);
      const auto expect = [&](auto value) {
        for (int64_t i = 0; i < int64_t(d.size()); ++i) {
          const bool inside = i >= shift && i < n + shift;
          ASSERT_EQ(d[size_t(i)], inside ? value(size_t(i)) : -1.f)
              << n << ' ' << shift << ' ' << i;
        }
        d.assign(d.size(), -1);
      };
      d.assign(d.size(), -1);
      for (const bool past : {false, true}) {
        (past ? loops.copy_past : loops.copy)(n, d.data() + shift, a.data() + shift);
        expect([&](size_t i) { return a[i]; });
        (past ? loops.add_past : loops.add)(n, d.data() + shift, a.data() + shift,
                                            b.data() + shift);
        expect([&](size_t i) { return a[i] + b[i]; });
        (past ? loops.write_past : loops.write)(n, d.data() + shift);
        expect([](size_t) { return 1.f; });
      }
      const float sum = std::accumulate(a.begin() + shift, a.begin() + shift + n, 0.f);
      EXPECT_NEAR(loops.read(n, a.data() + shift), sum, 1e-6 * sum);
    }
  }
}

TEST_P(Peak, MultiplyAddsAreCounted) {
  const cpu::PeakLoops& loops = cpu::peaks(GetParam());
  EXPECT_GT(loops.flops, 0);
  // Each sum goes to 2 = 1 / (1 - 0.5), whatever it starts from.
  EXPECT_NEAR(loops.fma(100), double(loops.flops), 1e-3 * double(loops.flops));
}

TEST(Movers, CountTheirBytes) {
  EXPECT_EQ(bytes_of({Move::read, 100}), 400);
  EXPECT_EQ(bytes_of({Move::write, 100}), 400);
  EXPECT_EQ(bytes_of({Move::copy, 100}), 800);
  EXPECT_EQ(bytes_of({Move::add, 100}), 1200);
  const Contender contender = move_bytes({{Move::read, 10}, {Move::add, 100'000}});
  EXPECT_EQ(contender.column, kBytes);
  EXPECT_FALSE(contender.outputs);
  contender.run();
}

TEST(Machine, LimitsAreMeasured) {
  const Limits limits = measure_limits(true);
  ASSERT_EQ(limits.fma.size(), cpu::available_isas().size());
  for (const Limits::Fma& rate : limits.fma) {
    EXPECT_GT(rate.one_thread, 1e6) << rate.isa;
    EXPECT_GT(rate.all_threads, 1e6) << rate.isa;
  }
  EXPECT_GT(limits.copy_bytes, 1e6);
  EXPECT_GT(limits.add_bytes, 1e6);
}

TEST(Machine, IsDescribed) {
  const Machine machine = describe_machine();
  EXPECT_FALSE(machine.cpu.empty());
  EXPECT_EQ(machine.isa, cpu::name(cpu::isa()));
  EXPECT_GE(machine.threads, 1);
}

TEST(Peers, MultiplyAsTheyShould) {
  const char* setting = std::getenv("TESSERA_ONEDNN");
  if (setting != nullptr && std::string_view(setting) == "0")
    GTEST_SKIP() << "not under sanitizers";
  const std::vector<float> a = {1, 2, 3, 4, 5, 6}, b = {1, 0, 2, 1, 3, 1};  // (2, 3), (3, 2)
  const std::vector<float> b_transposed = {1, 2, 3, 0, 1, 1};
  for (const Peer& peer : peers()) {
    for (const auto multiply : {peer.multiply, peer.multiply_alone}) {
      if (multiply == nullptr) continue;
      for (const bool transposed : {false, true}) {
        std::vector<float> c(4);
        multiply(
            {2, 2, 3, transposed, a.data(), transposed ? b_transposed.data() : b.data(), c.data()});
        EXPECT_EQ(c, (std::vector<float>{14, 5, 32, 11})) << peer.name;
      }
    }
  }
}

TEST(Peers, OpenBlasIsToldTheProcessor) {
  EXPECT_STREQ(openblas_core(true, true), "SKYLAKEX");
  EXPECT_STREQ(openblas_core(false, true), "HASWELL");
  EXPECT_EQ(openblas_core(false, false), nullptr);
}

}  // namespace
}  // namespace tessera::bench
