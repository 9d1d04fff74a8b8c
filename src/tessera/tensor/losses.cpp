#include <limits>

#include "tessera/tensor/creation.h"
#include "tessera/tensor/elementwise.h"
#include "tessera/tensor/network.h"
#include "tessera/tensor/op_support.h"
#include "tessera/tensor/reduce.h"
#include "tessera/tensor/structure.h"

namespace tessera {

namespace {

void expect_same_shape(const char* op, const Tensor& x, const Tensor& target) {
  if (x.shape() != target.shape()) {
    fail_here(op, ": expected operands of one shape, got ", x.shape(), " and ", target.shape());
  }
}

Tensor reduced(const Tensor& loss, Reduction reduction) {
  switch (reduction) {
    case Reduction::none: return loss;
    case Reduction::sum: return sum(loss);
    case Reduction::mean: break;
  }
  return sum(loss) / double(loss.numel());  // of nothing: NaN
}

// Losses of classes -----------------------------------------------------------------------------

void expect_classes(const char* op, const Tensor& x, const Tensor& targets,
                    const CrossEntropyOptions& options) {
  Shape rows = x.shape();
  if (!rows.empty()) rows.erase(rows.rank() - 1);
  if (x.rank() == 0 || targets.shape() != rows) {
    fail_here(op, ": expected logits (…, C) and targets (…), got ", x.shape(), " and ",
              targets.shape());
  }
  if (!is_integer(targets.dtype())) {
    fail_here(op, ": expected integer targets, got ", targets.dtype());
  }
  if (options.weights.defined() && options.weights.shape() != Shape{x.shape().back()}) {
    fail_here(op, ": expected weights of ", Shape{x.shape().back()}, " for ", x.shape(), ", got ",
              options.weights.shape());
  }
}

// x[…, targets[…]] of x (…, C).
Tensor at_targets(const Tensor& x, const Tensor& targets) {
  const Value index = unsqueeze(targets, -1).value();
  return squeeze(Tensor(graph::gather(x.value(), index, x.rank() - 1)), -1);
}

// -log softmax(x)[targets] of x (…, C): the kernel op, whose gradient is its second output for the
// gradient that comes.
Tensor softmax_loss(const Tensor& x, const Tensor& targets) {
  const Value index = unsqueeze(targets, -1).value();
  const Value one = graph::full({compute_type(x.dtype()), index.shape()}, 1);
  return squeeze(Tensor(graph::cross_entropy(x.value(), index, one)[0]), -1);
}

// A row costs normalizer - x[target], where the normalizer turns x into -log p; without one, x are
// logits.
Tensor class_loss(const Tensor& x, const Tensor& normalizer, const Tensor& targets,
                  const CrossEntropyOptions& options) {
  Tensor index = targets, ignored;
  if (options.ignore_index) {
    // As i64, because an unsigned type cannot hold the usual -100. Ignored rows read class 0.
    index = cast(targets, DType::i64);
    ignored = index == *options.ignore_index;
    index = where(ignored, 0, index);
  }
  Tensor loss = normalizer.defined() ? normalizer - at_targets(x, index) : softmax_loss(x, index);
  Tensor weight, of_classes;
  if (options.weights.defined()) {
    of_classes = broadcast_to(cast(options.weights, loss.dtype()), x.shape());
    weight = at_targets(of_classes, index);
    loss = loss * weight;
  }
  if (const double share = options.label_smoothing; share > 0) {
    Tensor spread = unsqueeze(normalizer, -1) - x;
    if (options.weights.defined()) spread = spread * of_classes;
    loss = loss * (1 - share) + sum(spread, {-1}) * (share / double(x.shape().back()));
  }
  if (ignored.defined()) loss = where(ignored, 0, loss);
  if (options.reduction != Reduction::mean || (!ignored.defined() && !weight.defined())) {
    return reduced(loss, options.reduction);
  }
  if (!weight.defined()) weight = ones_like(loss);
  return sum(loss) / sum(ignored.defined() ? where(ignored, 0, weight) : weight);
}

}  // namespace

Tensor cross_entropy(In logits, In targets, const CrossEntropyOptions& options) {
  expect_classes("cross_entropy", logits, targets, options);
  if (!(options.label_smoothing >= 0 && options.label_smoothing <= 1)) {
    fail_here("cross_entropy: expected label_smoothing from 0 to 1, got ", options.label_smoothing);
  }
  if (options.label_smoothing == 0) return class_loss(as_float(logits), {}, targets, options);
  const Tensor x = as_wide(logits);
  return class_loss(x, logsumexp(x, {-1}), targets, options);
}

Tensor nll_loss(In log_probabilities, In targets, const CrossEntropyOptions& options) {
  expect_classes("nll_loss", log_probabilities, targets, options);
  if (options.label_smoothing != 0) {
    fail_here("nll_loss: expected label_smoothing of 0, got ", options.label_smoothing);
  }
  const Tensor x = as_wide(log_probabilities);
  return class_loss(x, literal(0.0, x.dtype()), targets, options);
}

// Losses of elements ----------------------------------------------------------------------------

Tensor mse_loss(In x, In target, Reduction reduction) {
  expect_same_shape("mse_loss", x, target);
  const Tensor d = as_wide(x) - as_wide(target);
  return reduced(d * d, reduction);
}

Tensor l1_loss(In x, In target, Reduction reduction) {
  expect_same_shape("l1_loss", x, target);
  return reduced(abs(as_wide(x) - as_wide(target)), reduction);
}

Tensor huber_loss(In x, In target, double delta, Reduction reduction) {
  expect_same_shape("huber_loss", x, target);
  if (!(delta > 0)) fail_here("huber_loss: expected delta above 0, got ", delta);
  const Tensor d = as_wide(x) - as_wide(target);
  const Tensor is_near = abs(d) <= delta;
  // Far elements are kept out of the square: where they overflow, 0 · inf would be the gradient.
  const Tensor close = where(is_near, d, 0);
  return reduced(where(is_near, close * close * 0.5, (abs(d) - delta / 2) * delta), reduction);
}

// With s = log(1 + exp(-|x|)): -log sigmoid(x) = max(-x, 0) + s, -log(1 - sigmoid(x)) = max(x, 0) +
// s.
Tensor bce_with_logits(In logits, In targets, Reduction reduction, const Tensor& positive_weight) {
  expect_same_shape("bce_with_logits", logits, targets);
  const Tensor x = as_wide(logits), t = as_wide(targets);
  // One side's branch at 0 rather than |x|, whose slope is 0 there: so gradients of every order are
  // those of the smooth function.
  const Tensor is_positive = x > 0;
  const Tensor s = log1p(exp(where(is_positive, -x, x)));
  const Tensor off = 1 - t;
  if (!positive_weight.defined())
    return reduced(where(is_positive, off * x, -t * x) + s, reduction);
  if (!broadcasts_to(positive_weight.shape(), x.shape())) {
    fail_here("bce_with_logits: expected positive_weight to broadcast to ", x.shape(), ", got ",
              positive_weight.shape());
  }
  const Tensor on = t * cast(positive_weight, x.dtype());
  return reduced(where(is_positive, off * x, -on * x) + (off + on) * s, reduction);
}

// Where p is 0, its logarithm is kept out of the gradient too.
Tensor kl_div(In q, In p, Reduction reduction, bool log_target) {
  expect_same_shape("kl_div", q, p);
  const Tensor input = as_wide(q), target = as_wide(p);
  const Tensor is_zero =
      log_target ? target == -std::numeric_limits<double>::infinity() : target == 0;
  const Tensor safe = where(is_zero, log_target ? 0 : 1, target);
  const Tensor probability = log_target ? exp(safe) : safe;
  const Tensor log_probability = log_target ? safe : log(safe);
  const Tensor terms = probability * (log_probability - input);
  return reduced(where(is_zero, 0, terms), reduction);
}

}  // namespace tessera
