// tessera train: from a text to a model that writes.
#include <algorithm>
#include <atomic>
#include <csignal>
#include <memory>
#include <ostream>

#include "tessera/bench/device_guard.h"
#include "tessera/bench/format.h"
#include "tessera/cli/command.h"
#include "tessera/cli/lattice_words.h"
#include "tessera/cli/train_config.h"
#include "tessera/cli/train_data.h"
#include "tessera/cli/train_parts.h"
#include "tessera/cli/train_report.h"
#include "tessera/data/tokenizer_file.h"
#include "tessera/infer/generator.h"
#include "tessera/io/mapped_file.h"
#include "tessera/models/gpt.h"
#include "tessera/tensor/stats.h"
#include "tessera/train/checkpoint.h"
#include "tessera/train/event_file.h"
#include "tessera/train/trainer.h"

namespace tessera::cli {

namespace {

constexpr std::string_view kExamples[] = {
    "tessera train --data text.txt --out run --steps 20",
    "tessera train --resume --out run --steps 30 --json",
    "tessera train text.txt --out other --steps 10 --tokenizer bpe --vocab 300 --dtype bf16",
};

constexpr int64_t kLinesBetween = 10;  // progress lines of which one stays on the screen

std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal's handler sets it");

extern "C" void interrupt(int) {
  interrupted = true;
  std::signal(SIGINT, SIG_DFL);  // the second one ends the process
}

// Ctrl-C ends the run after the present step, while it lives.
class InterruptGuard {
 public:
  InterruptGuard() : before_((interrupted = false, std::signal(SIGINT, interrupt))) {}
  ~InterruptGuard() { std::signal(SIGINT, before_); }
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

 private:
  void (*before_)(int);
};

std::span<const Option> options() {
  static const std::vector<Option> table = [] {
    const std::span<const Option> config = train_config_options();
    std::vector<Option> all(config.begin(), config.end());
    all.push_back({"--resume", "", "go on from the last checkpoint in --out, with its options"});
    all.push_back({"--json", "", "the result as a JSON document"});
    return all;
  }();
  return table;
}

TrainConfig read_json_file(const std::string& path, TrainConfig config) {
  const MappedFile file(path);
  const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()),
                              file.bytes().size());
  read_config(Json::parse(text, path), path, config);
  return config;
}

// The run's own options where it is resumed, then a config.json, then flags.
TrainConfig configure(Arguments arguments) {
  TrainConfig config;
  const std::string out = arguments.value("--out", config.out);
  if (arguments.has("--resume")) {
    const std::string own = out + "/config.json";
    if (!std::filesystem::exists(own)) {
      throw UsageError(cat("train: expected a run to resume, got no '", own, "'"));
    }
    config = read_json_file(own, config);
  }
  if (!arguments.words.empty() && arguments.words[0].ends_with(".json")) {
    config = read_json_file(arguments.words[0], config);
    arguments.words.erase(arguments.words.begin());
  }
  read_flags(arguments, config);
  if (arguments.has("--resume")) config.out = out;
  check_owners(config);
  return config;
}

void save_config(const TrainConfig& config) {
  write_result(std::filesystem::path(config.out) / "config.json", to_json(config).dump(2) + "\n");
}

GptConfig model_config(const TrainConfig& config, const TrainData& data) {
  GptConfig model = gpt_preset(config.model);
  const auto take = [](int64_t given, int64_t& to) {
    if (given > 0) to = given;
  };
  take(config.layers, model.layers);
  take(config.heads, model.heads);
  take(config.width, model.width);
  take(config.context, model.context);
  if (config.dropout >= 0) model.dropout = config.dropout;
  model.vocabulary = data.vocabulary;
  model.end_token = data.end_token;
  return model;
}

// Everything that a run consists of, in the order in which it depends on each other.
class Run {
 public:
  Run(const TrainConfig& config, bool resumes, Console& console, bool quiet)
      : config_(config),
        folder_(config.out),
        guard_(config.device.empty() ? default_device() : Device(config.device)),
        console_(console),
        quiet_(quiet),
        progress_(console),
        data_(open_train_data(config, folder_, resumes)),
        random_(config.seed),
        model_(model_config(config, data_), random_),
        optimizer_(make_optimizer(config, typed_parameters())),
        source_(data_.training, loader_options(0)),
        trainer_(
            model_, *optimizer_,
            [this](std::span<const Tensor> batch) { return model_.loss(batch[0], batch[1]); },
            source_, trainer_options()) {
    if (config.held_out > 0 && config.eval_every > 0) {
      held_out_ = std::make_unique<TokenSource>(data_.held_out, loader_options(1));
      trainer_.eval_source = held_out_.get();
    }
    trainer_.schedule = make_schedule(config);
    trainer_.plateau = make_plateau(config);
    trainer_.stop = &interrupted;
    trainer_.on_record = [this](const StepRecord& record) { show(record); };
    trainer_.save_model = [this](const std::filesystem::path& path) {
      save_safetensors(path, to_pretrained(model_), {{"format", "pt"}});
    };
    trainer_.load_model = [this](const std::filesystem::path& path) {
      load_pretrained(model_, load_safetensors(path), path.native());
    };
    trainer_.save_files = [this](const std::filesystem::path& to) {
      write_result(to / "config.json", to_json(model_.config()).dump(2) + "\n");
      if (data_.tokenizer) save_tokenizer(to / "tokenizer.json", *data_.tokenizer);
    };
  }

