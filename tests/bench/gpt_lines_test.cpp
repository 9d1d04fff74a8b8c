#include "tessera/bench/gpt_lines.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tessera/backend/cpu/cpu_backend.h"
#include "tessera/base/precision.h"
#include "tessera/bench/gpt_run.h"
#include "tessera/bench/run.h"
#include "tessera/runtime/registry.h"
#include "tessera/tensor/eval.h"
#include "tessera/tessera.h"

namespace tessera::bench {
namespace {

const Setting kQuick{{Device()}, true};
const GptConfig kConfig{
    .vocabulary = 11, .context = 8, .width = 16, .layers = 2, .heads = 2, .deviation = 0.1};

GptSize tiny(DType dtype = DType::f32) { return {"tiny 4x8", kConfig, 4, dtype, false, 2}; }

std::vector<Case> all_of(const GptSize& size) {
  std::vector<Case> all;
  for (const auto make : {gpt_part_cases, gpt_variant_cases, gpt_layer_cases}) {
    const std::vector<Case> cases = make(size);
    all.insert(all.end(), cases.begin(), cases.end());
  }
  return all;
}

const Case& named(const std::vector<Case>& cases, std::string_view name) {
  const auto found = std::ranges::find(cases, name, &Case::name);
  if (found == cases.end()) throw std::runtime_error("no line " + std::string(name));
  return *found;
}

// Losses of two iterations, and their norms.
Outputs iterations(const GptVariant& variant) {
  return GptRun(kConfig, 4, GptPart::iteration, variant, Device()).outputs(2);
}

TEST(GptRun, PartsAreThoseOfAnIteration) {
  init();
  const Outputs whole = iterations({});
  const Outputs forward = GptRun(kConfig, 4, GptPart::forward, {}, Device()).outputs(2);
  const Outputs both = GptRun(kConfig, 4, GptPart::both, {}, Device()).outputs(1);
  ASSERT_EQ(whole.size(), 2u);
  ASSERT_EQ(forward.size(), 1u);
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(forward[0][0], forward[0][1]) << "it learns nothing";
  EXPECT_NE(whole[0][0], whole[0][1]);
  EXPECT_NEAR(forward[0][0], whole[0][0], 1e-5);
  EXPECT_NEAR(both[0][0], whole[0][0], 1e-5);
  EXPECT_NEAR(both[1][0], whole[1][0], 1e-4);
}

TEST(GptRun, CheckpointsNeedLessMemory) {
  init();
  GptConfig config = kConfig;
  config.layers = 8;
  config.context = 64;
  const auto memory = [&](Checkpointing checkpointing) {
    return GptRun(config, 4, GptPart::iteration, {.checkpointing = checkpointing}, Device())
        .memory();
  };
  EXPECT_LT(memory(Checkpointing::selective), memory(Checkpointing::none));
  EXPECT_LT(memory(Checkpointing::block), memory(Checkpointing::selective));
}

TEST(GptRun, LeavesTheProcessAsItWas) {
  init();
  const bool before = set_tf32(false);
  iterations({.tf32 = true, .options = {.fuse = false}});
  EXPECT_FALSE(allows_tf32());
  EXPECT_TRUE(compile_options().fuse);
  set_tf32(before);
}

TEST(GptLines, AreRight) {
  init();
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const Case& one : all_of(tiny(dtype))) {
      SCOPED_TRACE(one.name);
      const Line line = run_case(one, kQuick, quick_policy());
      if (one.needs_gpu) {
        EXPECT_TRUE(line.no_device);
        EXPECT_TRUE(line.cells.empty());
        continue;
      }
      ASSERT_EQ(line.checks.size(), 1u);
      EXPECT_TRUE(line.passed()) << line.checks[0].error << " ulps of " << line.checks[0].tolerance;
      EXPECT_NE(line.find("cpu"), nullptr);
    }
  }
}

