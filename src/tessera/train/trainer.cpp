#include "tessera/train/trainer.h"

#include <algorithm>
#include <cmath>

#include "tessera/io/atomic_file.h"
#include "tessera/io/mapped_file.h"
#include "tessera/tensor/autograd.h"
#include "tessera/train/checkpoint.h"
#include "tessera/train/debug_nan.h"

namespace tessera {

namespace {

constexpr const char* kModel = "model.safetensors";
constexpr const char* kState = "state.safetensors";
constexpr const char* kAverages = "ema.safetensors";
constexpr const char* kTrainer = "trainer.json";

using Clock = std::chrono::steady_clock;

int64_t bytes_of(std::span<const NamedVar> vars) {
  int64_t bytes = 0;
  for (const auto& [name, var] : vars) bytes += byte_size({var.dtype(), var.shape()});
  return bytes;
}

void write_json(const std::filesystem::path& path, const Json& json) {
  const std::string text = json.dump(2) + "\n";
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

Json read_json(const std::filesystem::path& path) {
  const MappedFile file(path);
  return Json::parse({reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()},
                     path.native());
}

const TrainerOptions& checked(const TrainerOptions& o) {
  const auto expect = [](bool fine, std::string_view what, int64_t got) {
    if (!fine) fail("Trainer: expected ", what, ", got ", got);
  };
  expect(o.steps >= 0, "0 or more steps", o.steps);
  expect(o.accumulate >= 1, "at least 1 batch in a step", o.accumulate);
  expect(o.log_every >= 1, "to read losses every 1 or more steps", o.log_every);
  expect(o.eval_every == 0 || o.eval_batches >= 1, "at least 1 batch in an evaluation",
         o.eval_batches);
  expect(o.keep_last >= 1, "to keep at least 1 checkpoint", o.keep_last);
  for (const double limit : {o.clip, o.clip_value}) {
    if (!(limit >= 0)) fail("Trainer: expected to clip at 0 or above, got ", limit);
  }
  return o;
}

}  // namespace

Trainer::Trainer(const Module& model, Optimizer& optimizer, Loss loss, BatchSource& source,
                 TrainerOptions options)
    : model_(model),
      optimizer_(optimizer),
      loss_(loss),
      source_(source),
      options_(checked(options)),
      compiled_({.loss = loss,
                 .optimizer = optimizer,
                 .parameters = model.named_trainable(),
                 .accumulate = options.accumulate,
                 .clip = options.clip,
                 .clip_value = options.clip_value,
                 .loss_scaling = options.loss_scaling,
                 .ema = options.ema}) {
  if (options_.debug_nan && !optimizer.skips_nonfinite()) {
    fail(
        "Trainer: debug_nan expects an optimiser with skip_nonfinite, which leaves the parameters "
        "as they were");
  }
}

MemoryPlan Trainer::plan() {
  const Json here = source_.state();
  const std::vector<Tensor> batch = source_.next();
  source_.restore(here);
  MemoryPlan plan = compiled_.plan(batch);
  plan.parameters = bytes_of(model_vars());
  plan.optimizer = bytes_of(optimizer_.named_state());
  plan.averages = bytes_of(compiled_.state());
  return plan;
}

Trainer::End Trainer::run() {
  lr_ = optimizer_.lr().value().item();
  since_ = Clock::now();
  while (step_ < options_.steps) {
    take_step();
    after_step();
    if (stop != nullptr && stop->load()) break;
  }
  read_waiting();
  tell_waiting();
  save();
  return step_ < options_.steps ? End::stopped : End::finished;
}

// Reads nothing from the device.
double Trainer::next_lr() const {
  const double planned = schedule ? schedule(step_) : lr_;
  if (!plateau) return planned;
  return schedule ? std::min(planned, plateau->lr()) : plateau->lr();
}

void Trainer::take_step() {
  StepRecord record{.step = step_ + 1, .lr = next_lr()};
  if (plateau || schedule) optimizer_.set_lr(record.lr);
  std::vector<std::vector<Tensor>> batches;
  for (int64_t i = 0; i < options_.accumulate; ++i) batches.push_back(source_.next());
  double skipped = 0;
  std::vector<Tensor> before;  // of what the step draws random numbers by
  if (options_.debug_nan) {
    skipped = optimizer_.skipped().value().item();
    for (const auto& [name, var] : options_.state) before.push_back(var.value().detach());
  }
  waiting_.push_back({record, compiled_(batches)});
  ++step_;
  if (!options_.debug_nan) return;
  const bool was_taken = options_.loss_scaling || optimizer_.skipped().value().item() == skipped;
  if (was_taken && std::isfinite(waiting_.back().values[0].item())) return;
  for (size_t i = 0; i < before.size(); ++i) options_.state[i].var.assign(before[i]);
  flush();
  explain_nonfinite(batches);
}

void Trainer::explain_nonfinite(const std::vector<std::vector<Tensor>>& batches) {
  for (const std::vector<Tensor>& batch : batches) {
    std::vector<Tensor> roots = {loss_(batch)};
    backward(roots[0]);
    for (const Var& var : optimizer_.parameters()) {
      if (const Tensor grad = var.grad(); grad.defined()) roots.push_back(grad);
    }
    const std::optional<std::string> found = find_nonfinite(roots);
    optimizer_.clear_grads();
    if (found) fail("step ", step_, ": ", *found);
  }
  fail("step ", step_, ": the norm of the gradients is not finite, though all of them are");
}

void Trainer::after_step() {
  const bool evaluates = eval_source != nullptr && options_.eval_every > 0 &&
                         (is_due(options_.eval_every) || step_ == options_.steps);
  const bool saves = is_due(options_.save_every);
  if (!evaluates && !saves && !is_due(options_.log_every)) return;
  read_waiting();
  const bool is_best = evaluates && evaluate_now();
  tell_waiting();
  if (saves || is_best) save();
  since_ = Clock::now();
}

void Trainer::read_waiting() {
  for (Waiting& one : waiting_) {
    one.record.loss = one.values[0].item();
    one.record.grad_norm = one.values[1].item();
  }
  const double begin = seconds_;
  seconds_ += std::chrono::duration<double>(Clock::now() - since_).count();
  // The device worked through them without telling when: each gets its part.
  const double part = (seconds_ - begin) / double(std::max<size_t>(waiting_.size(), 1));
  for (size_t i = 0; i < waiting_.size(); ++i) {
    waiting_[i].record.seconds = begin + part * double(i + 1);
  }
  since_ = Clock::now();
}

void Trainer::tell_waiting() {
  std::vector<Waiting> told;
  told.swap(waiting_);
  for (const Waiting& one : told) {
    if (on_record) on_record(one.record);
  }
}

bool Trainer::evaluate_now() {
  const double loss = evaluate();
  waiting_.back().record.eval_loss = loss;
  if (plateau) (*plateau)(loss);
  if (best_loss_ && !(loss < *best_loss_)) return false;
  best_loss_ = loss;
  best_step_ = step_;
  return true;
}

double Trainer::evaluate() {
  if (eval_source == nullptr) fail("Trainer: expected a source of batches to evaluate, got none");
  if (!eval_start_) eval_start_ = eval_source->state();
  eval_source->restore(*eval_start_);
  Ema* const averages = compiled_.averages();
  if (averages != nullptr) averages->apply();
  std::vector<Tensor> losses;
  for (int64_t i = 0; i < options_.eval_batches; ++i) {
    losses.push_back(compiled_.evaluate(eval_source->next()));
  }
  double sum = 0;
  for (const Tensor& loss : losses) sum += loss.item();
  if (averages != nullptr) averages->restore();
  return sum / double(options_.eval_batches);
}

std::vector<NamedVar> Trainer::model_vars() const {
  std::vector<NamedVar> vars = model_.named_parameters();
  const std::vector<NamedVar> buffers = model_.named_buffers();
  vars.insert(vars.end(), buffers.begin(), buffers.end());
  return vars;
}

std::vector<NamedVar> Trainer::state_vars() const {
  std::vector<NamedVar> vars = compiled_.state();
  for (const auto& [name, var] : optimizer_.named_state())
    vars.push_back({"optimizer." + name, var});
  for (const auto& [name, var] : options_.state) vars.push_back({"other." + name, var});
  return vars;
}

Json Trainer::to_json() const {
  Json json = Json::object();
  json.set("step", step_).set("seconds", seconds_).set("data", source_.state());
  json.set("best_loss", best_loss_ ? Json(*best_loss_) : Json());
  json.set("best_step", best_step_ ? Json(*best_step_) : Json());
  if (!plateau) return json;
  const Plateau::State& state = plateau->state();
  // An infinite best is what a plateau begins with, and no number of JSON.
  const Json best = std::isfinite(state.best) ? Json(state.best) : Json();
  json.set("plateau", Json()
                          .set("lr", state.lr)
                          .set("best", best)
                          .set("bad", state.bad)
                          .set("cooldown", state.cooldown));
  return json;
}

void Trainer::save() {
  if (options_.folder.empty()) return;
  const auto write_model = [&](const std::filesystem::path& path) {
    save_model ? save_model(path) : save_vars(path, model_vars());
  };
  write_checkpoint(options_.folder, step_, [&](const std::filesystem::path& to) {
    write_model(to / kModel);
    save_vars(to / kState, state_vars());
    if (Ema* const averages = compiled_.averages()) {
      averages->apply();
      write_model(to / kAverages);
      averages->restore();
    }
    if (save_files) save_files(to);
    write_json(to / kTrainer, to_json());
  });
  prune_checkpoints(options_.folder, options_.keep_last, best_step_);
  if (on_save) on_save(step_, checkpoint_path(options_.folder, step_));
}

bool Trainer::resume() {
  remove_leftovers(options_.folder);
  const std::optional<int64_t> last = last_checkpoint(options_.folder);
  if (!last) return false;
  const std::filesystem::path from = checkpoint_path(options_.folder, *last);
  const Json json = read_json(from / kTrainer);
  load_model ? load_model(from / kModel) : load_vars(from / kModel, model_vars());
  load_vars(from / kState, state_vars());
  source_.restore(json.at("data"));
  step_ = json.get<int64_t>("step");
  seconds_ = json.get<double>("seconds");
  best_loss_.reset();
  best_step_.reset();
  if (!json["best_loss"].is_null()) best_loss_ = json.get<double>("best_loss");
  if (!json["best_step"].is_null()) best_step_ = json.get<int64_t>("best_step");
  if (plateau && json.find("plateau") != nullptr) {
    const Json& state = json.at("plateau");
    plateau->set_state({.lr = state.get<double>("lr"),
                        .best = state.get<double>("best", plateau->state().best),
                        .bad = state.get<int64_t>("bad"),
                        .cooldown = state.get<int64_t>("cooldown")});
  }
  return true;
}

}  // namespace tessera
