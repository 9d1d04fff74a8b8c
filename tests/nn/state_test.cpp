// State dicts, freezing, modes, moves and the summary of modules.
#include <gtest/gtest.h>

#include <algorithm>

#include "support/expect_error.h"
#include "tessera/tessera.h"

namespace tessera {
namespace {

struct Model : Layer {
  Model()
      : Layer("model"),
        embedding("embedding", 5, 4, Random(1)),
        fc("fc", 4, 4, Random(2)),
        drop("drop", 0.5, Random(3)),
        head("head", embedding.weight()) {
    add_module(embedding);
    add_module(fc);
    add_module(drop);
    add_module(head);
    seen = add_buffer("seen", zeros({}, DType::i64));
    average = add_buffer("average", zeros({4}));
  }
  Tensor forward(const Tensor& tokens) const override { return head(drop(fc(embedding(tokens)))); }

  Embedding embedding;
  Linear fc;
  Dropout drop;
  Linear head;
  Var seen, average;
};

const Tensor& tokens() {
  static const Tensor t = tensor(std::vector<int64_t>{0, 1, 2, 3, 4, 4});
  return t;
}

std::vector<float> floats(const Tensor& x) { return cast(x, DType::f32).to_vector<float>(); }

std::vector<std::string> names_of(const std::vector<NamedVar>& vars) {
  std::vector<std::string> names;
  for (const NamedVar& named : vars) names.push_back(named.name);
  return names;
}

using Names = std::vector<std::string>;

// State dicts -----------------------------------------------------------------------------------

TEST(StateDict, HoldsParametersAndBuffersOnce) {
  const Model model;
  EXPECT_EQ(names_of(model.named_parameters()),
            Names({"embedding.weight", "fc.weight", "fc.bias"}));
  EXPECT_EQ(names_of(model.named_buffers()), Names({"seen", "average"}));
  Names names;
  for (const auto& [name, tensor] : model.state_dict()) names.push_back(name);
  EXPECT_EQ(names, Names({"average", "embedding.weight", "fc.bias", "fc.weight", "seen"}));
}

TEST(StateDict, GoesThroughAFile) {
  const Model from, to;
  from.seen.set(7);
  from.fc.bias().set(0.25);
  from.embedding.weight().set(-2);
  const std::string path = testing::TempDir() + "tessera_state_dict.safetensors";
  save_safetensors(path, from.state_dict());
  const LoadReport report = to.load_state_dict(load_safetensors(path));
  EXPECT_TRUE(report.complete());
  std::filesystem::remove(path);
  EXPECT_EQ(to.seen.value().item(), 7);
  EXPECT_EQ(floats(to.fc.weight()), floats(from.fc.weight()));
  EXPECT_EQ(floats(to.fc.bias()), std::vector<float>(4, 0.25f));
  EXPECT_EQ(floats(to.head.weight()), std::vector<float>(20, -2.0f));
}

// PyTorch writes tied weights under both names, HuggingFace under either.
TEST(StateDict, AnyNameOfASharedVarWillDo) {
  const Model model;
  NamedTensors tensors = model.state_dict();
  tensors.erase("embedding.weight");
  tensors.emplace("head.weight", full({5, 4}, 0.5));
  EXPECT_TRUE(model.load_state_dict(tensors).complete());
  EXPECT_EQ(floats(model.embedding.weight()), std::vector<float>(20, 0.5f));
  tensors = model.state_dict();  // those of before have been replaced
  tensors["embedding.weight"] = full({5, 4}, 0.75);
  tensors.emplace("head.weight", full({5, 4}, 0.5));
  EXPECT_TRUE(model.load_state_dict(tensors).complete());
  EXPECT_EQ(floats(model.embedding.weight()), std::vector<float>(20, 0.75f));
}

TEST(StateDict, ValuesTakeTheTypeOfTheVar) {
  const Model model;
  model.to(DType::bf16);
  NamedTensors tensors = model.state_dict();
  tensors["fc.bias"] = full({4}, 1.0 / 3, DType::f64);
  model.load_state_dict(tensors);
  EXPECT_EQ(model.fc.bias().dtype(), DType::bf16);
  EXPECT_EQ(floats(model.fc.bias()), std::vector<float>(4, float(bf16(1.0f / 3))));
}

NamedTensors damaged(const Model& model) {
  NamedTensors tensors = model.state_dict();
  tensors.erase("seen");
  tensors.erase("embedding.weight");
  tensors["fc.weight"] = zeros({4, 3});
  tensors["fc.bias"] = full({4}, 9);
  tensors["other"] = zeros({1});
  return tensors;
}

TEST(StateDict, StrictLoadsAllOrNothing) {
  const Model model;
  const std::vector<float> before = floats(model.fc.bias());
  EXPECT_EQ(error_text([&] { model.load_state_dict(damaged(model)); }),
            "load_state_dict: 2 missing: seen, embedding.weight; 1 unexpected: other; 1 of wrong "
            "shape: fc.weight (expected (4, 4), got (4, 3))");
  EXPECT_EQ(floats(model.fc.bias()), before);
}

TEST(StateDict, NonStrictLoadsWhatFits) {
  const Model model;
  const std::vector<float> before = floats(model.fc.weight());
  const LoadReport report = model.load_state_dict(damaged(model), false);
  EXPECT_FALSE(report.complete());
  EXPECT_EQ(report.missing, Names({"seen", "embedding.weight"}));
  EXPECT_EQ(report.unexpected, Names({"other"}));
  EXPECT_EQ(report.wrong_shape, Names({"fc.weight (expected (4, 4), got (4, 3))"}));
  EXPECT_EQ(floats(model.fc.bias()), std::vector<float>(4, 9));
  EXPECT_EQ(floats(model.fc.weight()), before);
}

// Freezing --------------------------------------------------------------------------------------

TEST(Freezing, KeepsGradientsAway) {
  const Model model;
  EXPECT_EQ(model.freeze("*.weight"), 2);
  EXPECT_EQ(names_of(model.named_trainable()), Names({"fc.bias"}));
  EXPECT_EQ(names_of(model.named_parameters()).size(), 3u);
  SGD optimizer(model.named_trainable(), {.lr = 0.1});
  const std::vector<float> weight = floats(model.fc.weight()), bias = floats(model.fc.bias());
  backward(sum(model(tokens())));
  EXPECT_FALSE(model.fc.weight().grad().defined());
  optimizer.step();
  EXPECT_EQ(floats(model.fc.weight()), weight);
  EXPECT_NE(floats(model.fc.bias()), bias);
  EXPECT_EQ(model.freeze("fc.*", false), 2);
  EXPECT_TRUE(model.fc.weight().trainable());
  EXPECT_FALSE(model.embedding.weight().trainable());
  EXPECT_EQ(model.freeze("head.weight", false), 1);  // by the other name
  EXPECT_TRUE(model.embedding.weight().trainable());
}

TEST(Freezing, ReachesCompiledSteps) {
  const Linear fc("fc", 2, 2, Random(1));
  SGD optimizer(fc.named_parameters(), {.lr = 0.1});
  const auto step = compile([&](const Tensor& x) {
    backward(sum(fc(x)));
    optimizer.step();
  });
  const Tensor x = ones({1, 2});
  step(x);
  fc.freeze("weight");
  const std::vector<float> weight = floats(fc.weight()), bias = floats(fc.bias());
  step(x);
  EXPECT_EQ(floats(fc.weight()), weight);
  EXPECT_NE(floats(fc.bias()), bias);
  EXPECT_EQ(step.stats().compilations, 2);
  fc.freeze("weight");  // it is frozen: nothing changes
  step(x);
  EXPECT_EQ(step.stats().compilations, 2);
}

TEST(Freezing, ErrorsNameWhatIsWrong) {
  const Model model;
  EXPECT_EQ(error_text([&] { model.freeze("*.scale"); }),
            "freeze: no parameter of 'model' matches '*.scale'");
  EXPECT_EQ(error_text([&] { model.freeze("seen"); }),
            "freeze: no parameter of 'model' matches 'seen'");
  EXPECT_EQ(error_text([&] { model.seen.set_trainable(true); }),
            "set_trainable: expected a floating-point Var, got i64() for 'model.seen'");
}

// Modes -----------------------------------------------------------------------------------------

TEST(Modes, AModuleCanStayInEvaluation) {
  Model model;
  const auto run = compile([&](const Tensor& t) { return model(t); });
  const auto is_same_twice = [&] { return floats(run(tokens())) == floats(run(tokens())); };
  EXPECT_FALSE(is_same_twice());
  model.set_training(false);
  EXPECT_FALSE(model.drop.follows_training());
  EXPECT_TRUE(is_same_twice());
  model.set_training(true);
  EXPECT_FALSE(is_same_twice());
  const ModeGuard evaluation(false);
  EXPECT_TRUE(is_same_twice());
}

// Moves -----------------------------------------------------------------------------------------

TEST(Moves, ChangeTheTypeOfFloatingPointVars) {
  const Model model;
  const std::vector<float> before = floats(model.fc.weight());
  model.to(DType::bf16);
  EXPECT_EQ(model.fc.weight().dtype(), DType::bf16);
  EXPECT_EQ(model.average.dtype(), DType::bf16);
  EXPECT_EQ(model.seen.dtype(), DType::i64);
  EXPECT_TRUE(model.head.weight().same_slot(model.embedding.weight()));
  EXPECT_EQ(model.fc.weight().name(), "fc.weight");
  EXPECT_TRUE(model.fc.weight().trainable());
  const std::vector<float> after = floats(model.fc.weight());
  for (size_t i = 0; i < before.size(); ++i) EXPECT_EQ(after[i], float(bf16(before[i])));
  EXPECT_EQ(model(tokens()).dtype(), DType::bf16);
}

TEST(Moves, ReachCompiledStepsAndForgetGradients) {
  const Linear fc("fc", 2, 2, Random(1));
  const auto run = compile([&](const Tensor& x) { return fc(x); });
  const Tensor x = ones({1, 2});
  EXPECT_EQ(run(x).dtype(), DType::f32);
  backward(sum(fc(x)));
  fc.to(DType::f64);
  EXPECT_FALSE(fc.weight().grad().defined());
  const Tensor y = run(x);
  EXPECT_EQ(y.dtype(), DType::f64);
  fc.weight().set(0);
  fc.bias().set(3);
  EXPECT_EQ(run(x).to_vector<double>(), std::vector<double>(2, 3));
  EXPECT_EQ(y.dtype(), DType::f64);
  EXPECT_EQ(run.stats().compilations, 2);
}

TEST(Moves, OldValuesAreReplaced) {
  const Linear fc("fc", 2, 2, Random(1));
  const Tensor old = fc.weight();
  fc.to(DType::f64);
  const std::string text = error_text([&] { old.eval(); });
  EXPECT_TRUE(text.starts_with("fc.weight: value was replaced by step ")) << text;
}

TEST(Moves, ToTheDeviceWhereItIsChangeNothing) {
  const Linear fc("fc", 2, 2, Random(1));
  const Tensor before = fc.weight();
  fc.to(before.device());
  EXPECT_EQ(floats(before), floats(fc.weight()));
}

TEST(Moves, ErrorsNameWhatIsWrong) {
  const Linear fc("fc", 2, 2, Random(1));
  EXPECT_EQ(error_text([&] { fc.to(DType::i32); }),
            "Module: expected a floating-point type for 'fc', got i32");
  const auto run = compile([&](const Tensor& x) {
    fc.to(DType::f64);
    return x;
  });
  EXPECT_EQ(error_text([&] { run(ones({1})); }),
            "convert: 'fc.weight' cannot be changed while a function is being compiled: do it "
            "before");
}

// Summary ---------------------------------------------------------------------------------------

TEST(Summary, IsATable) {
  const Model model;
  model.freeze("embedding.*");
  EXPECT_EQ(summary(model),
            "name              shape   type  elements  bytes\n"
            "embedding.weight  (5, 4)  f32         20     80  frozen\n"
            "fc.weight         (4, 4)  f32         16     64\n"
            "fc.bias           (4,)    f32          4     16\n"
            "seen              ()      i64          1      8  buffer\n"
            "average           (4,)    f32          4     16  buffer\n"
            "40 parameters, 20 of them trained; 184 bytes\n");
}

}  // namespace
}  // namespace tessera
