#include "tessera/cli/explain_models.h"

#include <cmath>
#include <functional>
#include <memory>

#include "tessera/graph/scope.h"
#include "tessera/tensor/eval.h"
#include "tessera/tessera.h"

namespace tessera::cli {

namespace {

constexpr int64_t kBatch = 256, kWidth = 64, kClasses = 10, kBlocks = 3;
constexpr int64_t kSequences = 4, kTokens = 64, kVocabulary = 256, kHeads = 4;

using Step = std::function<Tensor(const Tensor& x, const Tensor& y)>;  // the loss
using TensorToTensor = std::function<Tensor(const Tensor&)>;

const Type kImages{DType::f32, {kBatch, kWidth}};
const Type kLabels{DType::i32, {kBatch}};
const Type kTokenIds{DType::i32, {kSequences, kTokens}};

// What compile(fn) would hand to the compiler.
GraphFunction trace_step(const Type& x, const Type& y, Optimizer& optimizer, const Step& loss_of) {
  const std::vector<Value> leaves = {make_leaf(x), make_leaf(y)};
  TraceGuard guard;
  const Tensor loss = loss_of(Tensor(leaves[0]), Tensor(leaves[1]));
  backward(loss);
  optimizer.step();
  return capture(leaves, std::span(&loss.value(), 1), guard.pending().assigned).function;
}

Tensor apply(bool checkpointed, const TensorToTensor& fn, const Tensor& x) {
  if (!checkpointed) return fn(x);
  return checkpoint([&](const std::vector<Tensor>& in) { return std::vector{fn(in[0])}; }, {x})[0];
}

// (B, C) -> (B, C)
struct Block : Module {
  Block(std::string name, const Random& random)
      : Module(std::move(name)),
        fc1("fc1", kWidth, 4 * kWidth, random),
        fc2("fc2", 4 * kWidth, kWidth, random) {
    add_module(fc1);
    add_module(fc2);
  }

  Tensor operator()(const Tensor& x) const {
    const Scope scope(name());
    return x + fc2(gelu_tanh(fc1(x)));
  }

  Linear fc1, fc2;
};

struct Mlp : Module {
  explicit Mlp(const Random& random) : Module("mlp"), head("head", kWidth, kClasses, random) {
    for (int64_t i = 0; i < kBlocks; ++i) {
      blocks.push_back(std::make_unique<Block>(cat("block", i), random));
      add_module(*blocks.back());
    }
    add_module(head);
  }

  std::vector<std::unique_ptr<Block>> blocks;
  Linear head;
};

GraphFunction trace_mlp(bool checkpointed) {
  const Mlp model{Random(1)};
  AdamW optimizer(model.parameters());
  return trace_step(kImages, kLabels, optimizer, [&](const Tensor& x, const Tensor& y) {
    Tensor h = x;
    for (const auto& block : model.blocks) h = apply(checkpointed, std::ref(*block), h);
    return cross_entropy(model.head(h), y);
  });
}

GraphFunction trace_softmax(bool checkpointed) {
  const Linear linear("linear", kWidth, kClasses, Random(1));
  SGD optimizer(linear.parameters(), {.lr = 0.1, .momentum = 0.9});
  return trace_step(kImages, kLabels, optimizer, [&](const Tensor& x, const Tensor& y) {
    const auto probabilities = [&](const Tensor& in) { return softmax(linear(in)); };
    const Tensor chosen = gather(apply(checkpointed, probabilities, x), unsqueeze(y, -1), -1);
    return -mean(log(chosen));
  });
}

// One causal block over tokens, with the embedding as its head.
struct Attention : Module {
  explicit Attention(const Random& random)
      : Module("attention"),
        embedding("embedding", kVocabulary, kWidth, random, normal_init(0, 0.02)),
        norm("norm", kWidth),
        qkv("qkv", kWidth, 3 * kWidth, random),
        out("out", kWidth, kWidth, random),
        head("head", embedding.weight()) {
    for (Module* child : std::initializer_list<Module*>{&embedding, &norm, &qkv, &out, &head}) {
      add_module(*child);
    }
  }

  // (B, T, C) -> (B, T, C)
  Tensor mix(const Tensor& x) const {
    const int64_t batch = x.size(0), tokens = x.size(1), width = kWidth / kHeads;
    const Tensor packed =  // (3, B, H, T, C / H)
        permute(reshape(qkv(norm(x)), {batch, tokens, 3, kHeads, width}), {2, 0, 3, 1, 4});
    const auto part = [&](int64_t i) { return squeeze(slice(packed, 0, i, i + 1), 0); };
    const Tensor scores =  // (B, H, T, T)
        matmul(part(0), transpose(part(1))) * (1 / std::sqrt(double(width)));
    const Tensor visible = iota({tokens, tokens}, 0) >= iota({tokens, tokens}, 1);
    const Tensor mixed = matmul(softmax(where(visible, scores, -1e9)), part(2));
    return x + out(reshape(permute(mixed, {0, 2, 1, 3}), {batch, tokens, kWidth}));
  }

  Embedding embedding;
  LayerNorm norm;
  Linear qkv, out, head;
};

GraphFunction trace_attention(bool checkpointed) {
  const Attention model{Random(1)};
  AdamW optimizer(model.parameters());
  return trace_step(kTokenIds, kTokenIds, optimizer, [&](const Tensor& x, const Tensor& y) {
    const auto mix = [&](const Tensor& in) { return model.mix(in); };
    return cross_entropy(model.head(apply(checkpointed, mix, model.embedding(x))), y);
  });
}

constexpr ExplainModel kModels[] = {
    {"mlp", "three residual blocks with gelu, AdamW", trace_mlp},
    {"softmax", "one layer with softmax, SGD with momentum", trace_softmax},
    {"attention", "a causal block with tied embedding, AdamW", trace_attention},
};

}  // namespace

std::span<const ExplainModel> explain_models() { return kModels; }

}  // namespace tessera::cli
