// Lines of `tessera bench` on a GPU's columns: right, queued, and beside limits of the device.
#include <algorithm>

#include "cuda_stand_in/stand_in_test.h"
#include "tessera/bench/gpt_lines.h"
#include "tessera/bench/gpt_run.h"
#include "tessera/bench/limits.h"
#include "tessera/bench/run.h"
#include "tessera/bench/suites.h"
#include "tessera/bench/text.h"
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

// Every line about a GPT, of a model as small as can be.
void check_gpt_lines(std::string name, DType dtype, bool needs_gpu) {
  const GptConfig config{
      .vocabulary = 11, .context = 8, .width = 16, .layers = 1, .heads = 2, .deviation = 0.1};
  const bench::GptSize size{std::move(name), config, 2, dtype, needs_gpu, 1};
  std::vector<bench::Case> cases = bench::gpt_part_cases(size);
  for (const auto more : {bench::gpt_variant_cases, bench::gpt_layer_cases}) {
    const std::vector<bench::Case> list = more(size);
    cases.insert(cases.end(), list.begin(), list.end());
  }
  for (const bench::Case& one : cases) {
    SCOPED_TRACE(one.name);
    const bench::Line line = run_case(one, kBoth, bench::quick_policy());
    EXPECT_TRUE(line.passed()) << bench::wrong_text(line);
    EXPECT_NE(line.find("cuda:0"), nullptr);
    EXPECT_EQ(line.find("cpu") == nullptr, one.needs_gpu);
  }
}

TEST_F(CudaBench, LinesOfGptsAreRight) { check_gpt_lines("small 2x8", DType::f32, false); }

TEST_F(CudaBench, LinesOfGptsForGpusAloneAreRight) {
  check_gpt_lines("small on a GPU", DType::bf16, true);
}

// No loss is read between steps.
TEST_F(CudaBench, IterationsAreQueued) {
  const GptConfig config{.vocabulary = 11, .context = 8, .width = 16, .layers = 1, .heads = 2};
  const bench::GptRun run(config, 2, bench::GptPart::iteration, {}, kCuda);
  run.outputs(4);  // twice over each of two sets of results: then both are recorded
  const CounterValues before = counters().snapshot();
  for (int i = 0; i < 10; ++i) run.run();
  run.wait();
  const CounterValues after = counters().snapshot();
  EXPECT_EQ(after.synchronizations - before.synchronizations, 1);
  EXPECT_EQ(after.launches - before.launches, 10);
  EXPECT_EQ(after.allocations, before.allocations);
}

TEST_F(CudaBench, ADeviceHasLimitsOfItsOwn) {
  const bench::Limits::OfDevice limits = bench::measure_device(kCuda, true);
  EXPECT_EQ(limits.device, "cuda:0");
  EXPECT_GT(limits.copy_bytes, 0);
  EXPECT_GT(limits.product_flops(DType::f32), 0);
  EXPECT_GT(limits.product_flops(DType::bf16), 0);
  EXPECT_EQ(limits.product_flops(DType::f16), 0);
  constexpr DType kHalf = DType::f16;
  const auto of_half = bench::measure_device(kCuda, true, std::span(&kHalf, 1));
  EXPECT_GT(of_half.product_flops(DType::f16), 0);
}

}  // namespace
}  // namespace tessera::test
