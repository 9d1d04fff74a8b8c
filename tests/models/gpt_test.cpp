#include "tessera/models/gpt.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "support/expect_error.h"
#include "tessera/tessera.h"

namespace tessera {
namespace {

constexpr GptConfig kSmall = {.vocabulary = 11, .context = 8, .width = 12, .layers = 2, .heads = 3};

class Folder {
 public:
  explicit Folder(const std::string& name)
      : path_(std::filesystem::path(::testing::TempDir()) / ("tessera_gpt_" + name)) {
    std::filesystem::remove_all(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

void write(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

Tensor some_tokens() { return tensor(std::vector<int32_t>{1, 5, 0, 10, 3, 3, 7, 2}, {2, 4}); }

double deviation(const Tensor& x) { return std::sqrt(mean(x * x).item()); }

const Var& parameter(const std::vector<NamedVar>& parameters, const std::string& name) {
  for (const NamedVar& each : parameters) {
    if (each.name == name) return each.var;
  }
  fail("no parameter ", name);
}

TEST(GptConfig, CountsParametersAndOperations) {
  GptConfig config{.vocabulary = 11, .context = 8, .width = 16, .layers = 2, .heads = 2};
  EXPECT_EQ(parameter_count(config), Gpt(config).parameter_count());
  config.hidden = 24;
  config.bias = config.tied = false;
  EXPECT_EQ(parameter_count(config), Gpt(config).parameter_count());
  const GptConfig gpt2 = gpt_preset("gpt2");
  EXPECT_EQ(parameter_count(gpt2), 124'439'808);
  // 6 · (124,439,808 - 1024 · 768) + 6 · 12 · 768 · 1024
  EXPECT_EQ(training_flops(gpt2), 6.0 * 123'653'376 + 6.0 * 12 * 768 * 1024);
}

TEST(GptModel, HasPublishedSizesAndNames) {
  const Gpt model(gpt_preset("nano"), Random(1));
  // wte, wpe, 4 blocks of 12 C² + 13 C, ln_f
  EXPECT_EQ(model.parameter_count(), 256 * 128 + 128 * 128 + 4 * (12 * 128 * 128 + 13 * 128) + 256);
  std::vector<std::string> names;
  for (const NamedVar& each : model.named_parameters()) names.push_back(each.name);
  EXPECT_EQ(names.size(), 2 + 4 * 12 + 2);
  EXPECT_EQ(names[0], "wte.weight");
  EXPECT_EQ(names[1], "wpe.weight");
  EXPECT_EQ(names[2], "h.0.ln_1.weight");
  EXPECT_EQ(names[4], "h.0.attn.c_attn.weight");
  EXPECT_EQ(names[13], "h.0.mlp.c_proj.bias");
  EXPECT_EQ(names.back(), "ln_f.bias");
}

TEST(GptModel, StartsAsPublished) {
  GptConfig config = gpt_preset("nano");
  config.tied = false;
  const Gpt model(config, Random(5));
  const auto parameters = model.named_parameters();
  for (const char* name : {"wte.weight", "wpe.weight", "h.1.attn.c_attn.weight",
                           "h.3.mlp.c_fc.weight", "lm_head.weight"}) {
    EXPECT_NEAR(deviation(parameter(parameters, name)), 0.02, 0.0005) << name;
  }
  for (const char* name : {"h.0.attn.c_proj.weight", "h.3.mlp.c_proj.weight"}) {
    EXPECT_NEAR(deviation(parameter(parameters, name)), 0.02 / std::sqrt(8.0), 0.0002) << name;
  }
  EXPECT_EQ(deviation(parameter(parameters, "h.2.mlp.c_fc.bias")), 0);
  EXPECT_EQ(deviation(parameter(parameters, "h.2.ln_2.weight")), 1);
  // Nearly uniform at first.
  const Tensor tokens = Random(1).randint({2, 16}, 0, 256);
  EXPECT_NEAR(model.loss(tokens, tokens).item(), std::log(256.0), 0.1);
}

TEST(GptModel, SeesNothingOfWhatComesLater) {
  const Gpt model(kSmall, Random(2));
  const Tensor whole = model.logits(some_tokens());
  const Tensor start = model.logits(slice(some_tokens(), 1, 0, 2));
  EXPECT_LT(max(abs(slice(whole, 1, 0, 2) - start)).item(), 1e-6);
}

TEST(GptModel, PositionsAreThoseAskedFor) {
  const Gpt model(kSmall, Random(2));
  const Tensor tokens = some_tokens();
  const Tensor same = model.head(model.hidden(tokens, arange(4)));
  EXPECT_LT(max(abs(same - model.logits(tokens))).item(), 1e-6);
  const Tensor moved = model.head(model.hidden(tokens, arange(4) + 1));
  EXPECT_GT(max(abs(moved - model.logits(tokens))).item(), 1e-3);
}

TEST(GptModel, WithoutBiasesAndUntied) {
  GptConfig config = kSmall;
  config.bias = false;
  config.tied = false;
  config.hidden = 20;
  const Gpt model(config, Random(2));
  for (const NamedVar& each : model.named_parameters()) {
    EXPECT_FALSE(each.name.ends_with(".bias")) << each.name;
  }
  EXPECT_EQ(parameter(model.named_parameters(), "h.0.mlp.c_fc.weight").shape(), Shape({20, 12}));
  backward(model.loss(some_tokens(), some_tokens()));
  for (const NamedVar& each : model.named_parameters()) {
    EXPECT_TRUE(each.var.grad().defined()) << each.name;
  }
}

TEST(GptModel, DropsInTrainingAlone) {
  GptConfig config = kSmall;
  config.dropout = 0.3;
  Gpt model(config, Random(2));
  const auto difference = [&] {
    return max(abs(model.logits(some_tokens()) - model.logits(some_tokens()))).item();
  };
  EXPECT_GT(difference(), 1e-3);
  {
    const ModeGuard evaluation(false);
    EXPECT_EQ(difference(), 0);
  }
  model.set_training(false);
  EXPECT_EQ(difference(), 0);
}

// Recomputed dropout must draw what the forward pass drew.
TEST(GptModel, CheckpointingChangesNoGradientAlsoWithDropout) {
  GptConfig config = kSmall;
  config.dropout = 0.2;
  const auto gradients = [&](Checkpointing checkpointing) {
    Gpt model(config, Random(2));
    model.set_checkpointing(checkpointing);
    const auto step = compile([&](const Tensor& tokens) {
      std::vector<Tensor> values;
      for (const Var& var : model.parameters()) values.push_back(var);
      return grad(model.loss(tokens, tokens), values);
    });
    std::vector<std::vector<float>> found;
    for (const Tensor& each : step(some_tokens())) found.push_back(each.to_vector<float>());
    return found;
  };
  const auto plain = gradients(Checkpointing::none);
  for (const auto checkpointing : {Checkpointing::selective, Checkpointing::block}) {
    const auto other = gradients(checkpointing);
    ASSERT_EQ(other.size(), plain.size());
    for (size_t i = 0; i < plain.size(); ++i) {
      for (size_t j = 0; j < plain[i].size(); ++j) {
        ASSERT_NEAR(other[i][j], plain[i][j], 1e-6) << "parameter " << i << ", element " << j;
      }
    }
  }
}

TEST(GptModel, CheckpointingLowersThePeak) {
  const GptConfig config = {.vocabulary = 16, .context = 64, .width = 32, .layers = 6, .heads = 2};
  const auto peak = [&](const char* name) {
    Gpt model(config, Random(2));
    model.set_checkpointing(parse_checkpointing(name));
    const auto step = compile([&](const Tensor& tokens) {
      std::vector<Tensor> values;
      for (const Var& var : model.parameters()) values.push_back(var);
      return grad(model.loss(tokens, tokens), values);
    });
    step(Random(3).randint({8, 64}, 0, 16));
    return double(step.program().arena_bytes);
  };
  const double none = peak("none");
  EXPECT_LT(peak("selective"), 0.6 * none);
  EXPECT_LT(peak("block"), 0.5 * none);
}

TEST(GptModel, RefusesTokensItCannotTake) {
  const Gpt model(kSmall, Random(2));
  EXPECT_TRUE(error_text([&] {
                model.logits(zeros({1, 9}, DType::i32));
              }).starts_with("gpt: expected tokens (batch, at most 8), got (1, 9) (in gpt, "));
  EXPECT_EQ(error_text([&] { parse_checkpointing("all"); }),
            "checkpointing: expected none, selective or block, got 'all'");
}

// Configuration ---------------------------------------------------------------------------------

TEST(GptConfig, PresetsAreThePublishedOnes) {
  const GptConfig gpt2 = gpt_preset("gpt2");
  EXPECT_EQ(gpt2.vocabulary, 50257);
  EXPECT_EQ(gpt2.layers, 12);
  EXPECT_EQ(gpt_preset("gpt2-xl").width, 1600);
  EXPECT_EQ(gpt_preset("char").context, 256);
  for (const std::string& name : gpt_presets()) check(gpt_preset(name));
  EXPECT_EQ(error_text([] { gpt_preset("gpt5"); }),
            "gpt_preset: expected one of gpt2, gpt2-medium, gpt2-large, gpt2-xl, char, nano, got "
            "'gpt5'");
}

TEST(GptConfig, IsReadAsItWasWritten) {
  GptConfig config = kSmall;
  config.hidden = 20;
  config.dropout = 0.25;
  config.bias = false;
  config.tied = false;
  config.end_token = 3;
  for (const GptConfig& each : {config, kSmall, gpt_preset("gpt2")}) {
    const std::string text = to_json(each).dump(2);
    EXPECT_EQ(parse_gpt_config(Json::parse(text, "text"), "text"), each) << text;
  }
}

TEST(GptConfig, ReadsWhatHuggingFaceWrites) {
  const char* const text = R"({
    "activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"],
    "attn_pdrop": 0.1, "bos_token_id": 50256, "embd_pdrop": 0.1, "eos_token_id": 50256,
    "initializer_range": 0.02, "layer_norm_epsilon": 1e-05, "model_type": "gpt2",
    "n_ctx": 1024, "n_embd": 768, "n_head": 12, "n_layer": 12, "n_positions": 1024,
    "resid_pdrop": 0.1, "summary_use_proj": true, "vocab_size": 50257,
    "task_specific_params": {"text-generation": {"do_sample": true, "max_length": 50}}})";
  GptConfig expected = gpt_preset("gpt2");
  expected.dropout = 0.1;
  expected.end_token = 50256;
  EXPECT_EQ(parse_gpt_config(Json::parse(text, "text"), "text"), expected);
}

TEST(GptConfig, RefusesWhatItDoesNotCompute) {
  const auto error = [](const char* text) {
    return error_text([&] { parse_gpt_config(Json::parse(text, "text"), "config.json"); });
  };
  EXPECT_EQ(error(R"({"model_type": "llama"})"),
            "GptConfig: config.json: expected \"model_type\" to be the string \"gpt2\", got the "
            "string \"llama\"");
  EXPECT_EQ(error(R"({"scale_attn_by_inverse_layer_idx": true})"),
            "GptConfig: config.json: expected \"scale_attn_by_inverse_layer_idx\" to be false, got "
            "true");
  EXPECT_EQ(error(R"({"attn_pdrop": 0.5})"),
            "GptConfig: config.json: expected one dropout for all, got \"resid_pdrop\" 0.1 and "
            "\"attn_pdrop\" 0.5");
  EXPECT_EQ(error(R"({"n_layer": 0})"), "GptConfig: expected layers of at least 1, got 0");
  EXPECT_EQ(error(R"({"n_inner": -1})"), "GptConfig: expected hidden of at least 0, got -1");
  EXPECT_EQ(error(R"({"n_head": 5})"),
            "GptConfig: expected heads that divide the width, got 5 and 768");
  EXPECT_EQ(error(R"({"eos_token_id": 60000})"),
            "GptConfig: expected an end token below the vocabulary of 50257, got 60000");
  EXPECT_EQ(error(R"({"resid_pdrop": 1, "embd_pdrop": 1, "attn_pdrop": 1})"),
            "GptConfig: expected a dropout from 0 to below 1, got 1");
}

// Files -----------------------------------------------------------------------------------------

TEST(GptFiles, AreReadAsTheyWereWritten) {
  for (const bool tied : {true, false}) {
    GptConfig config = kSmall;
    config.tied = tied;
    const Gpt model(config, Random(2));
    const Folder folder("round");
    save_pretrained(folder.path(), model);
    const std::unique_ptr<Gpt> same = load_gpt(folder.path());
    EXPECT_EQ(same->config(), config);
    EXPECT_EQ(same->logits(some_tokens()).to_vector<float>(),
              model.logits(some_tokens()).to_vector<float>());
    const std::unique_ptr<Gpt> half = load_gpt(folder.path(), DType::bf16);
    EXPECT_EQ(half->parameters()[0].dtype(), DType::bf16);
  }
}

TEST(GptFiles, HaveHuggingFacesNamesAndLayout) {
  const NamedTensors tensors = to_pretrained(Gpt(kSmall, Random(2)));
  EXPECT_EQ(tensors.size(), 2 + 2 * 12 + 2);
  EXPECT_EQ(tensors.at("transformer.h.0.attn.c_attn.weight").shape(), Shape({12, 36}));
  EXPECT_EQ(tensors.at("transformer.h.1.mlp.c_proj.weight").shape(), Shape({48, 12}));
  EXPECT_EQ(tensors.at("transformer.wte.weight").shape(), Shape({11, 12}));
  EXPECT_FALSE(tensors.contains("lm_head.weight"));
  GptConfig untied = kSmall;
  untied.tied = false;
  EXPECT_TRUE(to_pretrained(Gpt(untied, Random(2))).contains("lm_head.weight"));
}

// The files that OpenAI's weights were first published in: no prefix, and masks.
TEST(GptFiles, OlderOnesAreTaken) {
  const Gpt model(kSmall, Random(2)), other(kSmall);
  NamedTensors tensors;
  for (const auto& [name, value] : to_pretrained(model)) {
    tensors.emplace(name.substr(std::string("transformer.").size()), value);
  }
  tensors.emplace("h.0.attn.bias", ones({1, 1, 8, 8}));
  tensors.emplace("h.0.attn.masked_bias", ones({}));
  load_pretrained(other, tensors, "file");
  EXPECT_EQ(other.logits(some_tokens()).to_vector<float>(),
            model.logits(some_tokens()).to_vector<float>());
  tensors.emplace("transformer.ln_f.bias", ones({12}));
  EXPECT_EQ(error_text([&] { load_pretrained(other, tensors, "file"); }),
            "load_gpt: file: 'ln_f.bias' is there twice, with and without 'transformer.'");
}

TEST(GptFiles, ErrorsSayEverythingThatIsWrong) {
  const Gpt model(kSmall, Random(2));
  NamedTensors tensors = to_pretrained(model);
  tensors.erase("transformer.ln_f.bias");
  tensors["transformer.h.0.attn.c_proj.weight"] = zeros({12, 13});
  tensors["extra"] = zeros({1});
  EXPECT_EQ(error_text([&] { load_pretrained(model, tensors, "x.safetensors"); }),
            "load_gpt: x.safetensors: load_state_dict: 1 missing: ln_f.bias; 1 unexpected: extra; "
            "1 of wrong shape: h.0.attn.c_proj.weight (expected (12, 12), got (13, 12))");

  const Folder folder("errors");
  const std::string path = folder.path().string();
  EXPECT_EQ(error_text([&] { load_gpt(folder.path()); }),
            "load_gpt: expected a folder with config.json and model.safetensors, got " + path +
                " without config.json");
  write(folder.path() / "config.json", "{}");
  EXPECT_EQ(error_text([&] { load_gpt(folder.path()); }),
            "load_gpt: expected a folder with config.json and model.safetensors, got " + path +
                " without model.safetensors");
  EXPECT_TRUE(error_text([&] {
                save_pretrained(folder.path() / "config.json" / "x", model);
              }).starts_with("save_pretrained: cannot make " + path));
}

}  // namespace
}  // namespace tessera
