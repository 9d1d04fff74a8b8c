// Where a Trainer's batches come from.
#pragma once

#include <vector>

#include "tessera/data/batch_loader.h"
#include "tessera/io/json.h"
#include "tessera/tensor/tensor.h"

namespace tessera {

class BatchSource {
 public:
  virtual ~BatchSource() = default;

  // The tensors of the next batch, which is always there, of the same shapes each time.
  virtual std::vector<Tensor> next() = 0;

  // Where it stands, and going on from there with the very same batches.
  virtual Json state() const = 0;
  virtual void restore(const Json& state) = 0;
};

// Windows of tokens as {inputs (B, T), targets (B, T)} i32, on the default device.
class TokenSource : public BatchSource {
 public:
  TokenSource(TokenData data, const LoaderOptions& options)
      : options_(options), loader_(std::move(data), options) {}

  std::vector<Tensor> next() override {
    const Batch batch = loader_.next();
    const Shape shape = {options_.batch, options_.length};
    return {tensor(batch.inputs, shape), tensor(batch.targets, shape)};
  }
  Json state() const override { return loader_.state().to_json(); }
  void restore(const Json& state) override { loader_.restore(LoaderState::from_json(state)); }

 private:
  LoaderOptions options_;
  BatchLoader loader_;
};

}  // namespace tessera
