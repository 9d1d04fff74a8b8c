// Keys and values of the tokens so far, for each block of a Gpt: Vars of fixed capacity, which are
// written at a position that the device holds, so that every step is a replay of one Program.
//
// Rows of different lengths are padded on the left: they end in the same column, and row b has
// pads[b] columns before its first token, which are never seen.
#pragma once

#include <vector>

#include "tessera/models/gpt.h"

namespace tessera {

class KvCache {
 public:
  KvCache(const GptConfig& config, int64_t rows, int64_t capacity, DType dtype, Device device);

  int64_t rows() const { return rows_; }
  int64_t capacity() const { return capacity_; }  // in tokens of each row

  // Before a prefill; as many as there are rows.
  void set_pads(const std::vector<int64_t>& pads) const;

  // In a compiled function; `padded` says whether some pad is not 0. tokens (B, P) start at column
  // 0. Columns from `length` (0-d) on hold none yet: what is computed there is never seen.
  // -> (B, C), the residual stream of the last token.
  Tensor prefill(const Gpt& model, const Tensor& tokens, const Tensor& length, bool padded) const;
  // One token further: tokens (B) -> (B, C).
  Tensor decode(const Gpt& model, const Tensor& tokens, bool padded) const;

 private:
  void store(size_t layer, const GptBlock::Heads& heads, const Tensor& column) const;
  Tensor visible(int64_t columns) const;  // (B, 1, 1, columns): those that are no padding

  int64_t rows_, capacity_;
  std::vector<Var> keys_, values_;  // of each block: (B, H, capacity, D)
  Var length_;                      // 0-d i64: columns that are filled
  Var pads_;                        // (B) i64
};

}  // namespace tessera
