#include "tessera/models/gpt_config.h"

#include "tessera/base/error.h"

namespace tessera {

namespace {

struct Preset {
  std::string_view name;
  GptConfig config;
};

// clang-format off
const Preset kPresets[] = {
  {"gpt2", {}},
  {"gpt2-medium", {.width = 1024, .layers = 24, .heads = 16}},
  {"gpt2-large", {.width = 1280, .layers = 36, .heads = 20}},
  {"gpt2-xl", {.width = 1600, .layers = 48, .heads = 25}},
  {"char", {.vocabulary = 65, .context = 256, .width = 384, .layers = 6, .heads = 6,
            .dropout = 0.2}},
  {"nano", {.vocabulary = 256, .context = 128, .width = 128, .layers = 4, .heads = 4}},
};
// clang-format on

// Switches of HuggingFace's GPT-2 that this model has in one position.
struct Fixed {
  std::string_view key;
  Json value;
};
const Fixed kFixed[] = {
    {"model_type", "gpt2"},         {"activation_function", "gelu_new"},
    {"scale_attn_weights", true},   {"scale_attn_by_inverse_layer_idx", false},
    {"add_cross_attention", false},
};

double dropout_of(const Json& json, std::string_view name) {
  const double dropout = json.get<double>("resid_pdrop", 0.1);
  for (const char* key : {"embd_pdrop", "attn_pdrop"}) {
    if (const double other = json.get<double>(key, 0.1); other != dropout) {
      fail("GptConfig: ", name, ": expected one dropout for all, got \"resid_pdrop\" ", dropout,
           " and \"", key, "\" ", other);
    }
  }
  return dropout;
}

}  // namespace

void check(const GptConfig& c) {
  struct Extent {
    const char* name;
    int64_t value;
  };
  for (const auto& [name, value] : {Extent{"vocabulary", c.vocabulary},
                                    {"context", c.context},
                                    {"width", c.width},
                                    {"layers", c.layers},
                                    {"heads", c.heads}}) {
    if (value < 1) fail("GptConfig: expected ", name, " of at least 1, got ", value);
  }
  if (c.hidden < 0) fail("GptConfig: expected hidden of at least 0, got ", c.hidden);
  if (c.width % c.heads != 0) {
    fail("GptConfig: expected heads that divide the width, got ", c.heads, " and ", c.width);
  }
  if (!(c.dropout >= 0 && c.dropout < 1)) {
    fail("GptConfig: expected a dropout from 0 to below 1, got ", c.dropout);
  }
  if (c.end_token && (*c.end_token < 0 || *c.end_token >= c.vocabulary)) {
    fail("GptConfig: expected an end token below the vocabulary of ", c.vocabulary, ", got ",
         *c.end_token);
  }
}

int64_t parameter_count(const GptConfig& c) {
  const int64_t hidden = c.hidden == 0 ? 4 * c.width : c.hidden, bias = c.bias ? 1 : 0;
  const auto linear = [&](int64_t in, int64_t out) { return (in + bias) * out; };
  const int64_t norm = (1 + bias) * c.width;
  const int64_t block = 2 * norm + linear(c.width, 3 * c.width) + linear(c.width, c.width) +
                        linear(c.width, hidden) + linear(hidden, c.width);
  const int64_t tables = ((c.tied ? 1 : 2) * c.vocabulary + c.context) * c.width;
  return tables + c.layers * block + norm;
}

double training_flops(const GptConfig& c) {
  const double n = double(parameter_count(c) - c.context * c.width);
  return 6 * n + 6 * double(c.layers * c.width) * double(c.context);
}

GptConfig gpt_preset(std::string_view name) {
  for (const Preset& preset : kPresets) {
    if (preset.name == name) return preset.config;
  }
  std::string names;
  for (const std::string& known : gpt_presets()) names += (names.empty() ? "" : ", ") + known;
  fail("gpt_preset: expected one of ", names, ", got '", name, "'");
}

std::vector<std::string> gpt_presets() {
  std::vector<std::string> names;
  for (const Preset& preset : kPresets) names.emplace_back(preset.name);
  return names;
}

Json to_json(const GptConfig& c) {
  Json json;
  json.set("architectures", Json::array().push("GPT2LMHeadModel"));
  for (const auto& [key, value] : kFixed) json.set(key, value);
  json.set("vocab_size", c.vocabulary);
  json.set("n_positions", c.context);
  json.set("n_embd", c.width);
  json.set("n_layer", c.layers);
  json.set("n_head", c.heads);
  json.set("n_inner", c.hidden == 0 ? Json() : Json(c.hidden));
  for (const char* key : {"resid_pdrop", "embd_pdrop", "attn_pdrop"}) json.set(key, c.dropout);
  json.set("layer_norm_epsilon", c.epsilon);
  json.set("initializer_range", c.deviation);
  json.set("tie_word_embeddings", c.tied);
  if (!c.bias) json.set("bias", false);
  for (const char* key : {"bos_token_id", "eos_token_id"}) {
    json.set(key, c.end_token ? Json(*c.end_token) : Json());
  }
  return json;
}

GptConfig parse_gpt_config(const Json& json, std::string_view name) {
  json.as_object(name);
  for (const auto& [key, value] : kFixed) {
    const Json& given = json[key];
    if (!given.is_null() && given != value) {
      fail("GptConfig: ", name, ": expected \"", key, "\" to be ", value.describe(), ", got ",
           given.describe());
    }
  }
  const GptConfig standard;
  GptConfig c;
  c.vocabulary = json.get<int64_t>("vocab_size", standard.vocabulary);
  c.context = json.get<int64_t>("n_positions", standard.context);
  c.width = json.get<int64_t>("n_embd", standard.width);
  c.layers = json.get<int64_t>("n_layer", standard.layers);
  c.heads = json.get<int64_t>("n_head", standard.heads);
  c.hidden = json.get<int64_t>("n_inner", 0);
  c.dropout = dropout_of(json, name);
  c.epsilon = json.get<double>("layer_norm_epsilon", standard.epsilon);
  c.deviation = json.get<double>("initializer_range", standard.deviation);
  c.tied = json.get<bool>("tie_word_embeddings", true);
  c.bias = json.get<bool>("bias", true);
  if (const Json& end = json["eos_token_id"]; !end.is_null()) {
    c.end_token = end.as_int("eos_token_id");
  }
  check(c);
  return c;
}

}  // namespace tessera
