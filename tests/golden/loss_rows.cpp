#include "golden/golden.h"
#include "tessera/tensor/network.h"

namespace tessera::golden {

namespace {

constexpr Reduction kMean = Reduction::mean, kSum = Reduction::sum, kNone = Reduction::none;

template <Reduction R>
Tensor plain(X x) {
  return cross_entropy(x[0], x[1], {.reduction = R});
}
template <Reduction R>
Tensor with_ignored(X x) {
  return cross_entropy(x[0], x[1], {.reduction = R, .ignore_index = -100});
}
template <Reduction R>
Tensor smoothed(X x) {
  return cross_entropy(x[0], x[1], {.reduction = R, .label_smoothing = 0.125});
}
template <Reduction R>
Tensor weighted(X x) {
  return cross_entropy(x[0], x[1], {.reduction = R, .weights = x[2]});
}
template <Reduction R>
Tensor with_everything(X x) {
  return cross_entropy(
      x[0], x[1], {.reduction = R, .ignore_index = -100, .label_smoothing = 0.25, .weights = x[2]});
}
template <Reduction R>
Tensor nll(X x) {
  return nll_loss(x[0], x[1], {.reduction = R});
}
template <Reduction R>
Tensor nll_with_everything(X x) {
  return nll_loss(x[0], x[1], {.reduction = R, .ignore_index = 1, .weights = x[2]});
}

}  // namespace

// clang-format off
std::vector<Row> loss_rows() {
  return {
    {"cross_entropy_mean", plain<kMean>},
    {"cross_entropy_sum", plain<kSum>},
    {"cross_entropy_none", plain<kNone>},
    {"cross_entropy_ignore_mean", with_ignored<kMean>},
    {"cross_entropy_ignore_sum", with_ignored<kSum>},
    {"cross_entropy_ignore_none", with_ignored<kNone>},
    {"cross_entropy_smoothing_mean", smoothed<kMean>},
    {"cross_entropy_smoothing_sum", smoothed<kSum>},
    {"cross_entropy_smoothing_none", smoothed<kNone>},
    {"cross_entropy_weights_mean", weighted<kMean>},
    {"cross_entropy_weights_sum", weighted<kSum>},
    {"cross_entropy_weights_none", weighted<kNone>},
    {"cross_entropy_everything_mean", with_everything<kMean>},
    {"cross_entropy_everything_sum", with_everything<kSum>},
    {"cross_entropy_everything_none", with_everything<kNone>},
    {"cross_entropy_batch", plain<kMean>},
    {"cross_entropy_batch_none", plain<kNone>},
    {"cross_entropy_large", plain<kMean>},
    {"nll_loss_mean", nll<kMean>},
    {"nll_loss_sum", nll<kSum>},
    {"nll_loss_none", nll<kNone>},
    {"nll_loss_everything_mean", nll_with_everything<kMean>},
    {"nll_loss_everything_sum", nll_with_everything<kSum>},
    {"nll_loss_everything_none", nll_with_everything<kNone>},
    {"mse_loss_mean", [](X x) { return mse_loss(x[0], x[1]); }},
    {"mse_loss_sum", [](X x) { return mse_loss(x[0], x[1], kSum); }},
    {"mse_loss_none", [](X x) { return mse_loss(x[0], x[1], kNone); }},
    {"l1_loss_mean", [](X x) { return l1_loss(x[0], x[1]); }},
    {"l1_loss_sum", [](X x) { return l1_loss(x[0], x[1], kSum); }},
    {"l1_loss_none", [](X x) { return l1_loss(x[0], x[1], kNone); }},
    {"huber_loss_mean", [](X x) { return huber_loss(x[0], x[1], 2.5); }},
    {"huber_loss_sum", [](X x) { return huber_loss(x[0], x[1], 2.5, kSum); }},
    {"huber_loss_none", [](X x) { return huber_loss(x[0], x[1], 2.5, kNone); }},
    {"huber_loss_near_mean", [](X x) { return huber_loss(x[0], x[1]); }},
    {"huber_loss_near_sum", [](X x) { return huber_loss(x[0], x[1], 1, kSum); }},
    {"huber_loss_near_none", [](X x) { return huber_loss(x[0], x[1], 1, kNone); }},
    {"bce_with_logits_mean", [](X x) { return bce_with_logits(x[0], x[1]); }},
    {"bce_with_logits_sum", [](X x) { return bce_with_logits(x[0], x[1], kSum); }},
    {"bce_with_logits_none", [](X x) { return bce_with_logits(x[0], x[1], kNone); }},
    {"bce_with_logits_positive_weight", [](X x) {
       return bce_with_logits(x[0], x[1], kMean, x[2]); }},
    {"bce_with_logits_large", [](X x) { return bce_with_logits(x[0], x[1]); }},
    {"kl_div_mean", [](X x) { return kl_div(x[0], x[1]); }},
    {"kl_div_sum", [](X x) { return kl_div(x[0], x[1], kSum); }},
    {"kl_div_none", [](X x) { return kl_div(x[0], x[1], kNone); }},
    {"kl_div_log_target_mean", [](X x) { return kl_div(x[0], x[1], kMean, true); }},
    {"kl_div_log_target_sum", [](X x) { return kl_div(x[0], x[1], kSum, true); }},
    {"kl_div_log_target_none", [](X x) { return kl_div(x[0], x[1], kNone, true); }},
    {"kl_div_zero_target", [](X x) { return kl_div(x[0], x[1], kSum); }},
  };
}
// clang-format on

}  // namespace tessera::golden
