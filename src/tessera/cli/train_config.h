// The options of `tessera train`: one table from which the flags, their help and the keys of
// config.json follow. A flag --eval-every is the key "eval_every".
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/cli/options.h"
#include "tessera/io/json.h"

namespace tessera::cli {

struct TrainConfig {
  std::vector<std::string> data;
  std::string out = "run";
  std::string tokenizer = "char";
  int64_t vocab = 0;
  double held_out = 0.1;

  std::string model = "nano";
  int64_t layers = 0, heads = 0, width = 0, context = 0;  // 0: the preset's
  double dropout = -1;                                    // below 0: the preset's

  int64_t steps = 500, batch = 16, accumulate = 1;
  double lr = 1e-3, min_lr = 1e-4;
  int64_t warmup = -1;  // below 0: the schedule's
  std::string schedule = "cosine";
  int64_t lr_every = 100;
  double lr_factor = -1;  // below 0: the schedule's
  int64_t patience = 10, cooldown = 0;
  double threshold = 1e-4;
  double rise = 0.3, start_divisor = 25, end_divisor = 1e4;

  std::string optimizer = "adamw";
  double weight_decay = -1;  // below 0: the optimiser's
  double beta1 = 0.9, beta2 = 0.99, epsilon = 1e-8;
  double momentum = 0, dampening = 0, alpha = 0.99;
  bool nesterov = false, centered = false;
  double clip = 1, clip_value = 0, ema = 0;
  int64_t seed = 1;

  int64_t log_every = 10, eval_every = 100, eval_batches = 10, save_every = 0, keep = 2;
  int64_t sample = 200;

  std::string device, dtype = "f32";  // an empty device: the default one
  std::string checkpointing = "auto", memory;
  double peak_tflops = 0;  // 0: measured
  bool debug_nan = false;

  bool operator==(const TrainConfig&) const = default;
};

// Options of the command, for its table: those of the configuration, with their defaults.
std::span<const Option> train_config_options();

// Sets what a JSON object says; `name` stands for it in errors. Throws UsageError for a key that
// there is none of, with the nearest, and for a value of another type or outside its range.
void read_config(const Json& json, std::string_view name, TrainConfig& config);

// Sets what the command line says; words behind the configuration are further files of data.
void read_flags(const Arguments& arguments, TrainConfig& config);

// Throws UsageError where an option has another value than its default, though it belongs to
// another optimiser or schedule than the chosen one.
void check_owners(const TrainConfig& config);

Json to_json(const TrainConfig& config);

}  // namespace tessera::cli
