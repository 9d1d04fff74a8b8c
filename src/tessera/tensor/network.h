// Functions of networks: normalisation, losses, attention. Half types compute in f32 inside.
#pragma once

#include <optional>

#include "tessera/tensor/tensor.h"

namespace tessera {

class Random;

Tensor softmax(In x, int64_t axis = -1);
Tensor log_softmax(In x, int64_t axis = -1);

// Over the last axis: to mean 0 and variance 1, then · gamma + beta, both (C). The result of a norm
// has x's dtype.
Tensor layer_norm(In x, In gamma, In beta, double epsilon = 1e-5);
// x / √(mean(x²) + epsilon) · gamma.
Tensor rms_norm(In x, In gamma, double epsilon = 1e-6);
// x (N, C, …): each group of C / groups channels by its own mean and variance; gamma, beta (C).
Tensor group_norm(In x, int64_t groups, In gamma, In beta, double epsilon = 1e-5);

// Losses ----------------------------------------------------------------------------------------

// Losses of half types are f32. Elementwise ones take operands of one shape: a target that would
// broadcast is refused, because (N) beside (N, 1) is nearly always a mistake. The mean of no
// elements is NaN.
enum class Reduction : uint8_t { mean, sum, none };

struct CrossEntropyOptions {
  Reduction reduction = Reduction::mean;
  std::optional<int64_t> ignore_index = {};  // rows with this target count for nothing
  double label_smoothing = 0;                // that share of the target is spread over all classes
  Tensor weights = {};                       // (C): a class costs its weight times as much
};
// -log softmax(logits)[target]; logits (…, C), targets (…) of integers. Rows cost
//   (1 - s) w[target] · -log p[target] + s/C Σ w[c] · -log p[c]   with s = label_smoothing,
// and the mean divides by Σ w[target] of the rows that count; it is NaN where none does. A target
// out of range is an error when the loss is evaluated, unless it is ignore_index.
Tensor cross_entropy(In logits, In targets, const CrossEntropyOptions& options = {});
// The same of log-probabilities; label_smoothing must be 0.
Tensor nll_loss(In log_probabilities, In targets, const CrossEntropyOptions& options = {});

Tensor mse_loss(In x, In target, Reduction reduction = Reduction::mean);
Tensor l1_loss(In x, In target, Reduction reduction = Reduction::mean);
// d²/2 where |d| <= delta, else delta (|d| - delta/2).
Tensor huber_loss(In x, In target, double delta = 1, Reduction reduction = Reduction::mean);
// Of sigmoid(logits) against targets in [0, 1]; positive_weight, which broadcasts to them,
// multiplies the loss of target 1.
Tensor bce_with_logits(In logits, In targets, Reduction reduction = Reduction::mean,
                       const Tensor& positive_weight = {});
// Σ p (log p - q) for log-probabilities q and probabilities p; with log_target p is given as log p.
// Where p is 0, value and gradient are 0. The mean is over all elements: for the divergence of
// distributions, divide the sum by their number.
Tensor kl_div(In q, In p, Reduction reduction = Reduction::mean, bool log_target = false);

// Attention -------------------------------------------------------------------------------------

struct AttentionOptions {
  bool causal = false;               // query t sees keys up to t + S - T: aligned at the end
  Tensor mask = {};                  // to (B, H, T, S): bool, true sees; or added to the scores
  Tensor lengths = {};               // (B) integers: keys from lengths[b] on are not seen
  std::optional<double> scale = {};  // 1 / √D
  double dropout = 0;                // of the weights, in training
  const Random* random = nullptr;    // needed for dropout
};
// softmax(q kᵀ · scale) v; q (B, H, T, D), k (B, G, S, D), v (B, G, S, E) -> (B, H, T, E), where H
// is a multiple of G: H / G neighbouring heads share keys, which are not copied. What is seen is
// what causal, mask and lengths all allow. A query that sees no key (a mask of -inf counts as not
// seen) gives zeros, and no gradient.
Tensor attention(In q, In k, In v, const AttentionOptions& options = {});

// Rotary position embedding: pairs of channels of x (…, T, D) turn by position · base^(-2i/D). A
// pair is (i, i + D/2), as Llama's checkpoints, or interleaved (2i, 2i + 1). positions: integers
// that broadcast to (…, T); of x (B, H, T, D) those of each sequence are (B, 1, T).
Tensor rotary(In x, In positions, double base = 10000, bool interleaved = false);

}  // namespace tessera
