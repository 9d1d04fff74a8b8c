// `tessera generate`, as a user calls it.
#include <gtest/gtest.h>

#include "cli/run_command.h"
#include "cli/text_model.h"
#include "io/temp_folder.h"
#include "tessera/io/utf8.h"

namespace tessera {
namespace {

class Generate : public ::testing::Test {
 protected:
  Generate() { write_text_model(model_); }

  CommandResult run(Words words) const {
    words.insert(words.begin(), {"generate", model_});
    return run_command(words, {"TESSERA_DEVICE=cpu"});
  }
  std::string failure(const Words& words) const {
    const CommandResult result = run(words);
    EXPECT_NE(result.status, 0);
    return result.err;
  }

  const TempFolder folder_;
  const std::string model_ = (folder_ / "model").native();
};

TEST_F(Generate, WritesWhatTheLibraryWrites) {
  const CommandResult result = run({"--prompt", "Once", "--tokens", "30", "--temperature", "0"});
  EXPECT_EQ(result.status, 0);
  const Gpt model(text_model_config(), Random(1));
  const Tokenizer tokenizer = byte_tokenizer();
  TextStream stream;
  std::string text = "Once";
  Generator generator(model, tokenizer.size());
  const std::vector<Tokens> made = generator.generate(
      {tokenizer.encode("Once")}, {.tokens = 30, .sampling = {.temperature = 0}});
  for (const int32_t token : made[0]) {
    text += stream.push(tokenizer.decode({&token, 1}));
  }
  EXPECT_EQ(result.out, text + stream.finish() + "\n");
  EXPECT_TRUE(result.err.starts_with("tessera: 30 tokens, ")) << result.err;
  EXPECT_TRUE(result.err.ends_with(" a second\n")) << result.err;
}

TEST_F(Generate, AlwaysWritesUtf8) {
  const CommandResult result = run({"--tokens", "300", "--temperature", "3"});
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(find_invalid_utf8(result.out), std::string::npos);
  EXPECT_GT(result.out.size(), 300u);
}

TEST_F(Generate, OptionsReachTheSampler) {
  const auto text = [&](const Words& words) { return run(words).out; };
  const std::string plain = text({"--tokens", "40"});
  EXPECT_EQ(text({"--tokens", "40", "--seed", "0"}), plain);
  EXPECT_NE(text({"--tokens", "40", "--seed", "1"}), plain);
  const std::string greedy = text({"--tokens", "40", "--temperature", "0"});
  EXPECT_NE(greedy, plain);
  EXPECT_EQ(text({"--tokens", "40", "--top-k", "1"}), greedy);
  EXPECT_EQ(text({"--tokens", "40", "--top-p", "0.000001"}), greedy);
  EXPECT_EQ(text({"--tokens", "40", "--min-p", "1"}), greedy);
  EXPECT_NE(text({"--tokens", "40", "--temperature", "0", "--repetition-penalty", "50"}), greedy);
  EXPECT_NE(text({"--tokens", "40", "--dtype", "bf16"}), "");
}

TEST_F(Generate, EndsBeforeAStopString) {
  const std::string whole = run({"--prompt", "ab", "--tokens", "40", "--top-k", "3"}).out;
  // Characters that stand behind the prompt, far enough apart to tell which of two came first.
  const std::string stop = whole.substr(20, 1);
  const size_t at = whole.find(stop, 2);
  ASSERT_NE(utf8_length(stop), 0u) << "another seed gives an ASCII character here";
  EXPECT_EQ(run({"--prompt", "ab", "--tokens", "40", "--top-k", "3", "--stop", "never comes",
                 "--stop", stop})
                .out,
            whole.substr(0, at) + "\n");
}

TEST_F(Generate, EndsAtTheEndToken) {
  GptConfig config = text_model_config();
  const Gpt model(config, Random(1));
  Generator generator(model, 256);
  const int32_t first =
      generator.generate({{'x'}}, {.tokens = 1, .sampling = {.temperature = 0}})[0][0];
  config.end_token = first;
  write_text_model(model_, config);
  EXPECT_EQ(run({"--prompt", "x", "--temperature", "0"}).out, "x\n");
  EXPECT_EQ(run({"--tokens", "0"}).out, "\n");  // begins with the end token, which is not shown
  EXPECT_EQ(run({"--tokens", "0"}).err, "tessera: 0 tokens\n");
}

TEST_F(Generate, SaysWhatIsWrong) {
  EXPECT_EQ(failure({"--prompt", std::string(25, 'x')}),
            "tessera: generate: the prompt has 25 tokens, the model's context only 24\n");
  EXPECT_EQ(failure({"more"}),
            "tessera: generate: expected a model's folder, got 2 words\ntry 'tessera generate "
            "--help'\n");
  EXPECT_EQ(failure({"--temperature", "hot"}),
            "tessera: generate: --temperature expects a number from 0 to 1e+06, got 'hot'\ntry "
            "'tessera generate --help'\n");
  EXPECT_EQ(failure({"--device", "tpu"}).substr(0, 19), "tessera: generate: ");

  const CommandResult nothing = run_command({"generate", (folder_ / "nothing").native()});
  EXPECT_EQ(nothing.status, 1);
  EXPECT_EQ(nothing.err,
            "tessera: load_gpt: expected a folder with config.json and model.safetensors, got " +
                (folder_ / "nothing").native() + " without config.json\n");

  const std::string tokenizer = model_ + "/tokenizer.json";
  write_text(tokenizer, R"({"model": {"type": "WordPiece"}})");
  EXPECT_TRUE(failure({}).starts_with("tessera: tokenizer: '" + tokenizer)) << failure({});
  std::vector<std::string> specials;
  for (int i = 0; i < 5; ++i) specials.push_back(cat("<", i, ">"));
  save_tokenizer(tokenizer, byte_tokenizer(specials));
  EXPECT_EQ(failure({}),
            "tessera: generate: " + tokenizer + " has 261 tokens, the model only 260\n");
  std::filesystem::remove(tokenizer);
  EXPECT_EQ(failure({}), "tessera: generate: " + model_ + " has a model, but no tokenizer.json\n");
}

}  // namespace
}  // namespace tessera
