#include "golden/golden.h"
#include "tessera/tensor/autograd.h"
#include "tessera/tensor/ops.h"

namespace tessera::golden {

namespace {

// WGAN-GP: the critic's slope at each point should be 1. The first input is the points, (B, C).
Tensor gradient_penalty(const Outputs& gradients, const Outputs&) {
  return mean(square(norm(gradients[0], 2, {1}) - 1));
}

// x, w1, b1, w2, b2, target
template <auto Activation>
Tensor mlp(X x) {
  const Tensor hidden = Activation(matmul(x[0], x[1]) + x[2]);
  return mse_loss(matmul(hidden, x[3]) + x[4], x[5]);
}

Tensor soft(const Tensor& x) { return softplus(x); }

Tensor rotary_attention(X x) {
  const auto heads = [&](size_t i) { return unsqueeze(matmul(x[0], x[i]), 1); };
  const Tensor positions = arange(4);
  const Tensor y = attention(rotary(heads(1), positions), rotary(heads(2), positions), heads(3));
  return mean(square(y));
}

Tensor gather_scatter_add(X x) {
  const Tensor picked = gather(tanh(x[0]), x[1], 0);
  return sum(square(scatter_add(zeros({6, 3}, x.dtype), x[2], picked, 0)));
}

Tensor convolution(X x) {
  const Tensor windows = sliding_window(x[0], 2, 3);  // (N, C, T, K)
  const Tensor y = einsum("nctk,ock->not", {windows, x[1]}) + unsqueeze(x[2], -1);
  return sum(square(tanh(y)));
}

Tensor selection(X x) {
  const Tensor product = maximum(x[0], x[1]) * minimum(x[0], x[1]);
  return sum(product + where(x[0] > x[1], x[0] * x[0] * x[1], pow(x[1], 3)));
}

Tensor shapes(X x) {
  const Tensor part = transpose(x[0])[{Slice{1}, Slice{{}, {}, 2}}];
  return sum(square(square(concat({pad(part, {0, 1}, {0, 0}), repeat(x[1], {1, 1})}))));
}

}  // namespace

// clang-format off
const std::vector<SecondOrderRow>& second_order_rows() {
  static const std::vector<SecondOrderRow> rows = {
    {"gradient_penalty", [](X x) {
       return sum(matmul(tanh(matmul(x[0], x[1]) + x[2]), x[3])); }, gradient_penalty},
    {"gradient_penalty_deep", [](X x) {
       return sum(matmul(softplus(matmul(softplus(matmul(x[0], x[1])), x[2])), x[3])); },
     gradient_penalty},
    {"mlp_tanh", mlp<tanh>},
    {"mlp_gelu", mlp<gelu>},
    {"mlp_gelu_tanh", mlp<gelu_tanh>},
    {"mlp_softplus", mlp<soft>},
    {"mlp_silu", mlp<silu>},
    {"mlp_sigmoid", mlp<sigmoid>},
    {"cross_entropy", [](X x) { return cross_entropy(matmul(x[0], x[1]), x[2]); }},
    {"cross_entropy_smoothing", [](X x) {
       return cross_entropy(matmul(x[0], x[1]), x[2],
                            {.label_smoothing = 0.125, .weights = x[3]}); }},
    {"layer_norm", [](X x) { return sum(tanh(layer_norm(x[0], x[1], x[2])) * x[3]); }},
    {"rms_norm", [](X x) { return sum(tanh(rms_norm(x[0], x[1])) * x[2]); }},
    {"group_norm", [](X x) { return sum(tanh(group_norm(x[0], 2, x[1], x[2])) * x[3]); }},
    {"softmax", [](X x) { return sum(softmax(x[0]) * x[1]); }},
    {"log_softmax", [](X x) { return sum(square(log_softmax(x[0])) * x[1]); }},
    {"attention", [](X x) { return sum(attention(x[0], x[1], x[2]) * x[3]); }},
    {"attention_causal", [](X x) {
       return sum(square(attention(x[0], x[1], x[2], {.causal = true}))); }},
    {"rotary_attention", rotary_attention},
    {"matmul_chain", [](X x) { return sum(square(matmul(matmul(x[0], x[1]), x[2]))); }},
    {"logsumexp", [](X x) { return sum(square(logsumexp(x[0], {1}))); }},
    {"var", [](X x) { return sum(square(var(x[0], {1})) * x[1]); }},
    {"std", [](X x) { return sum(stddev(x[0], {0}) * x[1]); }},
    {"norm", [](X x) { return sum(norm(x[0], 2, {1})); }},
    {"norm_three", [](X x) { return sum(norm(x[0], 3, {0})); }},
    {"prod", [](X x) { return sum(prod(x[0], {1}) * x[1]); }},
    {"prod_with_a_zero", [](X x) { return sum(prod(x[0], {1})); }},
    {"cumsum", [](X x) { return sum(tanh(cumsum(x[0], 1)) * x[1]); }},
    {"cumprod", [](X x) { return sum(cumprod(x[0], 1) * x[1]); }},
    {"pow", [](X x) { return sum(pow(x[0], x[1])); }},
    {"divide", [](X x) { return sum(atan2(x[0], x[1]) * x[0] / x[1]); }},
    {"trigonometry", [](X x) { return sum(sin(x[0]) * cos(2 * x[0]) + tan(x[0] / 2)); }},
    {"logarithms", [](X x) { return sum(log(x[0]) * log1p(x[0]) * sqrt(x[0]) + expm1(x[0])); }},
    {"erf", [](X x) { return sum(erf(x[0]) * x[0]); }},
    {"gather_scatter_add", gather_scatter_add},
    {"embedding", [](X x) { return sum(logsumexp(matmul(take(x[0], x[1]), x[2]), {-1})); }},
    {"index_put", [](X x) { return sum(sigmoid(square(index_put(x[0], {x[1]}, x[2] * x[2])))); }},
    {"einsum", [](X x) { return sum(square(einsum("bi,ijk,bj->bk", x.tensors))); }},
    {"huber", [](X x) { return huber_loss(tanh(matmul(x[0], x[1])), x[2], 0.75); }},
    {"bce", [](X x) { return bce_with_logits(matmul(x[0], x[1]), x[2]); }},
    {"kl_div", [](X x) { return kl_div(log_softmax(x[0]), softmax(x[1]), Reduction::sum); }},
    {"convolution", convolution},
    {"sort", [](X x) { return sum(square(sort(x[0], 1).values) * x[1]); }},
    {"topk", [](X x) { return sum(exp(topk(x[0], 3).values / 4)); }},
    {"selection", selection},
    {"shapes", shapes},
  };
  return rows;
}
// clang-format on

}  // namespace tessera::golden
