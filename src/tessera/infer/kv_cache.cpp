#include "tessera/infer/kv_cache.h"

#include "tessera/infer/device_var.h"
#include "tessera/tensor/ops.h"

namespace tessera {

KvCache::KvCache(const GptConfig& config, int64_t rows, int64_t capacity, DType dtype,
                 Device device)
    : rows_(rows),
      capacity_(capacity),
      length_(device_var(zeros({}, DType::i64), "cache.length", device)),
      pads_(device_var(zeros({rows}, DType::i64), "cache.pads", device)) {
  TESSERA_ASSERT(rows > 0 && capacity > 0 && capacity <= config.context);
  const Shape shape = {rows, config.heads, capacity, config.width / config.heads};
  for (int64_t i = 0; i < config.layers; ++i) {
    keys_.push_back(device_var(zeros(shape, dtype), cat("cache.", i, ".keys"), device));
    values_.push_back(device_var(zeros(shape, dtype), cat("cache.", i, ".values"), device));
  }
}

void KvCache::set_pads(const std::vector<int64_t>& pads) const {
  TESSERA_ASSERT(int64_t(pads.size()) == rows_);
  pads_.set_bytes(DType::i64, pads.data());
}

void KvCache::store(size_t layer, const GptBlock::Heads& heads, const Tensor& column) const {
  keys_[layer].assign(dynamic_update_slice(keys_[layer], heads.k, column, 2));
  values_[layer].assign(dynamic_update_slice(values_[layer], heads.v, column, 2));
}

Tensor KvCache::visible(int64_t columns) const {
  return iota({1, 1, 1, columns}, 3) >= reshape(pads_, {rows_, 1, 1, 1});
}

Tensor KvCache::prefill(const Gpt& model, const Tensor& tokens, const Tensor& length,
                        bool padded) const {
  const int64_t columns = tokens.size(1);
  Tensor positions;
  if (padded) positions = maximum(arange(columns) - unsqueeze(pads_, 1), 0);
  const Tensor x = model.hidden(tokens, positions, [&](int64_t layer, const auto& heads) {
    store(size_t(layer), heads, zeros({}, DType::i64));
    AttentionOptions options = {.causal = true};
    if (padded) options.mask = visible(columns);
    return attention(heads.q, heads.k, heads.v, options);
  });
  length_.assign(length);
  return squeeze(dynamic_slice(x, length - 1, 1, 1), 1);
}

Tensor KvCache::decode(const Gpt& model, const Tensor& tokens, bool padded) const {
  const Tensor column = length_;
  const Tensor positions = padded ? unsqueeze(column - pads_.value(), 1) : reshape(column, {1});
  const Tensor x = model.hidden(unsqueeze(tokens, 1), positions, [&](int64_t i, const auto& heads) {
    const auto layer = size_t(i);
    store(layer, heads, column);
    AttentionOptions options = {.lengths = broadcast_to(column + 1, {rows_})};
    if (padded) options.mask = visible(capacity_);
    return attention(heads.q, keys_[layer], values_[layer], options);
  });
  length_.assign(column + 1);
  return squeeze(x, 1);
}

}  // namespace tessera
