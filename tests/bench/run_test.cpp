#include "tessera/bench/run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "tessera/backend/cpu/cpu_backend.h"
#include "tessera/bench/op_case.h"
#include "tessera/bench/suites.h"
#include "tessera/runtime/registry.h"
#include "tessera/tensor/elementwise.h"

namespace tessera::bench {
namespace {

const Setting kQuick{{Device()}, true};

// y = 2 x, where the expression says something else when it is to be wrong.
OpCase doubling(float wrong_by = 0) {
  OpCase op;
  op.suite = "elementwise";
  op.name = "double";
  op.operands = [] { return Operands{{{64}, make_data(64, -1, 1, 1)}}; };
  op.apply = [wrong_by](const std::vector<Tensor>& in) {
    return std::vector{in[0] + in[0] + wrong_by};
  };
  op.loop = loop_of([](const Operands& in, auto& out) {
    for (size_t i = 0; i < out[0].size(); ++i) out[0][i] = 2 * in[0].values[i];
  });
  op.outputs = {{64, 0.5}};
  op.moved = {{Move::copy, 64}};
  return op;
}

TEST(Run, ChecksThenTimes) {
  const Line line = run_case(to_case(doubling()), kQuick, quick_policy());
  ASSERT_EQ(line.checks.size(), 2u) << "the yardstick of bytes computes nothing";
  EXPECT_EQ(line.checks[0].column, "plain");
  EXPECT_EQ(line.checks[1].column, "cpu");
  EXPECT_TRUE(line.passed());
  ASSERT_EQ(line.cells.size(), 3u);
  EXPECT_EQ(line.cells[1].column, "bytes");
  for (const Measurement& cell : line.cells) EXPECT_GT(cell.time.median, 0);
  EXPECT_EQ(line.bytes, 8.0 * 64);
  EXPECT_EQ(line.unit, "GB/s");
  EXPECT_EQ(line.fact("kernels"), 1);
}

TEST(Run, AWrongLineIsNotTimed) {
  const Line line = run_case(to_case(doubling(0.001f)), kQuick, quick_policy());
  EXPECT_FALSE(line.passed());
  EXPECT_TRUE(line.checks[0].passed()) << "the plain loop is right";
  EXPECT_FALSE(line.checks[1].passed());
  EXPECT_NEAR(line.checks[1].error, 0.001 / 0x1p-23, 100)
      << "ulps of the greatest, which is near 2";
  EXPECT_TRUE(line.cells.empty());
}

TEST(Run, TheBestOfAColumnStays) {
  Case one = to_case(doubling());
  one.make = [](const Setting&) {
    Contest contest;
    for (const int milliseconds : {5, 1, 3}) {
      contest.contenders.push_back(
          {.column = "library", .by = cat(milliseconds), .run = [milliseconds] {
             std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
           }});
    }
    return contest;
  };
  const Line line = run_case(one, kQuick, quick_policy());
  ASSERT_EQ(line.cells.size(), 1u);
  EXPECT_EQ(line.cells[0].by, "1");
}

TEST(Run, QuickLeavesOutWhatIsSlow) {
  OpCase slow = doubling();
  slow.slow = true;
  const std::vector<Case> cases = {to_case(doubling()), to_case(slow)};
  Results results;
  int started = 0, finished = 0;
  run_cases(cases, kQuick,
            {[&](const Case&, size_t number, size_t count) {
               ++started;
               EXPECT_EQ(number, 1u);
               EXPECT_EQ(count, 2u);
             },
             [&](const Line&) { ++finished; }},
            results);
  EXPECT_EQ(results.lines.size(), 1u);
  EXPECT_EQ(results.left_out, 1);
  EXPECT_EQ(started, 1);
  EXPECT_EQ(finished, 1);
}

TEST(Run, UnfusedHasAKernelPerOp) {
  OpCase op = doubling();
  op.apply = [](const std::vector<Tensor>& in) { return std::vector{(in[0] * 4.0) * 0.5}; };
  EXPECT_EQ(run_case(to_case(op), kQuick, quick_policy()).fact("kernels"), 1);
  op.options.fuse = false;
  EXPECT_EQ(run_case(to_case(op), kQuick, quick_policy()).fact("kernels"), 2);
}

TEST(Run, AColdLineHasCopiesOfItsOwn) {
  int calls = 0;
  OpCase op = doubling();
  op.apply = [&calls, apply = op.apply](const std::vector<Tensor>& in) {
    ++calls;
    return apply(in);
  };
  run_case(to_case(op), kQuick, quick_policy());
  const int of_one = std::exchange(calls, 0);
  const Case made = to_case(cold(op));
  EXPECT_TRUE(made.name.ends_with(", cold")) << made.name;
  EXPECT_TRUE(run_case(made, kQuick, quick_policy()).passed());
  EXPECT_GT(calls, 4 * of_one) << "each copy compiles its own";
}

// A second CPU in the place of a GPU: what a device that is none of the CPU's own must go through.
TEST(Run, OtherDevicesHaveAColumnWithTransfers) {
  register_backend(DeviceKind::opencl, {[] { return 1; }, [](int) { return make_cpu_backend(); }});
  if (std::ranges::count(available_devices(), Device("opencl:0")) == 0) {
    GTEST_SKIP() << "this build has an OpenCL backend, but this machine no such device";
  }
  const Setting setting{{Device(), Device("opencl:0")}, true};
  const std::vector<std::string> expected = {"plain", "cpu", "opencl:0", "opencl:0 + transfers"};
  const auto checked = [&](const Case& one) {
    const Line line = run_case(one, setting, quick_policy());
    std::vector<std::string> columns;
    for (const Check& check : line.checks) columns.push_back(check.column);
    EXPECT_TRUE(line.passed());
    EXPECT_EQ(line.cells.size(), columns.size() + (line.find(kBytes) != nullptr ? 1 : 0));
    return columns;
  };
  EXPECT_EQ(checked(to_case(doubling())), expected);
  for (const Case& one : all_cases()) {
    if (one.name == "mlp 784-256-10, B = 64, step with SGD") EXPECT_EQ(checked(one), expected);
    if (one.name == "host to device 4 KiB") {
      EXPECT_EQ(checked(one), (std::vector<std::string>{"plain", "cpu", "opencl:0"}));
    }
  }
}

}  // namespace
}  // namespace tessera::bench
