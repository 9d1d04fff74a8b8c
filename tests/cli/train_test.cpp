// tessera train: its table of options, its folder, and what interrupts it.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <thread>

#include "cli/run_command.h"
#include "io/temp_folder.h"
#include "support/expect_error.h"
#include "tessera/cli/command.h"
#include "tessera/cli/train_config.h"
#include "tessera/cli/train_report.h"
#include "tessera/data/token_data.h"
#include "tessera/models/gpt_config.h"
#include "tessera/train/checkpoint.h"

namespace tessera::cli {
namespace {

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TrainConfig config_of(const char* json) {
  TrainConfig config;
  read_config(Json::parse(json, "c.json"), "c.json", config);
  return config;
}

TrainConfig flags(const Words& words) {
  TrainConfig config;
  config.data = {"from_config"};
  read_flags(parse_arguments("train", train_config_options(), words), config);
  return config;
}

TEST(TrainConfig, KeysAndFlagsAreOne) {
  const TrainConfig config = config_of(
      R"({"data": ["a", "b"], "eval_every": 7, "lr": 0.5, "dtype": "bf16", "debug_nan": true})");
  EXPECT_EQ(config.data, (Words{"a", "b"}));
  EXPECT_EQ(config.eval_every, 7);
  EXPECT_EQ(config.lr, 0.5);
  EXPECT_EQ(config, flags({"--data", "a", "--data", "b", "--eval-every", "7", "--lr=0.5", "--dtype",
                           "bf16", "--debug-nan"}));
  EXPECT_EQ(flags({"b", "c"}).data, (Words{"b", "c"}));
  EXPECT_EQ(flags({}).data, (Words{"from_config"}));
  EXPECT_EQ(config_of(R"({"data": "a"})").data, (Words{"a"}));
}

TEST(TrainConfig, WritesWhatItReads) {
  TrainConfig config = flags({"--data", "x", "--lr", "3e-4", "--memory", "1GiB", "--seed", "9"});
  TrainConfig read;
  read_config(to_json(config), "own", read);
  EXPECT_EQ(read, config);
  EXPECT_EQ(to_json(config).find("warmup"), nullptr);  // the schedule's
  config.dropout = 0.25;
  config.weight_decay = config.warmup = 0;
  read_config(to_json(config), "own", read);
  EXPECT_EQ(read, config);
}

TEST(TrainConfig, HelpHasEveryDefault) {
  std::string text;
  for (const Option& option : train_config_options()) text += cat(option.help, "\n");
  EXPECT_TRUE(contains(text, "in all (default: 500)"));
  EXPECT_TRUE(contains(text, "highest learning rate (default: 0.001)"));
  for (const std::string& preset : gpt_presets()) EXPECT_TRUE(contains(text, preset)) << preset;
}

TEST(TrainConfigErrors, NameTheKeyAndTheNearest) {
  const auto text = [](const char* json) { return error_text([&] { config_of(json); }); };
  EXPECT_EQ(text(R"({"eval_evry": 1})"),
            "train: c.json: \"eval_evry\" is no option; did you mean 'eval_every'?");
  EXPECT_EQ(text("[1]"), "train: c.json: expected an object, got an array");
  EXPECT_EQ(text(R"({"dtype": "f64"})"),
            "train: c.json: \"dtype\" expects f32|bf16|f16, got 'f64'");
  EXPECT_EQ(text(R"({"batch": 0})"),
            "train: c.json: \"batch\" expects a number from 1 to 1e+06, got 0");
  EXPECT_TRUE(
      text(R"({"batch": "x"})").starts_with("train: c.json: \"batch\" has a wrong value: "));
  EXPECT_TRUE(
      text(R"({"batch": 1.5})").starts_with("train: c.json: \"batch\" has a wrong value: "));
  const auto flag = [](const Words& words) { return error_text([&] { flags(words); }); };
  EXPECT_EQ(flag({"--steps", "1.5"}), "train: --steps expects a whole number, got '1.5'");
  EXPECT_EQ(flag({"--lr", "fast"}), "train: --lr expects a number, got 'fast'");
  EXPECT_EQ(flag({"--optimizer", "lion"}),
            "train: --optimizer expects adamw|adam|sgd|rmsprop, got 'lion'");
  EXPECT_EQ(flag({"--held-out", "1"}), "train: --held-out expects a number from 0 to 0.9, got 1");
}

TEST(TrainConfigErrors, OptionsBelongToAChoice) {
  const auto text = [](const Words& words) {
    return error_text([&] { check_owners(flags(words)); });
  };
  EXPECT_EQ(text({"--momentum", "0.9"}),
            "train: --momentum belongs to --optimizer sgd|rmsprop, got adamw");
  EXPECT_EQ(text({"--optimizer", "rmsprop", "--nesterov"}),
            "train: --nesterov belongs to --optimizer sgd, got rmsprop");
  EXPECT_EQ(text({"--patience", "3"}),
            "train: --patience belongs to --schedule plateau, got cosine");
  check_owners(flags({"--optimizer", "sgd", "--momentum", "0.9", "--nesterov"}));
  check_owners(flags({"--optimizer", "sgd", "--beta1", "0.9"}));  // the default
}

TEST(TrainReport, ShowsALine) {
  const StepRecord before{.step = 100, .seconds = 10};
  StepRecord now{.step = 110, .loss = 1.23456, .eval_loss = 2, .lr = 0.0005, .seconds = 15};
  const Rates rates{.steps = 300, .tokens_per_step = 2000, .flops_per_token = 1e6, .peak = 1e10};
  EXPECT_EQ(progress_line(now, before, rates, 3 << 20),
            "step 110/300  loss 1.2346  eval 2.0000  lr 0.0005  4,000 tokens/s  40 % of 10.0 "
            "GFLOP/s  3.0 MiB  1:35 left");
  now.eval_loss.reset();
  now.step = 300;
  now.seconds = 110;
  EXPECT_TRUE(progress_line(now, before, rates, 3 << 20).ends_with("  0:00 left"));
}

TEST(TrainReport, DrawsLosses) {
  std::vector<StepRecord> records;
  for (int64_t step = 1; step <= 2000; ++step) {
    records.push_back({.step = step, .loss = 4.0 / double(step)});
    if (step % 500 == 0) records.back().eval_loss = 1;
  }
  records[7].loss = NAN;
  const std::string page = loss_page(records, "run");
  EXPECT_TRUE(contains(page, "<polyline"));
  EXPECT_TRUE(contains(page, "held out"));
  EXPECT_FALSE(contains(page, "nan"));
  EXPECT_LT(page.size(), 40'000u);
  EXPECT_TRUE(contains(loss_page({}, "none"), "</svg>"));
}

// A text, and the options of a model that is trained in no time.
class TrainCommand : public testing::Test {
 protected:
  TrainCommand() {
    std::string text;
    for (int i = 0; i < 300; ++i) text += "the " + std::to_string(i * i % 31) + " of them\n";
    write_text(folder / "text.txt", text);
  }

  Words words(const std::string& out, Words more = {}) const {
    Words all = {"train",          folder / "text.txt",
                 "--out",          folder / out,
                 "--layers",       "2",
                 "--heads",        "2",
                 "--width",        "16",
                 "--context",      "16",
                 "--batch",        "4",
                 "--dropout",      "0.1",
                 "--peak-tflops",  "1",
                 "--eval-every",   "4",
                 "--eval-batches", "2",
                 "--sample",       "20"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  CommandResult train(const std::string& out, const Words& more = {}) const {
    return run_command(words(out, more), {"TESSERA_QUIET=1"});
  }
  std::vector<float> losses(const std::string& out) const {
    std::vector<float> result;
    for (const StepRecord& record : read_csv_log(folder / out / "log.csv")) {
      result.push_back(float(record.loss));
    }
    return result;
  }

  TempFolder folder;
};

TEST_F(TrainCommand, LeavesAFolder) {
  const CommandResult result = train("run", {"--steps", "8"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.err, "");
  for (const char* part :
       {"2 layers of width 16", "memory of a step", "optimiser", "step 8/8", "GFLOP/s", "done: "}) {
    EXPECT_TRUE(contains(result.out, part)) << part << "\n" << result.out;
  }
  for (const char* name : {"config.json", "log.csv", "loss.html", "tokenizer.json", "tokens.bin"}) {
    EXPECT_TRUE(std::filesystem::exists(folder / "run" / name)) << name;
  }
  for (const char* name : {"config.json", "model.safetensors", "state.safetensors",
                           "tokenizer.json", "trainer.json"}) {
    EXPECT_TRUE(std::filesystem::exists(folder / "run" / "step-8" / name)) << name;
  }
  const CommandResult written =
      run_command({"generate", folder / "run" / "step-8", "--tokens", "5", "--prompt", "the"},
                  {"TESSERA_QUIET=1"});
  EXPECT_EQ(written.status, 0) << written.err;
  EXPECT_TRUE(written.out.starts_with("the"));
}

// A whole run whose last checkpoint is lost goes on from the one before.
TEST_F(TrainCommand, ResumesToTheBit) {
  const Words runs[] = {
      {},
      {"--schedule", "linear", "--accumulate", "2", "--ema", "0.9", "--dtype", "bf16"},
      {"--optimizer", "adam", "--schedule", "exponential", "--accumulate", "2", "--dtype", "f16"},
      {"--optimizer", "sgd", "--momentum", "0.9", "--nesterov", "--schedule", "step", "--lr-every",
       "3", "--warmup", "0", "--clip-value", "0.01"},
      {"--optimizer", "rmsprop", "--momentum", "0.5", "--centered", "--schedule", "one-cycle"},
      {"--schedule", "plateau", "--patience", "0", "--threshold", "1", "--warmup", "2", "--lr",
       "0.01", "--lr-factor", "0.5"}};
  for (const Words& options : runs) {
    const std::string name = cat("run", &options - runs);
    Words more = options;
    more.insert(more.end(), {"--steps", "8", "--save-every", "4", "--keep", "9", "--json"});
    const CommandResult begun = train(name, more);
    ASSERT_EQ(begun.status, 0) << begun.err;
    const std::filesystem::path last = folder / name / "step-8";
    const std::vector<float> whole = losses(name);
    const std::string model = read_text(last / "model.safetensors");
    const std::string state = read_text(last / "state.safetensors");
    std::vector<int64_t> steps = list_checkpoints(folder / name);
    for (const int64_t step : steps) {
      if (step > 4) remove_checkpoint(folder / name, step);
    }
    const CommandResult resumed =
        run_command({"train", "--resume", "--out", folder / name, "--json"});
    ASSERT_EQ(resumed.status, 0) << resumed.err;
    EXPECT_EQ(Json::parse(resumed.out, "out").get<int64_t>("step"), 8);
    EXPECT_EQ(losses(name), whole) << name;
    EXPECT_EQ(read_text(last / "model.safetensors"), model) << name;
    EXPECT_EQ(read_text(last / "state.safetensors"), state) << name;
  }
}

// Also to more steps than the run was made for.
TEST_F(TrainCommand, GoesOnWithMoreSteps) {
  const Words constant = {"--schedule", "constant", "--steps"};
  Words eight = constant, four = constant;
  eight.push_back("8");
  four.push_back("4");
  ASSERT_EQ(train("whole", eight).status, 0);
  ASSERT_EQ(train("run", four).status, 0);
  const CommandResult resumed =
      run_command({"train", "--resume", "--out", folder / "run", "--steps", "8"});
  ASSERT_EQ(resumed.status, 0) << resumed.err;
  EXPECT_EQ(losses("run"), losses("whole"));
  EXPECT_EQ(read_text(folder / "run" / "step-8" / "model.safetensors"),
            read_text(folder / "whole" / "step-8" / "model.safetensors"));
}

TEST_F(TrainCommand, TakesAConfigurationAndTokenFiles) {
  std::vector<int32_t> tokens;
  for (int i = 0; i < 2000; ++i) tokens.push_back(i * 7 % 50);
  TokenWriter writer(folder / "tokens.bin");
  writer.write(tokens);
  writer.finish();
  const Json config = Json()
                          .set("data", (folder / "tokens.bin").native())
                          .set("out", (folder / "run").native())
                          .set("vocab", 50)
                          .set("layers", 1)
                          .set("width", 16)
                          .set("context", 16)
                          .set("steps", 100);
  write_text(folder / "my.json", config.dump());
  const CommandResult result = run_command(
      {"train", folder / "my.json", "--steps", "2", "--peak-tflops", "1"}, {"TESSERA_QUIET=1"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_TRUE(contains(result.out, "vocabulary 50"));
  EXPECT_EQ(losses("run").size(), 2u);
}

TEST_F(TrainCommand, StaysBelowTheMemoryOrSaysWhy) {
  Words all = {"train",         folder / "text.txt",
               "--layers",      "6",
               "--heads",       "2",
               "--width",       "32",
               "--context",     "64",
               "--batch",       "16",
               "--steps",       "1",
               "--peak-tflops", "1",
               "--json"};
  const auto with = [&](const Words& more) {
    Words words = all;
    words.insert(words.end(), more.begin(), more.end());
    return run_command(words, {"TESSERA_QUIET=1"});
  };
  const CommandResult free = with({"--out", folder / "a"});
  ASSERT_EQ(free.status, 0) << free.err;
  const Json plain = Json::parse(free.out, "out");
  EXPECT_EQ(plain.get<std::string>("checkpointing"), "none");
  const int64_t bytes = plain.get<int64_t>("planned_bytes");
  const CommandResult less = with({"--out", folder / "b", "--memory", std::to_string(bytes - 1)});
  ASSERT_EQ(less.status, 0) << less.err;
  const Json chosen = Json::parse(less.out, "out");
  EXPECT_NE(chosen.get<std::string>("checkpointing"), "none");
  EXPECT_LT(chosen.get<int64_t>("planned_bytes"), bytes);
  const CommandResult fixed = with(
      {"--out", folder / "c", "--memory", std::to_string(bytes - 1), "--checkpointing", "none"});
  EXPECT_EQ(fixed.status, 1);
  EXPECT_TRUE(contains(fixed.err, "train: a step needs ")) << fixed.err;
  EXPECT_TRUE(contains(fixed.err, " with --checkpointing none, --memory allows "));
  EXPECT_TRUE(contains(fixed.err, "temporaries"));
  const CommandResult wrong = with({"--out", folder / "d", "--memory", "much"});
  EXPECT_TRUE(contains(wrong.err, "train: --memory expects a size like 512MiB, got 'much'"));
}

TEST_F(TrainCommand, EndsBehindTheStepOnCtrlC) {
  const Words arguments = words("run", {"--steps", "1000000", "--log-every", "1"});
  const std::string command = TESSERA_COMMAND;
  std::vector<char*> list = {const_cast<char*>(command.c_str())};
  for (const std::string& word : arguments) list.push_back(const_cast<char*>(word.c_str()));
  list.push_back(nullptr);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    (void)!::freopen("/dev/null", "w", stdout);
    ::execv(list[0], list.data());
    ::_exit(127);
  }
  for (int i = 0; i < 3000; ++i) {
    if (std::filesystem::exists(folder / "run" / "log.csv") && losses("run").size() > 3) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  ::kill(child, SIGINT);
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  const std::optional<int64_t> last = last_checkpoint(folder / "run");
  ASSERT_TRUE(last.has_value());
  EXPECT_EQ(int64_t(losses("run").size()), *last);
  EXPECT_TRUE(std::filesystem::exists(folder / "run" / "loss.html"));
}

TEST_F(TrainCommand, SaysWhatIsMissing) {
  const auto error = [&](const Words& words) { return run_command(words).err; };
  const std::string out = folder / "run";
  EXPECT_TRUE(contains(error({"train", "--out", out}), "train: expected --data FILE, got none"));
  EXPECT_TRUE(contains(error({"train", "--resume", "--out", folder / "none"}),
                       "train: expected a run to resume, got no '"));
  EXPECT_TRUE(contains(error({"train", "a.bin", "b.txt", "--out", out}),
                       "train: expected token files or texts as data, got both"));
  EXPECT_TRUE(contains(error({"train", folder / "text.txt", "--out", out, "--tokenizer", "word"}),
                       "train: --tokenizer expects char, byte, bpe or a .json file, got 'word'"));
  EXPECT_TRUE(
      contains(error({"train", folder / "text.txt", "--out", out, "--model", "nanoo"}), "nano"));
  ASSERT_EQ(train("run", {"--steps", "1"}).status, 0);
  const CommandResult again = train("run");
  EXPECT_EQ(again.status, 2);
  EXPECT_TRUE(contains(again.err, "holds a run: --resume goes on with it, --out names another"));
}

}  // namespace
}  // namespace tessera::cli
