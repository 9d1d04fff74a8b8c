#include "tessera/nn/module.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "tessera/graph/print.h"
#include "tessera/tessera.h"

namespace tessera {
namespace {

struct Inner : Module {
  explicit Inner(std::string name) : Module(std::move(name)), fc("fc", 2, 3, Random(1)) {
    scale = add_parameter("scale", ones({3}));
    add_module(fc);
  }
  Linear fc;
  Var scale;
};

struct Outer : Module {
  Outer() : Module("outer"), a("a"), b("b"), tied("tied", a.fc.weight()) {
    add_module(a);
    add_module(b);
    add_module(tied);
    own = add_parameter("own", zeros({}));
  }
  Inner a, b;
  Linear tied;
  Var own;
};

std::vector<std::string> names_of(const Module& module) {
  std::vector<std::string> names;
  for (const NamedVar& named : module.named_parameters()) names.push_back(named.name);
  return names;
}

TEST(Modules, NamesAreDottedAndSharedVarsComeOnce) {
  const Outer outer;
  const std::vector<std::string> expected = {"own",     "a.scale",     "a.fc.weight", "a.fc.bias",
                                             "b.scale", "b.fc.weight", "b.fc.bias"};
  EXPECT_EQ(names_of(outer), expected);
  const std::vector<Var> parameters = outer.parameters();
  ASSERT_EQ(parameters.size(), expected.size());
  EXPECT_TRUE(parameters[0].same_slot(outer.own));
  EXPECT_TRUE(parameters[2].same_slot(outer.tied.weight()));
  EXPECT_EQ(names_of(outer.tied), std::vector<std::string>{"weight"});
  EXPECT_EQ(outer.a.scale.name(), "a.scale");
}

TEST(Modules, TiedWeightsTrainAsOne) {
  const Random random(3);
  const Embedding embedding("embedding", 5, 4, random);
  const Linear head("head", embedding.weight());
  SGD optimizer(embedding.parameters(), {.lr = 0.1});
  const Tensor tokens = tensor(std::vector<int32_t>{1, 2, 3});
  backward(cross_entropy(head(embedding(tokens)), tokens));
  optimizer.step();
  EXPECT_EQ(head.weight().value().to_vector<float>(),
            embedding.weight().value().to_vector<float>());
}

TEST(Modules, LayersOpenScopes) {
  Sequential model("model");
  model.add<Linear>("fc", 2, 2, Random(1));
  const Tensor y = model(ones({1, 2}));
  const std::string text = to_text(std::span(&y.value(), 1));
  EXPECT_NE(text.find("# model/fc\n"), std::string::npos) << text;
}

struct Loose : Module {
  explicit Loose(std::string name) : Module(std::move(name)) {}
  using Module::add_module;
  using Module::add_parameter;
};

TEST(ModuleErrors, NameWhatIsWrong) {
  EXPECT_EQ(error_text([] { Loose(""); }),
            "Module: expected a name that is not empty and has no '.', got ''");
  Loose parent("parent");
  EXPECT_EQ(error_text([&] { parent.add_parameter("a.b", ones({1})); }),
            "Module: expected a name that is not empty and has no '.', got 'a.b'");
  Loose child("child");
  parent.add_module(child);
  EXPECT_EQ(error_text([&] { parent.add_parameter("child", ones({1})); }),
            "Module: 'parent' has a part called 'child' already");
  EXPECT_EQ(error_text([&] { parent.add_module(child); }),
            "Module: 'parent' has a part called 'child' already");
  EXPECT_EQ(error_text([&] { parent.add_parameter("w", Var()); }),
            "Module: expected a Var for 'parent.w', got an empty handle");
}

}  // namespace
}  // namespace tessera
