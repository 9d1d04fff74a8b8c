// Outputs and all gradients of every layer against PyTorch's numbers, which golden_layers.py has
// written: it has the layers and their weights.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "support/named_part.h"
#include "tessera/tessera.h"

namespace tessera {
namespace {

const NamedTensors& golden() {
  static const NamedTensors tensors =
      load_safetensors(std::string(TESSERA_TEST_DIR) + "/data/layers.safetensors");
  return tensors;
}

// The largest distance of an element, as a share of the largest value of the reference.
void expect_close(const Tensor& result, const Tensor& expected, double tolerance,
                  const std::string& what) {
  ASSERT_EQ(result.shape(), expected.shape()) << what;
  const std::vector<double> values = cast(result, DType::f64).to_vector<double>();
  const std::vector<double> wanted = expected.to_vector<double>();
  double scale = 1;
  for (const double x : wanted) scale = std::max(scale, std::abs(x));
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_NEAR(values[i], wanted[i], tolerance * scale) << what << ", element " << i;
  }
}

// Cases -----------------------------------------------------------------------------------------

struct Tied : Layer {
  Tied()
      : Layer("tied"),
        embedding("embedding", 7, 4, Random(1)),
        norm("norm", 4),
        head("head", embedding.weight()) {
    add_module(embedding);
    add_module(norm);
    add_module(head);
  }
  Tensor forward(const Tensor& tokens) const override { return head(norm(embedding(tokens))); }

  Embedding embedding;
  LayerNorm norm;
  Linear head;
};

std::unique_ptr<Layer> make_sequential() {
  auto model = std::make_unique<Sequential>("model");
  model->add<Linear>("fc1", 5, 8, Random(1));
  model->add("relu", relu);
  model->add<LayerNorm>("norm", 8);
  model->add<Linear>("fc2", 8, 3, Random(1), LinearOptions{.bias = false});
  return model;
}

std::unique_ptr<Layer> make_mlp(FeedForwardKind kind, bool bias) {
  return std::make_unique<FeedForward>("mlp", 6, 12, Random(1),
                                       FeedForwardOptions{.kind = kind, .bias = bias});
}

std::unique_ptr<Layer> make_attention(int64_t width, const MultiHeadAttentionOptions& options) {
  return std::make_unique<MultiHeadAttention>("attention", width, Random(1), options);
}

struct Case {
  const char* name;
  std::unique_ptr<Layer> (*make)();
};

// clang-format off
const Case kCases[] = {
  {"linear", []() -> std::unique_ptr<Layer> {
     return std::make_unique<Linear>("fc", 5, 3, Random(1)); }},
  {"linear_without_bias", []() -> std::unique_ptr<Layer> {
     return std::make_unique<Linear>("fc", 5, 3, Random(1), LinearOptions{.bias = false}); }},
  {"embedding", []() -> std::unique_ptr<Layer> {
     return std::make_unique<Embedding>("table", 7, 3, Random(1)); }},
  {"layer_norm", []() -> std::unique_ptr<Layer> {
     return std::make_unique<LayerNorm>("norm", 6, 1e-3); }},
  {"rms_norm", []() -> std::unique_ptr<Layer> {
     return std::make_unique<RMSNorm>("norm", 6, 1e-4); }},
  {"mlp_relu", [] { return make_mlp(FeedForwardKind::relu, true); }},
  {"mlp_gelu", [] { return make_mlp(FeedForwardKind::gelu, true); }},
  {"mlp_gelu_tanh", [] { return make_mlp(FeedForwardKind::gelu_tanh, false); }},
  {"mlp_swiglu", [] { return make_mlp(FeedForwardKind::swiglu, false); }},
  {"attention", [] { return make_attention(8, {.heads = 2, .causal = false}); }},
  {"attention_causal", [] { return make_attention(8, {.heads = 2}); }},
  {"attention_grouped", [] {
     return make_attention(16, {.heads = 4, .kv_heads = 2, .bias = false}); }},
  {"attention_rotary", [] {
     return make_attention(8, {.heads = 2, .kv_heads = 1, .rotary = RotaryOptions{}}); }},
  {"attention_interleaved", [] {
     return make_attention(8, {.heads = 2, .causal = false,
                               .rotary = RotaryOptions{.base = 100, .interleaved = true}}); }},
  {"sequential", make_sequential},
  {"tied", []() -> std::unique_ptr<Layer> { return std::make_unique<Tied>(); }},
};
// clang-format on

struct Precision {
  DType dtype;
  double tolerance;  // as a share of the largest value
};
const Precision kPrecisions[] = {{DType::f64, 1e-12}, {DType::f32, 3e-6}, {DType::bf16, 3e-2}};

class GoldenLayers : public ::testing::TestWithParam<std::tuple<Case, Precision>> {};

TEST_P(GoldenLayers, ArePyTorchs) {
  const auto& [test, precision] = GetParam();
  const auto [dtype, tolerance] = precision;
  const std::string name = test.name;
  const std::unique_ptr<Layer> layer = test.make();
  layer->to(dtype);
  layer->load_state_dict(
      named_part(golden(), name + "/param/"));  // strict: names and shapes are those of PyTorch

  const Tensor given = golden().at(name + "/in");
  const bool is_index = is_integer(given.dtype());
  const Tensor x = is_index ? given : cast(given, dtype).detach();
  const Tensor out = (*layer)(x);
  EXPECT_EQ(out.dtype(), dtype);
  expect_close(out, golden().at(name + "/out"), tolerance, "out");

  const Tensor loss = sum(cast(out, compute_type(dtype)) * golden().at(name + "/cotangent"));
  if (!is_index) expect_close(grad(loss, x), golden().at(name + "/grad/in"), tolerance, "input");
  backward(loss);
  for (const auto& [parameter, var] : layer->named_parameters()) {
    expect_close(var.grad(), golden().at(name + "/grad/" + parameter), tolerance, parameter);
  }
}

INSTANTIATE_TEST_SUITE_P(All, GoldenLayers,
                         ::testing::Combine(::testing::ValuesIn(kCases),
                                            ::testing::ValuesIn(kPrecisions)),
                         [](const auto& test) {
                           return cat(std::get<0>(test.param).name, "_",
                                      std::get<1>(test.param).dtype);
                         });

TEST(GoldenLayersFile, EveryCaseOfTheFileIsTested) {
  for (const auto& [name, tensor] : golden()) {
    const auto is_case = [&, &full = name](const Case& test) {
      return full.starts_with(cat(test.name, "/"));
    };
    EXPECT_TRUE(std::ranges::any_of(kCases, is_case)) << name;
  }
}

}  // namespace
}  // namespace tessera
