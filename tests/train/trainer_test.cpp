// Steps, evaluations, checkpoints and their resumption.
#include "tessera/train/trainer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "io/file_size_limit.h"
#include "io/temp_folder.h"
#include "support/expect_error.h"
#include "tessera/tensor/autograd.h"
#include "tessera/tensor/stats.h"
#include "tessera/train/checkpoint.h"
#include "train/problem.h"

namespace tessera::train_test {
namespace {

using Losses = std::vector<double>;

Losses losses_of(const std::vector<StepRecord>& records) {
  Losses losses;
  for (const StepRecord& record : records) losses.push_back(record.loss);
  return losses;
}

std::vector<float> parameters_of(const Model& model) {
  std::vector<float> all;
  for (const Var& var : model.parameters()) {
    const auto some = var.value().to(DType::f32).to_vector<float>();
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

// What a Trainer does, written down as a loop.
TEST(Trainer, TakesTheStepsOfAPlainLoop) {
  Problem problem({.trainer = {.steps = 12, .clip = 0.5, .log_every = 5}});
  EXPECT_EQ(problem.trainer.run(), Trainer::End::finished);
  Problem plain({});
  Losses losses;
  for (int64_t k = 0; k < 12; ++k) {
    plain.optimizer.set_lr(plain.trainer.schedule(k));
    const Tensor loss = plain.model.loss(plain.source.next());
    backward(loss);
    clip_grad_norm(plain.optimizer.parameters(), 0.5);
    plain.optimizer.step();
    losses.push_back(loss.item());
  }
  ASSERT_EQ(problem.records.size(), 12u);
  for (size_t i = 0; i < 12; ++i) {
    EXPECT_NEAR(problem.records[i].loss, losses[i], 1e-5);
    EXPECT_EQ(problem.records[i].step, int64_t(i) + 1);
    EXPECT_DOUBLE_EQ(problem.records[i].lr, plain.trainer.schedule(int64_t(i)));
    EXPECT_GT(problem.records[i].grad_norm, 0);
  }
  EXPECT_LT(losses.back(), losses.front());
}

// Two batches of a step weigh as one of twice the size.
TEST(Trainer, AccumulatesTheMeanOverBatches) {
  Problem problem({.trainer = {.steps = 4, .accumulate = 3, .clip = 1}});
  problem.model.dropout.set_training(false);
  problem.trainer.run();
  Problem plain({});
  plain.model.dropout.set_training(false);
  for (int64_t k = 0; k < 4; ++k) {
    plain.optimizer.set_lr(plain.trainer.schedule(k));
    Tensor loss;
    for (int i = 0; i < 3; ++i) {
      const Tensor one = plain.model.loss(plain.source.next()) / 3;
      loss = i == 0 ? one : loss + one;
    }
    backward(loss);
    clip_grad_norm(plain.optimizer.parameters(), 1);
    plain.optimizer.step();
    EXPECT_NEAR(problem.records[size_t(k)].loss, loss.item(), 1e-5);
  }
}

TEST(Trainer, ClipsTheNormThenElements) {
  for (const double norm : {0.0, 0.5}) {
    Problem problem({.trainer = {.steps = 6, .clip = norm, .clip_value = 0.02}});
    problem.trainer.run();
    Problem plain({});
    for (int64_t k = 0; k < 6; ++k) {
      plain.optimizer.set_lr(plain.trainer.schedule(k));
      const Tensor loss = plain.model.loss(plain.source.next());
      backward(loss);
      const std::vector<Var>& vars = plain.optimizer.parameters();
      const Tensor before = norm > 0 ? clip_grad_norm(vars, norm) : grad_norm(vars);
      clip_grad_value(vars, 0.02);
      plain.optimizer.step();
      EXPECT_NEAR(problem.records[size_t(k)].loss, loss.item(), 1e-5);
      EXPECT_NEAR(problem.records[size_t(k)].grad_norm, before.item(), 1e-5);
    }
  }
}

// An infinite element is not cut to the limit.
TEST(Trainer, SkipsWhatIsInfiniteBeforeElementsAreCut) {
  Problem problem({.trainer = {.steps = 1, .clip_value = 0.02}, .skip_nonfinite = true});
  problem.model.head.parameters()[0].set(1e38);
  const std::vector<float> before = parameters_of(problem.model);
  problem.trainer.run();
  EXPECT_EQ(problem.optimizer.skipped().value().item(), 1);
  EXPECT_EQ(parameters_of(problem.model), before);
}

TEST(Trainer, TakesTheLowerRateOfScheduleAndPlateau) {
  Problem problem({.trainer = {.steps = 6}});
  problem.trainer.schedule = warmup(4, constant_lr(0.01));
  problem.trainer.plateau = Plateau({.lr = 0.006});
  problem.trainer.run();
  const double rates[] = {0.0025, 0.005, 0.006, 0.006, 0.006, 0.006};
  for (size_t i = 0; i < 6; ++i) EXPECT_DOUBLE_EQ(problem.records[i].lr, rates[i]);
  Problem alone({.trainer = {.steps = 1}});
  alone.trainer.schedule = nullptr;
  alone.trainer.plateau = Plateau({.lr = 0.02});
  alone.trainer.run();
  EXPECT_EQ(alone.records[0].lr, 0.02);
}

TEST(Trainer, CompilesAStepOnce) {
  for (const int64_t accumulate : {1, 3}) {
    Problem problem({.trainer = {.steps = 20, .accumulate = accumulate, .clip = 1, .ema = 0.9}});
    const EvalStats before = eval_stats();
    problem.trainer.plan();
    problem.trainer.run();
    EXPECT_LE(eval_stats().compilations - before.compilations, accumulate == 1 ? 1 : 2);
  }
}

TEST(Trainer, PlansBeforeTheFirstStep) {
  Problem problem({.trainer = {.steps = 2}});
  const Json before = problem.source.state();
  const MemoryPlan plan = problem.trainer.plan();
  EXPECT_EQ(problem.source.state(), before);
  const int64_t elements = kLetters * kWidth + kWidth * kLetters + kLetters;
  EXPECT_EQ(plan.parameters, 4 * elements);
  EXPECT_EQ(plan.optimizer, 8 * elements + 3 * 8);  // two moments; rate, steps, skipped
  EXPECT_EQ(plan.sums, 0);
  EXPECT_EQ(plan.averages, 0);
  EXPECT_GE(plan.batches, 2 * 4 * kBatch * kLength);
  EXPECT_GT(plan.temporaries, 0);
  EXPECT_FALSE(plan.peak_by_scope.empty());
  EXPECT_EQ(plan.total(), plan.parameters + plan.optimizer + plan.batches + plan.temporaries);
  Problem more({.trainer = {.accumulate = 2, .ema = 0.9}});
  const MemoryPlan other = more.trainer.plan();
  EXPECT_EQ(other.sums, 4 * elements);
  EXPECT_EQ(other.averages, 4 * elements);
}

struct Resumed {
  const char* name;
  TrainerOptions options;
  DType dtype = DType::f32;
  bool skip_nonfinite = false;
  bool plateau = false;
};
void PrintTo(const Resumed& resumed, std::ostream* out) { *out << resumed.name; }

class ExactResume : public testing::TestWithParam<Resumed> {
 protected:
  std::unique_ptr<Problem> make(TrainerOptions options, const std::filesystem::path& folder) const {
    options.folder = folder;
    auto problem = std::make_unique<Problem>(
        ProblemOptions{options, GetParam().dtype, GetParam().skip_nonfinite});
    if (GetParam().plateau) {
      problem->trainer.plateau = Plateau({.lr = 3e-2, .factor = 0.5, .patience = 0});
    }
    return problem;
  }
};

// clang-format off
INSTANTIATE_TEST_SUITE_P(Runs, ExactResume, testing::Values(
    Resumed{"plain", {}},
    Resumed{"clipped_and_averaged", {.clip = 0.5, .ema = 0.9}},
    Resumed{"accumulated", {.accumulate = 3, .clip = 1}},
    Resumed{"bf16", {.clip = 1}, DType::bf16},
    Resumed{"clipped_by_value", {.clip_value = 0.01}},
    Resumed{"scaled", {.loss_scaling = true}, DType::f32, true},
    Resumed{"f16", {.accumulate = 2, .loss_scaling = true}, DType::f16, true},
    Resumed{"plateau", {.eval_every = 2, .eval_batches = 2}, DType::f32, false, true}),
    [](const auto& test) { return std::string(test.param.name); });
// clang-format on

constexpr int64_t kSteps = 12;

TEST_P(ExactResume, AtAnyStepGivesTheSameLosses) {
  TrainerOptions options = GetParam().options;
  options.steps = kSteps;
  options.log_every = 4;
  const TempFolder whole_folder;
  const auto whole = make(options, whole_folder.path());
  whole->trainer.run();
  for (const int64_t at : {1, 2, 5, 8, 11}) {
    // The end of a run evaluates, which the whole one does not at every step.
    if (options.eval_every > 0 && at % options.eval_every != 0) continue;
    const TempFolder folder;
    TrainerOptions first = options;
    first.steps = at;
    const auto begun = make(first, folder.path());
    begun->trainer.run();
    const auto resumed = make(options, folder.path());
    ASSERT_TRUE(resumed->trainer.resume());
    EXPECT_EQ(resumed->trainer.step(), at);
    resumed->trainer.run();
    Losses losses = losses_of(begun->records);
    const Losses rest = losses_of(resumed->records);
    losses.insert(losses.end(), rest.begin(), rest.end());
    EXPECT_EQ(losses, losses_of(whole->records)) << "resumed at " << at;
    EXPECT_EQ(parameters_of(resumed->model), parameters_of(whole->model));
    EXPECT_EQ(resumed->random.counter().value().item(), whole->random.counter().value().item());
  }
}

// A step that is interrupted is finished and saved.
TEST(Trainer, StopsBehindTheStepAndSaves) {
  const TempFolder folder;
  std::atomic<bool> stop{false};
  const TrainerOptions options = {.steps = 20, .log_every = 1, .folder = folder.path()};
  Problem stopped({.trainer = options});
  stopped.trainer.stop = &stop;
  stopped.trainer.on_record = [&](const StepRecord& record) {
    stopped.records.push_back(record);
    stop = record.step == 7;
  };
  EXPECT_EQ(stopped.trainer.run(), Trainer::End::stopped);
  EXPECT_EQ(stopped.trainer.step(), 7);
  EXPECT_EQ(last_checkpoint(folder.path()), 7);
  Problem resumed({.trainer = options});
  ASSERT_TRUE(resumed.trainer.resume());
  EXPECT_EQ(resumed.trainer.run(), Trainer::End::finished);
  Problem whole({.trainer = {.steps = 20}});
  whole.trainer.run();
  Losses losses = losses_of(stopped.records);
  for (const StepRecord& record : resumed.records) losses.push_back(record.loss);
  EXPECT_EQ(losses, losses_of(whole.records));
}

TEST(Trainer, EvaluatesTheSameBatchesAndKeepsTheBest) {
  const TempFolder folder;
  Problem problem({.trainer = {.steps = 10,
                               .eval_every = 4,
                               .eval_batches = 3,
                               .save_every = 3,
                               .folder = folder.path(),
                               .keep_last = 2}});
  std::vector<int64_t> saved;
  problem.trainer.on_save = [&](int64_t step, const std::filesystem::path& path) {
    EXPECT_TRUE(std::filesystem::exists(path / "trainer.json"));
    saved.push_back(step);
  };
  problem.trainer.run();
  EXPECT_EQ(problem.trainer.evaluate(), problem.trainer.evaluate());
  double best = INFINITY;
  for (const StepRecord& record : problem.records) {
    EXPECT_EQ(record.eval_loss.has_value(), record.step % 4 == 0 || record.step == 10);
    if (record.eval_loss) best = std::min(best, *record.eval_loss);
  }
  EXPECT_EQ(problem.trainer.best_loss(), best);
  const std::vector<int64_t> kept = list_checkpoints(folder.path());
  EXPECT_EQ(kept.back(), 10);
  EXPECT_NE(std::ranges::find(kept, *problem.trainer.best_step()), kept.end());
  EXPECT_LE(kept.size(), 3u);
  for (const int64_t step : {3, 6, 9}) {
    EXPECT_NE(std::ranges::find(saved, step), saved.end());
  }
}

TEST(Trainer, EvaluatesAveragesAndLeavesParametersAlone) {
  const TempFolder folder;
  Problem problem(
      {.trainer = {.steps = 6, .ema = 0.5, .eval_batches = 2, .folder = folder.path()}});
  problem.trainer.run();
  const std::vector<float> before = parameters_of(problem.model);
  const double averaged = problem.trainer.evaluate();
  EXPECT_EQ(parameters_of(problem.model), before);
  load_vars(checkpoint_path(folder.path(), 6) / "ema.safetensors",
            problem.model.named_parameters());
  EXPECT_NE(parameters_of(problem.model), before);
  Problem plain({.trainer = {.eval_batches = 2}});
  load_vars(checkpoint_path(folder.path(), 6) / "ema.safetensors", plain.model.named_parameters());
  EXPECT_NEAR(plain.trainer.evaluate(), averaged, 1e-6);
}

TEST(Trainer, KeepsWhatItHasOnAFullDisk) {
  const TempFolder folder;
  const TrainerOptions options = {.steps = 8, .save_every = 4, .folder = folder.path()};
  Problem problem({.trainer = options});
  std::string text;
  {
    std::unique_ptr<FileSizeLimit> full;
    problem.trainer.on_save = [&](int64_t, const auto&) {
      full = std::make_unique<FileSizeLimit>(500);
    };
    text = error_text([&] { problem.trainer.run(); });
  }
  EXPECT_TRUE(text.ends_with("File too large")) << text;
  EXPECT_EQ(folder.files(), 1u);
  Problem resumed({.trainer = options});
  ASSERT_TRUE(resumed.trainer.resume());
  EXPECT_EQ(resumed.trainer.step(), 4);
  resumed.trainer.run();
  Problem whole({.trainer = {.steps = 8}});
  whole.trainer.run();
  EXPECT_EQ(parameters_of(resumed.model), parameters_of(whole.model));
}

TEST(Trainer, WithoutACheckpointBeginsAtTheBeginning) {
  const TempFolder folder;
  Problem problem({.trainer = {.folder = folder / "absent"}});
  EXPECT_FALSE(problem.trainer.resume());
  EXPECT_EQ(problem.trainer.step(), 0);
}

TEST(Trainer, KeepsItsRateWithoutASchedule) {
  Problem problem({.trainer = {.steps = 2}});
  problem.trainer.schedule = nullptr;
  problem.trainer.run();
  EXPECT_EQ(problem.records[1].lr, 1e-2);
}

TEST(TrainerErrors, NameTheOption) {
  const auto text = [](const TrainerOptions& options) {
    return error_text([&] { Problem problem({.trainer = options}); });
  };
  EXPECT_EQ(text({.steps = -1}), "Trainer: expected 0 or more steps, got -1");
  EXPECT_EQ(text({.accumulate = 0}), "Trainer: expected at least 1 batch in a step, got 0");
  EXPECT_EQ(text({.log_every = 0}),
            "Trainer: expected to read losses every 1 or more steps, got 0");
  EXPECT_EQ(text({.eval_every = 1, .eval_batches = 0}),
            "Trainer: expected at least 1 batch in an evaluation, got 0");
  EXPECT_EQ(text({.keep_last = 0}), "Trainer: expected to keep at least 1 checkpoint, got 0");
  EXPECT_EQ(text({.clip = -1}), "Trainer: expected to clip at 0 or above, got -1");
  EXPECT_EQ(text({.clip_value = -2}), "Trainer: expected to clip at 0 or above, got -2");
  EXPECT_EQ(text({.debug_nan = true}),
            "Trainer: debug_nan expects an optimiser with skip_nonfinite, which leaves the "
            "parameters as they were");
  Problem problem({});
  problem.trainer.eval_source = nullptr;
  EXPECT_EQ(error_text([&] { problem.trainer.evaluate(); }),
            "Trainer: expected a source of batches to evaluate, got none");
}

// Another model's checkpoint is refused before anything is changed.
TEST(TrainerErrors, NameWhatDoesNotBelong) {
  const TempFolder folder;
  Problem problem({.trainer = {.steps = 1, .folder = folder.path()}});
  problem.trainer.run();
  Problem other({.trainer = {.steps = 1, .ema = 0.5, .folder = folder.path()}});
  const std::string text = error_text([&] { other.trainer.resume(); });
  EXPECT_TRUE(text.find("state.safetensors belongs to something else; it has no 'ema.") !=
              std::string::npos)
      << text;
}

}  // namespace
}  // namespace tessera::train_test
