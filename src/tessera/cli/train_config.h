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
  int64_t warmup = 20;
  std::string schedule = "cosine";
  double weight_decay = 0.1, beta1 = 0.9, beta2 = 0.99, clip = 1, ema = 0;
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

Json to_json(const TrainConfig& config);

}  // namespace tessera::cli
