// A training loop of one's own: a small GPT learns a rhyme by heart. Where Trainer
// (train/trainer.h) decides too much, these are the parts it is made of.
#include <tessera/data/batch_loader.h>
#include <tessera/data/character_trainer.h>
#include <tessera/models/gpt.h>
#include <tessera/tessera.h>
#include <tessera/train/checkpoint.h>

#include <filesystem>
#include <iostream>

using namespace tessera;

namespace {

constexpr std::string_view kRhyme =
    "One for sorrow, two for joy,\nthree for a girl, four for a boy,\n"
    "five for silver, six for gold,\nseven for a secret never to be told.\n";

constexpr int64_t kBatch = 8, kContext = 32, kSteps = 400;

// The most likely character, one after the other.
std::string complete(const Gpt& model, const Tokenizer& tokenizer, std::string text, int count) {
  const ModeGuard evaluation(false);
  const auto next = compile([&](const Tensor& tokens) { return argmax(model.logits(tokens), -1); });
  for (int i = 0; i < count; ++i) {
    std::vector<int32_t> tokens = tokenizer.encode(text);
    if (std::ssize(tokens) > kContext) tokens.erase(tokens.begin(), tokens.end() - kContext);
    const size_t last = tokens.size() - 1;
    tokens.resize(size_t(kContext));  // what follows is not looked at: attention is causal
    const Tensor likely = next(tensor(tokens, {1, kContext}));
    text += tokenizer.decode(std::vector<int32_t>{int32_t(likely.to_vector<int64_t>()[last])});
  }
  return text;
}

}  // namespace

int main() {
  init();
  CharacterTrainer characters;
  characters.add(kRhyme);
  const Tokenizer tokenizer = characters.train();
  const std::string text = cat(kRhyme, kRhyme);
  BatchLoader loader(TokenData::of(tokenizer.encode(text)), {.batch = kBatch, .length = kContext});

  const Random random(1);
  const Gpt model(
      {.vocabulary = tokenizer.size(), .context = kContext, .width = 64, .layers = 2, .heads = 4},
      random);
  AdamW optimizer(model.named_parameters(),
                  {.lr = 0, .groups = {{.pattern = "*.bias", .weight_decay = 0}}});
  const auto step = compile([&](const Tensor& inputs, const Tensor& targets) {
    const Tensor loss = model.loss(inputs, targets);
    backward(loss);
    clip_grad_norm(optimizer.parameters(), 1);
    optimizer.step();
    return loss;
  });

  const Schedule schedule = warmup_cosine({.peak = 5e-3, .warmup = 20, .total = kSteps});
  Tensor previous;  // reading a loss waits for its step: the one before is there already
  for (int64_t k = 0; k < kSteps; ++k) {
    optimizer.set_lr(schedule(k));
    const Batch batch = loader.next();
    const Tensor loss =
        step(tensor(batch.inputs, {kBatch, kContext}), tensor(batch.targets, {kBatch, kContext}));
    if (k % 50 == 1) std::cout << "step " << k << ", loss " << previous.item() << "\n";
    previous = loss;
  }
  std::cout << "step " << kSteps << ", loss " << previous.item() << "\n"
            << step.stats().compilations << " compilation, " << step.stats().replays
            << " replays\n\n"
            << complete(model, tokenizer, "One for sorrow", 60) << "\n";

  // A checkpoint appears all at once; a killed process leaves the one before.
  const std::filesystem::path run = "custom_loop_run";
  write_checkpoint(run, kSteps, [&](const std::filesystem::path& folder) {
    save_pretrained(folder, model);
    save_vars(folder / "optimizer.safetensors", optimizer.named_state());
  });
  load_vars(checkpoint_path(run, kSteps) / "optimizer.safetensors", optimizer.named_state());
  prune_checkpoints(run, 1, {});
}
