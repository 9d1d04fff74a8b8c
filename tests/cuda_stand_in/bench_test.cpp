// Lines of `tessera bench` on a GPU's columns: right, queued, and beside limits of the device.
#include <algorithm>

#include "cuda_stand_in/stand_in_test.h"
#include "tessera/bench/limits.h"
#include "tessera/bench/run.h"
#include "tessera/bench/suites.h"
#include "tessera/runtime/counters.h"

namespace tessera::test {
namespace {

class CudaBench : public OnStandIn<> {};

const bench::Setting kBoth{{Device(), kCuda}, true};

TEST_F(CudaBench, LinesHaveBothColumns) {
  const std::vector<std::string> wanted = {"softmax 64 x 1024", "host to device 64 KiB",
                                           "mlp 784-256-10, B = 64, step with AdamW", "f32 128"};
  size_t found = 0;
  for (const bench::Case& one : bench::all_cases()) {
    if (std::ranges::find(wanted, one.name) == wanted.end()) continue;
    SCOPED_TRACE(one.name);
    ++found;
    const bench::Line line = run_case(one, kBoth, bench::quick_policy());
    EXPECT_TRUE(line.passed());
    EXPECT_NE(line.find("cpu"), nullptr);
    EXPECT_NE(line.find("cuda:0"), nullptr);
    EXPECT_EQ(line.find("cuda:0 + transfers") == nullptr, one.suite == "transfer");
  }
  EXPECT_EQ(found, wanted.size());
  EXPECT_EQ(default_device(), kCuda) << "it was the host while lines were made";
}

TEST_F(CudaBench, RunsAreQueued) {
  for (const bench::Case& one : bench::all_cases()) {
    if (one.name != "softmax 64 x 1024") continue;
    const bench::Contest contest = one.make(kBoth);
    for (const bench::Contender& contender : contest.contenders) {
      if (contender.column != "cuda:0") continue;
      contender.run();
      const CounterValues before = counters().snapshot();
      for (int i = 0; i < 10; ++i) contender.run();
      contender.wait();
      const CounterValues after = counters().snapshot();
      EXPECT_EQ(after.synchronizations - before.synchronizations, 1);
      EXPECT_EQ(after.launches - before.launches, 10);
      EXPECT_EQ(after.allocations, before.allocations);
      return;
    }
  }
  ADD_FAILURE() << "no such line";
}

TEST_F(CudaBench, ADeviceHasLimitsOfItsOwn) {
  const bench::Limits::OfDevice limits = bench::measure_device(kCuda, true);
  EXPECT_EQ(limits.device, "cuda:0");
  EXPECT_GT(limits.copy_bytes, 0);
  EXPECT_GT(limits.product_flops(DType::f32), 0);
  EXPECT_GT(limits.product_flops(DType::bf16), 0);
}

}  // namespace
}  // namespace tessera::test