  Trainer::End run(bool resumes) {
    if (resumes) trainer_.resume();
    save_config(config_);
    last_shown_.step = trainer_.step();
    last_shown_.seconds = trainer_.seconds();
    csv_ = std::make_unique<CsvLog>(folder_ / "log.csv", trainer_.step());
    events_ = std::make_unique<EventFile>(folder_, trainer_.step());
    choose_checkpointing();
    rates_ = {.steps = config_.steps,
              .tokens_per_step = double(config_.batch * config_.accumulate * context()),
              .flops_per_token = training_flops(model_.config()),
              .peak = config_.peak_tflops * 1e12};
    if (rates_.peak <= 0) rates_.peak = measured_peak(default_device(), dtype());
    if (!quiet_) console_.out << head_text();
    const InterruptGuard guard;
    const Trainer::End end = trainer_.run();
    progress_.clear();
    const std::vector<StepRecord> records = read_csv_log(folder_ / "log.csv");
    write_result(folder_ / "loss.html", loss_page(records, folder_.native()));
    return end;
  }

  std::string text(Trainer::End end) const {
    const std::filesystem::path saved = checkpoint_path(folder_, trainer_.step());
    std::string text = cat(end == Trainer::End::stopped ? "stopped" : "done", ": ", saved.native());
    if (const auto best = trainer_.best_step()) {
      text +=
          cat(", best held-out loss ", bench::fixed(*trainer_.best_loss(), 4), " at step ", *best);
    }
    if (const int64_t steps = skipped(); steps > 0) text += cat(", ", steps, " steps skipped");
    return cat(text, ", ", bench::time_text(trainer_.seconds()), " of training\n");
  }

  // What the model writes; empty without a tokenizer, or where none is asked for.
  std::string sample() const {
    if (config_.sample == 0 || !data_.tokenizer) return "";
    Generator generator(model_, data_.tokenizer->size());
    GenerateOptions options{.tokens = config_.sample, .sampling = {.temperature = 0.8}};
    options.sampling.seed = config_.seed;
    return data_.tokenizer->decode(generator.generate({{first_token()}}, options)[0]);
  }

  std::string json(Trainer::End end) const {
    const auto number = [](const auto& x) { return x ? Json(*x) : Json(); };
    return Json()
               .set("finished", end == Trainer::End::finished)
               .set("checkpoint", checkpoint_path(folder_, trainer_.step()).native())
               .set("step", trainer_.step())
               .set("loss", last_shown_.loss)
               .set("best_loss", number(trainer_.best_loss()))
               .set("best_step", number(trainer_.best_step()))
               .set("seconds", trainer_.seconds())
               .set("skipped_steps", skipped())
               .set("parameters", model_.parameter_count())
               .set("checkpointing", checkpointing_)
               .set("planned_bytes", plan_.total())
               .dump(2) +
           "\n";
  }

 private:
  DType dtype() const { return *dtype_from_name(config_.dtype); }
  int64_t context() const { return model_.config().context; }
  int64_t skipped() const { return int64_t(optimizer_->skipped().value().item()); }

  // The optimiser's state goes by their type.
  Parameters typed_parameters() const {
    model_.to(dtype());
    return model_.named_trainable();
  }

  // A new line, where it is a token: what begins one follows.
  int32_t first_token() const {
    const std::vector<std::string>& tokens = data_.tokenizer->table().tokens;
    const auto line = std::ranges::find(tokens, "\n");
    if (data_.end_token) return int32_t(*data_.end_token);
    return line == tokens.end() ? 0 : int32_t(line - tokens.begin());
  }

  LoaderOptions loader_options(int64_t stream) const {
    return {.batch = config_.batch, .length = context(), .seed = 2 * config_.seed + stream};
  }

