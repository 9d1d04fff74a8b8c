#include "tessera/cli/train_config.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <variant>

#include "tessera/cli/suggest.h"

namespace tessera::cli {

namespace {

using Member = std::variant<bool TrainConfig::*, int64_t TrainConfig::*, double TrainConfig::*,
                            std::string TrainConfig::*, std::vector<std::string> TrainConfig::*>;

// The value of another option for which alone an option is there.
struct Owner {
  std::string TrainConfig::*choice = nullptr;  // null: it always is
  std::string_view words = "";                 // "sgd|rmsprop"
};

struct Field {
  std::string_view name, value;  // as in Option, the name without dashes
  Member member;
  std::string_view help;
  double least = 0, most = 1e15;    // of numbers
  std::string_view otherwise = "";  // what the help says instead of the default's value
  Owner owner = {};
};

using C = TrainConfig;

constexpr Owner kAdams = {&C::optimizer, "adamw|adam"}, kSgd = {&C::optimizer, "sgd"},
                kRmsprop = {&C::optimizer, "rmsprop"}, kMoving = {&C::optimizer, "sgd|rmsprop"},
                kRooted = {&C::optimizer, "adamw|adam|rmsprop"};
constexpr Owner kStep = {&C::schedule, "step"}, kCycle = {&C::schedule, "one-cycle"},
                kPlateau = {&C::schedule, "plateau"},
                kFalling = {&C::schedule, "step|exponential|plateau"};

// clang-format off
// Constant, since the command is made from it before main() begins.
constexpr Field kFields[] = {
    {"data", "FILE", &C::data, "text, .jsonl or token files (.bin)", 0, 0, "none; several times, or further ones as words"},
    {"out", "DIR", &C::out, "folder for checkpoints and logs"},
    {"tokenizer", "KIND", &C::tokenizer, "char, byte, bpe, or a tokenizer.json"},
    {"vocab", "N", &C::vocab, "tokens of a bpe, or in token files", 0, 65536, "4096, or 50257 for token files"},
    {"held-out", "SHARE", &C::held_out, "of the data, its end, for evaluation", 0, 0.9},
    {"model", "PRESET", &C::model, "nano, char, gpt2, gpt2-medium, gpt2-large or gpt2-xl"},
    {"layers", "N", &C::layers, "blocks", 0, 1e4, "the preset's"},
    {"heads", "N", &C::heads, "of attention", 0, 1e4, "the preset's"},
    {"width", "N", &C::width, "of the residual stream", 0, 1e6, "the preset's"},
    {"context", "N", &C::context, "tokens of a sequence", 0, 1e6, "the preset's"},
    {"dropout", "P", &C::dropout, "in training", 0, 0.99, "the preset's"},
    {"steps", "N", &C::steps, "in all"},
    {"batch", "N", &C::batch, "sequences at a time", 1, 1e6},
    {"accumulate", "N", &C::accumulate, "batches of a step", 1, 1e6},
    {"lr", "RATE", &C::lr, "highest learning rate", 0, 1e3},
    {"min-lr", "RATE", &C::min_lr, "at the end of the schedule", 0, 1e3},
    {"warmup", "N", &C::warmup, "steps of rising rate", 0, 1e15, "20; one-cycle: 0"},
    {"schedule", "cosine|linear|constant|step|exponential|one-cycle|plateau", &C::schedule, "of the rate behind the warm-up"},
    {"lr-every", "N", &C::lr_every, "steps between reductions", 1, 1e15, "", kStep},
    {"lr-factor", "X", &C::lr_factor, "of a reduction, or of each step", 1e-9, 1, "0.1; exponential: what ends at --min-lr", kFalling},
    {"patience", "N", &C::patience, "evaluations without progress that are put up with", 0, 1e15, "", kPlateau},
    {"threshold", "X", &C::threshold, "share of the best loss that is progress", 0, 1, "", kPlateau},
    {"cooldown", "N", &C::cooldown, "evaluations behind a reduction that do not count", 0, 1e15, "", kPlateau},
    {"rise", "SHARE", &C::rise, "of the steps, up to the highest rate", 0, 1, "", kCycle},
    {"start-divisor", "X", &C::start_divisor, "highest by first rate", 1e-9, 1e9, "", kCycle},
    {"end-divisor", "X", &C::end_divisor, "first by last rate", 1e-9, 1e15, "", kCycle},
    {"optimizer", "adamw|adam|sgd|rmsprop", &C::optimizer, "that takes the steps"},
    {"weight-decay", "X", &C::weight_decay, "of matrices", 0, 1e3, "0.1 for adamw, else 0"},
    {"beta1", "X", &C::beta1, "of the mean of gradients", 0, 1, "", kAdams},
    {"beta2", "X", &C::beta2, "of the mean of their squares", 0, 1, "", kAdams},
    {"epsilon", "X", &C::epsilon, "beside the root of that mean", 0, 1, "", kRooted},
    {"momentum", "X", &C::momentum, "what stays of a step for the next", 0, 1, "", kMoving},
    {"dampening", "X", &C::dampening, "share of the gradient that the momentum does not get", 0, 1, "", kSgd},
    {"nesterov", "", &C::nesterov, "Nesterov's form of the momentum", 0, 0, "", kSgd},
    {"alpha", "X", &C::alpha, "of the mean of squares", 0, 1, "", kRmsprop},
    {"centered", "", &C::centered, "by the variance instead of the mean of squares", 0, 0, "", kRmsprop},
    {"clip", "NORM", &C::clip, "most that gradients may have; 0: any", 0, 1e6},
    {"clip-value", "X", &C::clip_value, "most that an element of them may be; 0: any", 0, 1e6},
    {"ema", "DECAY", &C::ema, "of averaged parameters; 0: none", 0, 1},
    {"seed", "N", &C::seed, "of everything that is drawn"},
    {"log-every", "N", &C::log_every, "steps between reads of the losses", 1, 1e9},
    {"eval-every", "N", &C::eval_every, "steps between evaluations; 0: never"},
    {"eval-batches", "N", &C::eval_batches, "of an evaluation", 1, 1e9},
    {"save-every", "N", &C::save_every, "steps; 0: at the end, and where an evaluation is best"},
    {"keep", "N", &C::keep, "last checkpoints, beside the best", 1, 1e6},
    {"sample", "N", &C::sample, "tokens that the model writes at the end", 0, 1e6},
    {"device", "DEVICE", &C::device, "cpu, cuda:N or opencl:N", 0, 0, "cuda:0 where there is one"},
    {"dtype", "f32|bf16|f16", &C::dtype, "of parameters; halves have f32 masters, f16 a scaled loss"},
    {"checkpointing", "auto|none|selective|block", &C::checkpointing,
     "what is computed again instead of kept; auto: what --memory needs"},
    {"memory", "SIZE", &C::memory, "that may be planned for: 512MiB, 8GiB", 0, 0, "any"},
    {"peak-tflops", "X", &C::peak_tflops, "that the share is of", 0, 1e9, "measured"},
    {"debug-nan", "", &C::debug_nan, "stop where a value is not finite and name the operation"},
};
// clang-format on

template <class... Args>
[[noreturn]] void bad_option(const Args&... args) {
  throw UsageError(cat("train: ", args...));
}

std::string key_of(const Field& field) {
  std::string key(field.name);
  std::ranges::replace(key, '-', '_');
  return key;
}

bool has_word(std::string_view words, const std::string& word) {
  return !word.empty() && cat("|", words, "|").find(cat("|", word, "|")) != std::string::npos;
}

std::string help_text(const Field& field) {
  std::string owners;
  for (const char c : field.owner.words) owners += c == '|' ? std::string(", ") : std::string(1, c);
  return owners.empty() ? std::string(field.help) : cat(owners, ": ", field.help);
}

std::string default_text(const Field& field) {
  if (!field.otherwise.empty()) return std::string(field.otherwise);
  const TrainConfig defaults;
  return std::visit(
      [&]<class T>(T TrainConfig::*member) {
        if constexpr (std::is_same_v<T, std::vector<std::string>>) {
          return std::string();
        } else {
          return cat(defaults.*member);
        }
      },
      field.member);
}

// `where` begins the error: "--steps" or "config.json: \"steps\"".
void set_number(const Field& field, const std::string& where, double value, TrainConfig& config) {
  if (!(value >= field.least && value <= field.most)) {
    bad_option(where, " expects a number from ", field.least, " to ", field.most, ", got ", value);
  }
  if (const auto* whole = std::get_if<int64_t TrainConfig::*>(&field.member)) {
    config.** whole = int64_t(value);
  } else {
    config.*std::get<double TrainConfig::*>(field.member) = value;
  }
}

bool is_whole(const Field& field) {
  return std::holds_alternative<int64_t TrainConfig::*>(field.member);
}

void set_text(const Field& field, const std::string& where, const std::string& text,
              TrainConfig& config) {
  if (const auto* list = std::get_if<std::vector<std::string> TrainConfig::*>(&field.member)) {
    (config.**list).push_back(text);
    return;
  }
  if (field.value.find('|') != std::string_view::npos) {  // the flag's parser knows them, too
    if (!has_word(field.value, text)) {
      bad_option(where, " expects ", field.value, ", got '", text, "'");
    }
  }
  config.*std::get<std::string TrainConfig::*>(field.member) = text;
}

void set_json(const Field& field, const std::string& where, const Json& value,
              TrainConfig& config) {
  if (const auto* flag = std::get_if<bool TrainConfig::*>(&field.member)) {
    config.** flag = value.as_bool();
  } else if (std::holds_alternative<std::string TrainConfig::*>(field.member)) {
    set_text(field, where, value.as_string(), config);
  } else if (const auto* list =
                 std::get_if<std::vector<std::string> TrainConfig::*>(&field.member)) {
    (config.**list).clear();
    if (value.is_string()) return set_text(field, where, value.as_string(), config);
    for (const Json& one : value.as_array()) set_text(field, where, one.as_string(), config);
  } else {
    set_number(field, where, is_whole(field) ? double(value.as_int()) : value.as_double(), config);
  }
}

void set_flag(const Field& field, const std::string& where, const std::string& text,
              TrainConfig& config) {
  if (const auto* flag = std::get_if<bool TrainConfig::*>(&field.member)) {
    config.** flag = true;
    return;
  }
  const bool is_number =
      is_whole(field) || std::holds_alternative<double TrainConfig::*>(field.member);
  if (!is_number) {
    return set_text(field, where, text, config);
  }
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = value == double(int64_t(std::clamp(value, -1e15, 1e15)));
  if (code != std::errc() || end != text.data() + text.size() || (is_whole(field) && !whole)) {
    bad_option(where, " expects a ", is_whole(field) ? "whole " : "", "number, got '", text, "'");
  }
  set_number(field, where, value, config);
}

}  // namespace

std::span<const Option> train_config_options() {
  static const auto table = [] {
    // Options have views of their text.
    static std::vector<std::string> texts;
    texts.reserve(2 * std::size(kFields));
    std::vector<Option> options;
    for (const Field& field : kFields) {
      const std::string otherwise = field.value.empty() ? "" : default_text(field);
      texts.push_back(cat("--", field.name));
      texts.push_back(otherwise.empty() ? help_text(field)
                                        : cat(help_text(field), " (default: ", otherwise, ")"));
      const bool is_list = std::holds_alternative<std::vector<std::string> C::*>(field.member);
      options.push_back({texts[texts.size() - 2], field.value, texts.back(), is_list});
    }
    return options;
  }();
  return table;
}

void read_config(const Json& json, std::string_view name, TrainConfig& config) {
  if (!json.is_object()) bad_option(name, ": expected an object, got ", json.describe());
  std::vector<std::string> keys;
  for (const Field& field : kFields) keys.push_back(key_of(field));
  for (const auto& [key, value] : json.as_object()) {
    const auto found = std::ranges::find(keys, key);
    const std::string where = cat(name, ": \"", key, "\"");
    if (found == keys.end()) {
      bad_option(where, " is no option", did_you_mean(key, {keys.begin(), keys.end()}));
    }
    try {
      set_json(kFields[found - keys.begin()], where, value, config);
    } catch (const UsageError&) {
      throw;
    } catch (const Error& error) {
      bad_option(where, " has a wrong value: ", error.what());
    }
  }
}

void read_flags(const Arguments& arguments, TrainConfig& config) {
  bool files = false;  // that take the place of those of the configuration
  const auto add_file = [&](const std::string& file) {
    if (!files) config.data.clear();
    files = true;
    config.data.push_back(file);
  };
  for (const Field& field : kFields) {
    const std::string flag = cat("--", field.name);
    for (const std::string& text : arguments.values(flag)) {
      field.name == "data" ? add_file(text) : set_flag(field, flag, text, config);
    }
  }
  for (const std::string& word : arguments.words) add_file(word);
}

void check_owners(const TrainConfig& config) {
  const TrainConfig defaults;
  for (const Field& field : kFields) {
    if (field.owner.choice == nullptr) continue;
    const std::string& chosen = config.*field.owner.choice;
    const bool is_default = std::visit(
        [&](const auto member) { return config.*member == defaults.*member; }, field.member);
    if (is_default || has_word(field.owner.words, chosen)) continue;
    bad_option("--", field.name, " belongs to ",
               field.owner.choice == &C::optimizer ? "--optimizer " : "--schedule ",
               field.owner.words, ", got ", chosen);
  }
}

Json to_json(const TrainConfig& config) {
  Json json = Json::object();
  for (const Field& field : kFields) {
    const Json value = std::visit(
        [&]<class T>(T TrainConfig::*member) {
          if constexpr (std::is_same_v<T, std::vector<std::string>>) {
            Json list = Json::array();
            for (const std::string& one : config.*member) list.push(one);
            return list;
          } else {
            return Json(config.*member);
          }
        },
        field.member);
    const bool is_unset = value.is_number() && value.as_double() < 0;  // another option decides
    if (!is_unset) json.set(key_of(field), value);
  }
  return json;
}

}  // namespace tessera::cli