TEST(GptLines, SayWhatTheyAre) {
  const std::vector<Case> cases = all_of(tiny());
  EXPECT_EQ(cases.size(), 4u + 5u + 14u);
  const Case& whole = named(cases, "tiny 4x8 f32, iteration");
  EXPECT_EQ(whole.amount, 32);
  EXPECT_EQ(whole.flops, 32 * training_flops(kConfig));
  EXPECT_EQ(whole.epoch, 1e6 / 2);
  EXPECT_EQ(named(cases, "tiny 4x8 f32, forward").flops, whole.flops / 3);
  EXPECT_EQ(named(cases, "tiny 4x8 bf16, iteration").dtype, DType::bf16);
  EXPECT_TRUE(named(cases, "tiny 4x8 tf32, iteration").needs_gpu);
  EXPECT_EQ(named(cases, "tiny 4x8 f32, qkv + backward").flops, 3.0 * 2 * 32 * 16 * 48);
  EXPECT_EQ(named(cases, "tiny 4x8 f32, attention").flops, 2.0 * 4 * 8 * 8 * 16);
}

// What would go unnoticed: a step that skips the update, or other weights.
TEST(GptLines, AWrongStepIsFound) {
  init();
  const Case one = gpt_iteration_case(tiny());
  const Contest contest = one.make(kQuick);
  Outputs outputs = contest.contenders[0].outputs();
  EXPECT_TRUE(compare("cpu", outputs, contest.expected).passed());
  outputs[0][1] = outputs[0][0];
  EXPECT_FALSE(compare("cpu", outputs, contest.expected).passed());
  const Case update = named(gpt_part_cases(tiny()), "tiny 4x8 f32, optimiser");
  const Contest other = update.make(kQuick);
  outputs = other.contenders[0].outputs();
  EXPECT_TRUE(compare("cpu", outputs, other.expected).passed());
  outputs = other.contenders[0].outputs();
  EXPECT_FALSE(compare("cpu", outputs, other.expected).passed()) << "two steps more";
}

TEST(GptLines, ABatchThatDoesNotFitIsHalved) {
  init();
  int tried = 0;
  const Contest contest = largest_contest(tiny(), [&](const GptSize& size) -> Contest {
    ++tried;
    if (size.batch > 1) fail("cuda:0: out of memory: asked for 1 bytes");
    return {};
  });
  EXPECT_EQ(tried, 3);
  EXPECT_EQ(contest.scale, 0.25);
  EXPECT_EQ(contest.note, "B = 1: memory holds no more");
  EXPECT_THROW(largest_contest(tiny(), [](const GptSize&) -> Contest { fail("another reason"); }),
               Error);
  EXPECT_EQ(largest_contest(tiny(), [](const GptSize&) { return Contest(); }).scale, 1);
}

// A second CPU in the place of a GPU.
TEST(GptLines, ThoseThatNeedAGpuAreCheckedOnIt) {
  register_backend(DeviceKind::opencl, {[] { return 1; }, [](int) { return make_cpu_backend(); }});
  if (std::ranges::count(available_devices(), Device("opencl:0")) == 0) {
    GTEST_SKIP() << "this build has an OpenCL backend, but this machine no such device";
  }
  const Setting setting{{Device(), Device("opencl:0")}, true};
  GptSize size = tiny(DType::bf16);
  size.name = "tiny on a GPU";
  size.needs_gpu = true;
  // Not all of them: a driver that compiles takes seconds for each.
  const std::vector<Case> layers = gpt_layer_cases(size);
  for (const Case& one : {gpt_iteration_case(size), named(layers, "tiny on a GPU bf16, qkv")}) {
    SCOPED_TRACE(one.name);
    const Line line = run_case(one, setting, quick_policy());
    EXPECT_TRUE(line.passed());
    EXPECT_EQ(line.find("cpu"), nullptr);
    EXPECT_NE(line.find("opencl:0"), nullptr);
  }
}

}  // namespace
}  // namespace tessera::bench
