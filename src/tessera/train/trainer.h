// Trainer: steps of an optimiser over batches, with evaluations, logs and checkpoints.
//
//   Trainer trainer(model, optimizer, [&](std::span<const Tensor> batch) {
//     return cross_entropy(model(batch[0]), batch[1]);
//   }, source, {.steps = 1000, .clip = 1, .save_every = 100, .folder = "run"});
//   trainer.schedule = warmup_cosine({.peak = 3e-4, .warmup = 100, .total = 1000});
//   trainer.resume();  // from the last checkpoint of the folder, where there is one
//   trainer.run();
//
// A step is compiled once and reads nothing back: losses and norms are read together, every
// `log_every` steps. A run that is resumed takes the same steps, bit for bit, as one that was never
// interrupted: on one device, with the same batch size, data and options.
//
// A checkpoint (train/checkpoint.h) holds
//   model.safetensors   parameters and buffers
//   state.safetensors   the optimiser's state, averages, loss scale, random counters
//   ema.safetensors     the averaged parameters by the names of the model, where there are any
//   trainer.json        step, place in the data, best loss, time, plateau
// and what `save_files` adds.
#pragma once

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tessera/nn/module.h"
#include "tessera/optim/optim.h"
#include "tessera/train/batch_source.h"
#include "tessera/train/record.h"
#include "tessera/train/steps.h"

namespace tessera {

struct TrainerOptions {
  int64_t steps = 1000;       // in all, those before a resumption included
  int64_t accumulate = 1;     // batches of a step
  double clip = 0;            // most that the norm of all gradients may be; 0: any
  double clip_value = 0;      // most that an element of them may be, behind the above; 0: any
  bool loss_scaling = false;  // for f16; REQUIRES an optimiser that skips what is not finite
  double ema = 0;             // decay of averages of the parameters; 0: none are kept
  int64_t log_every = 10;     // steps between reads of what they gave
  int64_t eval_every = 0;     // steps; 0: never
  int64_t eval_batches = 16;  // of an evaluation, always the same ones
  int64_t save_every = 0;     // steps; 0: only when run() ends
  std::filesystem::path folder = {};  // for checkpoints; empty: none are written
  int64_t keep_last = 2;              // checkpoints, beside the best one
  // Stop at the first step that is not finite, and name what made it so. With loss scaling, which
  // meets such gradients now and then, at the first loss.
  bool debug_nan = false;
  std::vector<NamedVar> state = {};  // further Vars of a checkpoint: keys and counters of Randoms
};

class Trainer {
 public:
  using Loss = std::function<Tensor(std::span<const Tensor> batch)>;  // 0-d
  enum class End { finished, stopped };

  // All are kept by reference.
  Trainer(const Module& model, Optimizer& optimizer, Loss loss, BatchSource& source,
          TrainerOptions options);

  // Set these before run(), where they are wanted.
  Schedule schedule;               // none: the optimiser's rate as it is
  std::optional<Plateau> plateau;  // sees the losses of evaluations; the lower of both rates counts
  BatchSource* eval_source = nullptr;
  std::function<void(const StepRecord&)> on_record;  // every step, in order, some steps late
  std::function<void(int64_t step, const std::filesystem::path&)> on_save;
  std::function<void(const std::filesystem::path&)> save_files;  // more of a checkpoint's folder
  // The model as a file in another form than its own names and shapes; loading must give the bits
  // that were saved. Both or none.
  std::function<void(const std::filesystem::path&)> save_model, load_model;
  const std::atomic<bool>* stop = nullptr;  // true: end after the present step

  // What a step will need, without taking one.
  MemoryPlan plan();

  // From step() to options.steps, then saves. Stopped, it saves as well.
  End run();

  // Goes on from the last checkpoint of the folder; false where there is none.
  bool resume();

  // The mean loss over the evaluation's batches, of the averages where they are kept.
  double evaluate();

  void save();

  int64_t step() const { return step_; }  // taken so far
  double seconds() const { return seconds_; }
  std::optional<double> best_loss() const { return best_loss_; }
  std::optional<int64_t> best_step() const { return best_step_; }

 private:
  struct Waiting {
    StepRecord record;
    std::vector<Tensor> values;  // loss and norm, 0-d
  };

  double next_lr() const;
  void take_step();
  void read_waiting();  // waits for the device
  void tell_waiting();
  bool is_due(int64_t every) const { return every > 0 && step_ % every == 0; }
  void after_step();
  bool evaluate_now();  // whether it is the best so far
  [[noreturn]] void explain_nonfinite(const std::vector<std::vector<Tensor>>& batches);
  std::vector<NamedVar> state_vars() const;
  std::vector<NamedVar> model_vars() const;
  Json to_json() const;

  const Module& model_;
  Optimizer& optimizer_;
  Loss loss_;
  BatchSource& source_;
  TrainerOptions options_;
  CompiledSteps compiled_;
  std::optional<Json> eval_start_;

  int64_t step_ = 0;
  double lr_ = 0;       // where neither schedule nor plateau sets it
  double seconds_ = 0;  // until `since_`
  std::chrono::steady_clock::time_point since_;
  std::optional<double> best_loss_;
  std::optional<int64_t> best_step_;
  std::vector<Waiting> waiting_;
};

}  // namespace tessera
