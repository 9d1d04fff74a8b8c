#include "tessera/nn/layers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "support/expect_error.h"
#include "tessera/tessera.h"

namespace tessera {
namespace {

std::vector<float> counting(int64_t n) {
  std::vector<float> values;
  for (int64_t i = 0; i < n; ++i) values.push_back(float(i % 7) - 2.5f);
  return values;
}

TEST(LinearLayer, IsXTimesTransposedWeightPlusBias) {
  const Linear layer("fc", 3, 2, Random(5));
  const std::vector<float> x = counting(12), w = layer.weight().value().to_vector<float>(),
                           b = layer.bias().value().to_vector<float>();
  const Tensor y = layer(tensor(x, {2, 2, 3}));
  EXPECT_EQ(y.shape(), Shape({2, 2, 2}));
  const std::vector<float> values = y.to_vector<float>();
  for (size_t row = 0; row < 4; ++row) {
    for (size_t out = 0; out < 2; ++out) {
      double expected = b[out];
      for (size_t i = 0; i < 3; ++i) expected += double(x[row * 3 + i]) * w[out * 3 + i];
      EXPECT_NEAR(values[row * 2 + out], expected, 1e-5);
    }
  }
}

TEST(LinearLayer, BiasIsOptional) {
  const Linear layer("fc", 3, 2, Random(5), {.bias = false});
  EXPECT_FALSE(layer.bias().defined());
  EXPECT_EQ(layer.parameters().size(), 1u);
  for (const float value : layer(zeros({1, 3})).to_vector<float>()) EXPECT_EQ(value, 0);
}

TEST(LinearLayer, StartsUniformInOneOverRootOfIn) {
  const Linear layer("fc", 64, 128, Random(5));
  for (const Var& var : layer.parameters()) {
    const std::vector<float> values = var.value().to_vector<float>();
    EXPECT_LE(*std::ranges::max_element(values), 0.125f);
    EXPECT_GT(*std::ranges::max_element(values), 0.115f);
    EXPECT_GE(*std::ranges::min_element(values), -0.125f);
    EXPECT_LT(*std::ranges::min_element(values), -0.115f);
  }
}

TEST(LinearLayer, TakesAnInit) {
  const Linear layer("fc", 3, 2, Random(5), {.bias = false, .weight_init = constant_init(0.5)});
  EXPECT_EQ(layer.weight().value().to_vector<float>(), std::vector<float>(6, 0.5f));
}

TEST(EmbeddingLayer, TakesRows) {
  const Embedding layer("table", 7, 3, Random(5));
  const std::vector<float> table = layer.weight().value().to_vector<float>();
  const Tensor rows = layer(tensor(std::vector<int64_t>{6, 0, 6, 2}, {2, 2}));
  EXPECT_EQ(rows.shape(), Shape({2, 2, 3}));
  const std::vector<float> values = rows.to_vector<float>();
  const size_t indices[] = {6, 0, 6, 2};
  for (size_t i = 0; i < 12; ++i) EXPECT_EQ(values[i], table[indices[i / 3] * 3 + i % 3]);
}

TEST(LayerNormLayer, NormalizesTheLastAxis) {
  const LayerNorm layer("norm", 5, 1e-3);
  layer.weight().set(2);
  layer.bias().set(0.5);
  const std::vector<float> x = counting(15), y = layer(tensor(x, {3, 5})).to_vector<float>();
  for (size_t row = 0; row < 3; ++row) {
    double mean = 0, variance = 0;
    for (size_t i = 0; i < 5; ++i) mean += x[row * 5 + i] / 5.0;
    for (size_t i = 0; i < 5; ++i) variance += std::pow(x[row * 5 + i] - mean, 2) / 5;
    for (size_t i = 0; i < 5; ++i) {
      const double expected = 2 * (x[row * 5 + i] - mean) / std::sqrt(variance + 1e-3) + 0.5;
      EXPECT_NEAR(y[row * 5 + i], expected, 1e-5);
    }
  }
}

TEST(LayerNormLayer, BiasIsOptional) {
  const LayerNorm norm("norm", 4, 1e-5, false);
  EXPECT_EQ(norm.named_parameters().size(), 1u);
  const Tensor x = tensor(std::vector<float>{1, 5, 2, -3}, {1, 4});
  EXPECT_EQ(norm(x).to_vector<float>(), LayerNorm("norm", 4)(x).to_vector<float>());
  backward(sum(norm(x) * x));
  EXPECT_TRUE(norm.weight().grad().defined());
}

TEST(LayerNames, MayBeThoseOfACheckpoint) {
  const Random random(1);
  const MultiHeadAttention attention("a", 4, random,
                                     {.bias = false, .qkv_name = "c_attn", .out_name = "c_proj"});
  const FeedForward mlp("m", 4, 8, random, {.bias = false, .up_name = "c_fc", .down_name = "w2"});
  EXPECT_EQ(attention.named_parameters()[0].name, "c_attn.weight");
  EXPECT_EQ(attention.named_parameters()[1].name, "c_proj.weight");
  EXPECT_EQ(mlp.named_parameters()[0].name, "c_fc.weight");
  EXPECT_EQ(mlp.named_parameters()[1].name, "w2.weight");
}

TEST(DropoutLayer, DropsInTrainingOnly) {
  const Dropout layer("dropout", 0.25, Random(9));
  const Tensor x = ones({10'000});
  const std::vector<float> first = layer(x).to_vector<float>(), again = layer(x).to_vector<float>();
  const auto zeros_of = [](const std::vector<float>& v) { return std::ranges::count(v, 0.0f); };
  EXPECT_NEAR(double(zeros_of(first)), 2500, 200);
  EXPECT_EQ(zeros_of(first) + std::ranges::count(first, float(1 / 0.75)), 10'000);
  EXPECT_NE(first, again);
  const ModeGuard evaluation(false);
  EXPECT_EQ(layer(x).to_vector<float>(), std::vector<float>(10'000, 1.0f));
}

TEST(DropoutLayer, DrawsAnewInEveryReplay) {
  const Dropout layer("dropout", 0.5, Random(9));
  const auto step = compile([&](const Tensor& x) { return layer(x); });
  const Tensor x = ones({256});
  const std::vector<float> first = step(x).to_vector<float>();
  EXPECT_NE(first, step(x).to_vector<float>());
  EXPECT_EQ(step.stats().compilations, 1);
}

TEST(SequentialLayer, ChainsLayersAndFunctions) {
  Sequential model("model");
  const Linear& first = model.add<Linear>("fc1", 3, 4, Random(1));
  model.add("relu", relu);
  const Linear& second = model.add<Linear>("fc2", 4, 2, Random(2));
  EXPECT_EQ(model.parameters().size(), 4u);
  EXPECT_EQ(model.named_parameters()[2].name, "fc2.weight");
  const Tensor x = tensor(counting(6), {2, 3});
  EXPECT_EQ(model(x).to_vector<float>(), second(relu(first(x))).to_vector<float>());
}

TEST(LinearLayer, TakesAnInitOfItsBias) {
  const Linear layer("fc", 3, 2, Random(5), {.bias_init = constant_init(0)});
  EXPECT_EQ(layer.bias().value().to_vector<float>(), std::vector<float>(2, 0.0f));
  EXPECT_NE(layer.weight().value().to_vector<float>()[0], 0);
}

TEST(AttentionLayer, DropsWeightsInTrainingOnly) {
  const MultiHeadAttention layer("attention", 8, Random(5), {.heads = 2, .dropout = 0.5});
  const Tensor x = tensor(counting(64), {1, 8, 8});
  const auto run = [&] { return layer(x).to_vector<float>(); };
  EXPECT_NE(run(), run());
  const ModeGuard evaluation(false);
  EXPECT_EQ(run(), run());
}

// What a decoder does: keys and values of a prefix kept, the last token attends to all.
TEST(AttentionLayer, ItsHalvesMakeACache) {
  const MultiHeadAttention layer("attention", 8, Random(5),
                                 {.heads = 4, .kv_heads = 2, .rotary = RotaryOptions{}});
  EXPECT_EQ(layer.qkv().weight().shape(), Shape({16, 8}));
  const Tensor x = tensor(counting(48), {1, 6, 8});
  const auto before = layer.project(slice(x, 1, 0, 5));
  const auto last = layer.project(slice(x, 1, 5, 6), tensor(std::vector<int64_t>{5}));
  const Tensor k = concat({before.k, last.k}, 2), v = concat({before.v, last.v}, 2);
  const Tensor y = layer.join(attention(last.q, k, v, {.causal = true}));
  const std::vector<float> step = y.to_vector<float>();
  const std::vector<float> whole = slice(layer(x), 1, 5, 6).to_vector<float>();
  ASSERT_EQ(step.size(), 8u);
  for (size_t i = 0; i < step.size(); ++i) EXPECT_NEAR(step[i], whole[i], 1e-6);
}

TEST(AttentionLayer, TakesInits) {
  const MultiHeadAttention layer("attention", 4, Random(5),
                                 {.heads = 2,
                                  .weight_init = constant_init(1),
                                  .bias_init = constant_init(2),
                                  .out_init = constant_init(3)});
  EXPECT_EQ(layer.qkv().weight().value().to_vector<float>()[0], 1);
  EXPECT_EQ(layer.qkv().bias().value().to_vector<float>()[0], 2);
  EXPECT_EQ(layer.out().weight().value().to_vector<float>()[0], 3);
}

TEST(FeedForwardLayer, HasAGateWhereItsKindHas) {
  const FeedForward plain("mlp", 4, 8, Random(5), {.down_init = constant_init(3)});
  EXPECT_EQ(plain.gate(), nullptr);
  EXPECT_EQ(plain.down().weight().value().to_vector<float>()[0], 3);
  const FeedForward gated("mlp", 4, 8, Random(5), {.kind = FeedForwardKind::swiglu, .bias = false});
  ASSERT_NE(gated.gate(), nullptr);
  EXPECT_EQ(gated.gate()->weight().shape(), Shape({8, 4}));
  EXPECT_EQ(gated.named_parameters().size(), 3u);
}

TEST(AttentionErrors, NameWhatIsWrong) {
  const auto make = [](int64_t width, const MultiHeadAttentionOptions& options) {
    return error_text([&] { MultiHeadAttention("a", width, Random(1), options); });
  };
  EXPECT_EQ(make(8, {.heads = 3}),
            "MultiHeadAttention: expected a number of heads that divides the width for 'a', got 3 "
            "and 8");
  EXPECT_EQ(make(8, {.heads = 4, .kv_heads = 3}),
            "MultiHeadAttention: expected kv_heads that divide the heads for 'a', got 3 and 4");
  EXPECT_EQ(make(6, {.heads = 2, .rotary = RotaryOptions{}}),
            "MultiHeadAttention: rotary embedding expects heads of even width for 'a', got 3");
  EXPECT_EQ(make(8, {.dropout = 1}),
            "MultiHeadAttention: expected a dropout from 0 to below 1 for 'a', got 1");
  const MultiHeadAttention layer("a", 8, Random(1), {.heads = 2});
  EXPECT_TRUE(error_text([&] {
                layer(ones({5, 8}));
              }).starts_with("a: expected an input (batch, length, 8), got (5, 8)"));
}

TEST(LayerErrors, NameWhatIsWrong) {
  const Random random(1);
  const Linear linear("fc", 3, 2, random);
  const int line = __LINE__ + 1;
  EXPECT_EQ(error_text([&] {
              linear(ones({4, 2}));
            }),
            cat("fc: expected an input (…, 3), got (4, 2) (in fc, layers_test.cpp:", line, ")"));
  EXPECT_TRUE(error_text([&] {
                LayerNorm("norm", 3)(ones({}));
              }).starts_with("norm: expected an input (…, 3), got () (in norm, "));
  EXPECT_EQ(error_text([&] { Linear("fc", 0, 2, random); }),
            "Linear: expected extents of at least 1 for 'fc', got 0 and 2");
  EXPECT_EQ(error_text([&] { Linear("head", Var(ones({3}), "w")); }),
            "Linear: expected a weight (out, in) for 'head', got (3,)");
  EXPECT_TRUE(error_text([&] {
                Embedding("table", 3, 2, random)(ones({2}));
              }).starts_with("table: expected integer indices, got f32 (in table, "));
  EXPECT_EQ(error_text([&] { Dropout("drop", 1, random); }),
            "Dropout: expected a probability from 0 to below 1 for 'drop', got 1");
}

}  // namespace
}  // namespace tessera
