// Logits, every gradient and ten losses of training against PyTorch's numbers, which golden_gpt.py
// has written. Parameters come through load_pretrained: the file has HuggingFace's names and
// layout.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "support/named_part.h"
#include "tessera/tessera.h"

namespace tessera {
namespace {

constexpr GptConfig kConfig = {
    .vocabulary = 61, .context = 16, .width = 32, .layers = 2, .heads = 2};

const NamedTensors& golden() {
  static const NamedTensors tensors =
      load_safetensors(std::string(TESSERA_TEST_DIR) + "/data/gpt.safetensors");
  return tensors;
}

// Cast by the CPU: other devices would compile a kernel for each shape.
std::vector<double> doubles(const Tensor& x) {
  return cast(x.to(DeviceKind::cpu), DType::f64).to_vector<double>();
}

// The largest distance of an element, as a share of the largest value of the reference.
double distance(const Tensor& result, const Tensor& expected) {
  EXPECT_EQ(result.shape(), expected.shape());
  const std::vector<double> values = doubles(result), wanted = doubles(expected);
  double scale = 0, most = 0;
  for (const double x : wanted) scale = std::max(scale, std::abs(x));
  for (size_t i = 0; i < values.size(); ++i) {
    most = std::max(most, std::abs(values[i] - wanted[i]));
  }
  return most / scale;
}

struct Precision {
  DType dtype;
  double values;  // of logits and gradients, as a share of the largest
  double losses;
};
// The file has logits and gradients as f32.
const Precision kPrecisions[] = {{DType::f64, 1e-7, 1e-9},
                                 {DType::f32, 1e-5, 1e-5},
                                 {DType::bf16, 5e-2, 3e-2},
                                 {DType::f16, 5e-3, 1e-3}};

class GoldenGpt : public ::testing::TestWithParam<std::tuple<Precision, Checkpointing>> {
 protected:
  GoldenGpt() {
    model_.to(precision_.dtype);
    load_pretrained(model_, named_part(golden(), "param/"), "golden");
    model_.set_checkpointing(std::get<1>(GetParam()));
  }

  const Precision precision_ = std::get<0>(GetParam());
  Gpt model_{kConfig};
  const Tensor tokens_ = golden().at("tokens"), targets_ = golden().at("targets");
};

TEST_P(GoldenGpt, LogitsAndEveryGradient) {
  const Tensor logits = model_.logits(tokens_);
  backward(model_.loss(tokens_, targets_));
  std::vector<Tensor> all = {logits};
  for (const Var& var : model_.parameters()) all.push_back(var.grad());
  eval(all);
  EXPECT_LT(distance(logits, golden().at("logits")), precision_.values);
  size_t compared = 0;
  for (const auto& [name, var] : model_.named_parameters()) {
    const Tensor expected = golden().at("grad/transformer." + name);
    const bool turned = name.find(".c_") != std::string::npos && expected.rank() == 2;
    const Tensor grad = var.grad().to(DeviceKind::cpu);
    EXPECT_LT(distance(turned ? transpose(grad) : grad, expected), precision_.values) << name;
    ++compared;
  }
  EXPECT_EQ(compared, named_part(golden(), "grad/").size());
}

// With a scaled loss in f16.
TEST_P(GoldenGpt, TenStepsOfAdamW) {
  const bool scales = precision_.dtype == DType::f16;
  AdamW optimizer(model_.named_parameters(),
                  {.lr = 3e-3, .beta2 = 0.95, .weight_decay = 0.1, .skip_nonfinite = scales});
  const LossScaler scaler;
  const auto step = compile([&](const Tensor& tokens, const Tensor& targets) {
    const Tensor loss = model_.loss(tokens, targets);
    scales ? scaler.backward(loss) : backward(loss);
    if (scales) scaler.unscale(optimizer);
    optimizer.step();
    return loss;
  });
  for (const double expected : doubles(golden().at("losses"))) {
    EXPECT_NEAR(step(tokens_, targets_).item(), expected, precision_.losses * expected);
  }
  EXPECT_EQ(step.stats().compilations, 1);
  EXPECT_EQ(optimizer.skipped().value().item(), 0);
}

std::string name_of(const ::testing::TestParamInfo<std::tuple<Precision, Checkpointing>>& test) {
  const char* const names[] = {"none", "selective", "block"};
  return cat(std::get<0>(test.param).dtype, "_", names[size_t(std::get<1>(test.param))]);
}

INSTANTIATE_TEST_SUITE_P(All, GoldenGpt,
                         ::testing::Combine(::testing::ValuesIn(kPrecisions),
                                            ::testing::Values(Checkpointing::none,
                                                              Checkpointing::selective,
                                                              Checkpointing::block)),
                         name_of);

}  // namespace
}  // namespace tessera