  TrainerOptions trainer_options() const {
    return {.steps = config_.steps,
            .accumulate = config_.accumulate,
            .clip = config_.clip,
            .clip_value = config_.clip_value,
            .loss_scaling = scales_loss(config_),
            .ema = config_.ema,
            .log_every = config_.log_every,
            .eval_every = config_.eval_every,
            .eval_batches = config_.eval_batches,
            .save_every = config_.save_every,
            .folder = folder_,
            .keep_last = config_.keep,
            .debug_nan = config_.debug_nan,
            .state = {{"random.key", random_.key()}, {"random.counter", random_.counter()}}};
  }

  // Plans a step; with a limit, the first way of checkpointing that stays below it.
  void choose_checkpointing() {
    const bool any = config_.checkpointing == "auto";
    const std::string wanted = any ? "none" : config_.checkpointing;
    const auto plan = [&](const std::string& name) {
      checkpointing_ = name;
      model_.set_checkpointing(parse_checkpointing(name));
      plan_ = trainer_.plan();
    };
    plan(wanted);
    if (config_.memory.empty()) return;
    const int64_t most = memory_size("train", config_.memory);
    for (const char* name : {"selective", "block"}) {
      if (any && plan_.total() > most) plan(name);
    }
    if (plan_.total() <= most) return;
    fail("train: a step needs ", size_text(plan_.total()), " with --checkpointing ", checkpointing_,
         ", --memory allows ", size_text(most), "\n", memory_table(plan_));
  }

  std::string head_text() const {
    const GptConfig& c = model_.config();
    return cat("model   ", bench::three_digits(double(model_.parameter_count()) * 1e-6),
               " M parameters: ", c.layers, " layers of width ", c.width, ", ", c.heads,
               " heads, context ", c.context, ", vocabulary ", c.vocabulary, ", ", config_.dtype,
               " on ", default_device(), "\ndata    ", data_.training.size(), " tokens, ",
               data_.held_out.size(), " held out\nstep    ", config_.batch, " x ",
               config_.accumulate, " sequences, ", int64_t(rates_.tokens_per_step),
               " tokens, checkpointing ", checkpointing_, "\n", memory_table(plan_), "share of ",
               bench::rate_text(rates_.peak / 1e9, "GFLOP/s"),
               config_.peak_tflops > 0 ? "" : " as measured",
               ", by 6N + 6LCT = ", bench::three_digits(rates_.flops_per_token * 1e-6),
               " MFLOP a token\n");
  }

  void show(const StepRecord& record) {
    csv_->add(record);
    events_->add("loss/training", record.step, record.loss);
    events_->add("lr", record.step, record.lr);
    events_->add("grad_norm", record.step, record.grad_norm);
    if (record.eval_loss) events_->add("loss/held_out", record.step, *record.eval_loss);
    const bool last = record.step == config_.steps;
    if (record.step % config_.log_every != 0 && !record.eval_loss && !last) return;
    const MemoryStats memory = memory_stats(default_device());
    const std::string line =
        progress_line(record, last_shown_, rates_, memory.in_use + memory.cached + memory.arena);
    last_shown_ = record;
    progress_.show(line);
    const bool stays = record.eval_loss || last || lines_++ % kLinesBetween == 0;
    if (!stays || quiet_) return;
    progress_.clear();
    console_.out << line << std::endl;
  }

  const TrainConfig config_;
  const std::filesystem::path folder_;
  const bench::DeviceGuard guard_;
  Console& console_;
  const bool quiet_;
  Progress progress_;
  const TrainData data_;
  const Random random_;
  Gpt model_;
  std::unique_ptr<Optimizer> optimizer_;
  TokenSource source_;
  std::unique_ptr<TokenSource> held_out_;
  Trainer trainer_;
  std::unique_ptr<CsvLog> csv_;
  std::unique_ptr<EventFile> events_;
  std::string checkpointing_;
  MemoryPlan plan_;
  Rates rates_;
  StepRecord last_shown_;
  int64_t lines_ = 0;
};

Status run_train(const Arguments& arguments, Console& console) {
  const TrainConfig config = configure(arguments);
  const bool resumes = arguments.has("--resume"), json = arguments.has("--json");
  if (!resumes && last_checkpoint(config.out)) {
    throw UsageError(cat("train: '", config.out, "' holds a run: --resume goes on with it, ",
                         "--out names another folder"));
  }
  std::filesystem::create_directories(config.out);
  if (!resumes) save_config(config);  // so that it can be resumed from now on
  Run run(config, resumes, console, json);
  const Trainer::End end = run.run(resumes);
  console.out << (json ? run.json(end) : run.text(end));
  if (const std::string text = json ? "" : run.sample(); !text.empty()) {
    console.out << "\n" << text << "\n";
  }
  return Status::done;
}

}  // namespace

const Command kTrain = {"train",
                        "train a GPT on text, or go on with a run",
                        "[CONFIG.json] [FILE...]",
                        options(),
                        kExamples,
                        nullptr,
                        run_train};

}  // namespace tessera::cli
