// A small model with dropout that learns which letter follows which, and a Trainer of it.
#pragma once

#include <memory>
#include <vector>

#include "tessera/nn/nn.h"
#include "tessera/tensor/ops.h"
#include "tessera/train/trainer.h"

namespace tessera::train_test {

constexpr int64_t kLetters = 11, kWidth = 8, kBatch = 4, kLength = 6;

struct Model : Module {
  explicit Model(const Random& random)
      : Module("model"),
        embedding("embedding", kLetters, kWidth, random),
        dropout("dropout", 0.2, random),
        head("head", kWidth, kLetters, random) {
    add_module(embedding);
    add_module(dropout);
    add_module(head);
  }
  Tensor loss(std::span<const Tensor> batch) const {
    return cross_entropy(head(dropout(tanh(embedding(batch[0])))), batch[1]);
  }

  Embedding embedding;
  Dropout dropout;
  Linear head;
};

inline TokenData letters(int64_t count) {
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < count; ++i) tokens.push_back(int32_t((i * i / 3 + i) % kLetters));
  return TokenData::of(tokens);
}

struct ProblemOptions {
  TrainerOptions trainer;
  DType dtype = DType::f32;
  bool skip_nonfinite = false;
};

struct Problem {
  explicit Problem(const ProblemOptions& options)
      : model(random),
        optimizer(typed(options), {.lr = 1e-2, .skip_nonfinite = options.skip_nonfinite}),
        source(letters(400), {.batch = kBatch, .length = kLength, .seed = 3}),
        held_out(letters(100), {.batch = kBatch, .length = kLength}),
        trainer(
            model, optimizer, [this](std::span<const Tensor> batch) { return model.loss(batch); },
            source, with_state(options.trainer)) {
    trainer.schedule = warmup(3, cosine_lr({.peak = 3e-2, .total = 20}));
    trainer.eval_source = &held_out;
    trainer.on_record = [this](const StepRecord& record) { records.push_back(record); };
  }

  Parameters typed(const ProblemOptions& options) const {
    model.to(options.dtype);
    return model.named_trainable();
  }
  TrainerOptions with_state(TrainerOptions options) const {
    options.state = {{"key", random.key()}, {"counter", random.counter()}};
    return options;
  }

  Random random{7};
  Model model;
  AdamW optimizer;
  TokenSource source, held_out;
  std::vector<StepRecord> records;
  Trainer trainer;
};

}  // namespace tessera::train_test
