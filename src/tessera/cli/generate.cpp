#include <chrono>
#include <ostream>

#include "tessera/base/log.h"
#include "tessera/cli/command.h"
#include "tessera/cli/lattice_words.h"
#include "tessera/data/tokenizer_file.h"
#include "tessera/infer/generator.h"
#include "tessera/infer/text_stream.h"
#include "tessera/tensor/device.h"

namespace tessera::cli {

namespace {

constexpr Option kOptions[] = {
    {"--prompt", "TEXT",
     "what the text begins with (default: the model's end token, or a new line)"},
    {"--tokens", "N", "how many to add, at most (default: 200)"},
    {"--temperature", "T", "below 1 likelier, above 1 more varied; 0: the likeliest (default: 1)"},
    {"--top-k", "N", "draw among the N likeliest tokens (default: all)"},
    {"--top-p", "P", "among the likeliest that have probability P together (default: 1)"},
    {"--min-p", "P", "among those at least P times as likely as the likeliest (default: 0)"},
    {"--repetition-penalty", "X", "above 1 repeats less (default: 1)"},
    {"--seed", "N", "other numbers draw other texts (default: 0)"},
    {"--stop", "TEXT", "end before this comes; may be given several times", true},
    {"--device", "DEVICE", "cpu, cuda:N or opencl:N (default: the first GPU of CUDA, else cpu)"},
    {"--dtype", "f32|bf16", "of the weights while they work (default: f32)"},
};

constexpr std::string_view kExamples[] = {
    "tessera generate model --prompt Once --tokens 40 --temperature 0.8 --top-k 40",
    "tessera generate model --prompt Once --temperature 0 --stop . --device cpu",
};

struct TextModel {
  std::unique_ptr<Gpt> gpt;
  Tokenizer tokenizer;
};

TextModel load_model(const std::filesystem::path& folder, DType dtype) {
  std::unique_ptr<Gpt> gpt = load_gpt(folder, dtype);
  const std::filesystem::path path = folder / "tokenizer.json";
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    fail("generate: ", folder.string(), " has a model, but no tokenizer.json");
  }
  Tokenizer tokenizer = load_tokenizer(path);
  if (tokenizer.size() > gpt->config().vocabulary) {
    fail("generate: ", path.string(), " has ", tokenizer.size(), " tokens, the model only ",
         gpt->config().vocabulary);
  }
  return {std::move(gpt), std::move(tokenizer)};
}

void choose_device(const Arguments& arguments) {
  if (!arguments.has("--device")) return;
  try {
    set_default_device(Device(arguments.value("--device", "")));
  } catch (const Error& error) {
    throw UsageError(cat("generate: ", error.what()));
  }
}

GenerateOptions read_options(const Arguments& arguments) {
  const auto real_of = [&](std::string_view option, double otherwise, double low, double high) {
    return real(arguments, "generate", option, otherwise, low, high);
  };
  const auto number_of = [&](std::string_view option, int64_t otherwise, int64_t high) {
    return number(arguments, "generate", option, otherwise, 0, high);
  };
  GenerateOptions options;
  options.tokens = number_of("--tokens", 200, 1'000'000'000);
  options.sampling.temperature = real_of("--temperature", 1, 0, 1e6);
  options.sampling.top_k = number_of("--top-k", 0, INT32_MAX);
  options.sampling.top_p = real_of("--top-p", 1, 1e-6, 1);
  options.sampling.min_p = real_of("--min-p", 0, 0, 1);
  options.sampling.repetition_penalty = real_of("--repetition-penalty", 1, 1e-3, 1e6);
  options.sampling.seed = number_of("--seed", 0, INT64_MAX);
  return options;
}

Tokens read_prompt(const Arguments& arguments, const TextModel& model) {
  const std::optional<int64_t> end = model.gpt->config().end_token;
  if (!arguments.has("--prompt") && end) return {int32_t(*end)};
  const Tokens tokens = model.tokenizer.encode(arguments.value("--prompt", "\n"));
  const int64_t context = model.gpt->config().context;
  if (int64_t(tokens.size()) > context) {
    fail("generate: the prompt has ", tokens.size(), " tokens, the model's context only ", context);
  }
  return tokens;
}

// Counts from the first token on: what comes before is compiled, or read from disk.
class Speed {
 public:
  void count() {
    if (tokens_++ == 0) start_ = Clock::now();
  }
  std::string text() const {
    const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
    if (tokens_ < 2) return cat(tokens_, tokens_ == 1 ? " token" : " tokens");
    return cat(tokens_, " tokens, ", int64_t(double(tokens_ - 1) / seconds + 0.5), " a second");
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_;
  int64_t tokens_ = 0;
};

Status run_generate(const Arguments& arguments, Console& console) {
  if (arguments.words.size() != 1) {
    throw UsageError(
        cat("generate: expected a model's folder, got ", arguments.words.size(), " words"));
  }
  GenerateOptions options = read_options(arguments);
  TextStream stream(arguments.values("--stop"));
  choose_device(arguments);
  const DType dtype = arguments.value("--dtype", "f32") == "bf16" ? DType::bf16 : DType::f32;
  const TextModel model = load_model(arguments.words[0], dtype);
  const Tokens prompt = read_prompt(arguments, model);
  if (const auto end = model.gpt->config().end_token) options.end_token = int32_t(*end);

  console.out << arguments.value("--prompt", "") << std::flush;
  Speed speed;
  Generator generator(*model.gpt, model.tokenizer.size());
  generator.generate({prompt}, options, [&](int64_t, int32_t token) {
    speed.count();
    console.out << stream.push(model.tokenizer.decode({&token, 1})) << std::flush;
    return !stream.stopped();
  });
  console.out << stream.finish() << "\n";
  log_message(LogLevel::info, speed.text());
  return Status::done;
}

}  // namespace

const Command kGenerate = {
    "generate", "write text with a model", "MODEL", kOptions, kExamples, nullptr, run_generate};

}  // namespace tessera::cli
