"""Gradients of a function of the gradient. Each function gives a scalar of its inputs."""

import torch
import torch.nn.functional as F

from .network import rotary
from .registry import apart, away, constant, distinct, given, integers, real, second_order


def gradient_penalty(gradients, directions):
    """WGAN-GP: the critic's slope at each point x should be 1. The first input is x (B, C)."""
    slopes = torch.linalg.vector_norm(gradients[0], 2, dim=1)
    return ((slopes - 1) ** 2).mean()


def attention(q, k, v, mask=None):
    """Spelled out: the fused kernels have no second order."""
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    return F.softmax(scores, -1) @ v


# Activations are not driven into saturation, where second derivatives in f32 are rounding alone.
MLP = [real(4, 3), real(3, 5, low=-0.75, high=0.75), real(5, low=-0.5, high=0.5), real(5, 2), real(2),
       real(4, 2)]


def mlp(activation):
    return lambda x, w1, b1, w2, b2, t: F.mse_loss(activation(x @ w1 + b1) @ w2 + b2, t)


second_order("gradient_penalty", [real(4, 3), real(3, 6), real(6), real(6, 1)],
             lambda x, w1, b1, w2: (torch.tanh(x @ w1 + b1) @ w2).sum(), gradient_penalty)
second_order("gradient_penalty_deep", [real(3, 4), real(4, 5), real(5, 4), real(4, 1)],
             lambda x, w1, w2, w3: (F.softplus(F.softplus(x @ w1) @ w2) @ w3).sum(),
             gradient_penalty)
second_order("mlp_tanh", MLP, mlp(torch.tanh))
second_order("mlp_gelu", MLP, mlp(F.gelu))
second_order("mlp_gelu_tanh", MLP, mlp(lambda x: F.gelu(x, approximate="tanh")))
second_order("mlp_softplus", MLP, mlp(F.softplus))
second_order("mlp_silu", MLP, mlp(F.silu))
second_order("mlp_sigmoid", MLP, mlp(torch.sigmoid))
second_order("cross_entropy", [real(4, 3), real(3, 5), integers(4, below=5)],
             lambda x, w, t: F.cross_entropy(x @ w, t))
second_order("cross_entropy_smoothing",
             [real(4, 3), real(3, 5), integers(4, below=5), constant(real(5, low=0.5, high=2))],
             lambda x, w, t, c: F.cross_entropy(x @ w, t, c, label_smoothing=0.125))
second_order("layer_norm", [real(3, 6), real(6), real(6), real(3, 6)],
             lambda x, gamma, beta, w: (torch.tanh(F.layer_norm(x, (6,), gamma, beta)) * w).sum())
second_order("rms_norm", [real(3, 6), real(6), real(3, 6)],
             lambda x, gamma, w: (torch.tanh(
                 x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * gamma) * w).sum())
second_order("group_norm", [real(2, 4, 3), real(4), real(4), real(2, 4, 3)],
             lambda x, gamma, beta, w: (torch.tanh(F.group_norm(x, 2, gamma, beta)) * w).sum())
second_order("softmax", [real(3, 5), real(3, 5)], lambda x, w: (F.softmax(x, -1) * w).sum())
second_order("log_softmax", [real(3, 5), real(3, 5)],
             lambda x, w: (torch.square(F.log_softmax(x, -1)) * w).sum())
second_order("attention", [real(1, 2, 3, 4), real(1, 2, 4, 4), real(1, 2, 4, 3), real(1, 2, 3, 3)],
             lambda q, k, v, w: (attention(q, k, v) * w).sum())
second_order("attention_causal", [real(1, 2, 4, 3), real(1, 2, 4, 3), real(1, 2, 4, 3)],
             lambda q, k, v: torch.square(attention(
                 q, k, v, torch.ones(4, 4, dtype=torch.bool).tril())).sum())
second_order("rotary_attention", [real(1, 4, 4), real(4, 4), real(4, 4), real(4, 4)],
             lambda x, wq, wk, wv: torch.square(attention(
                 rotary(x @ wq, torch.arange(4)), rotary(x @ wk, torch.arange(4)),
                 x @ wv)).mean())
second_order("matmul_chain", [real(3, 4), real(4, 2), real(2, 3)],
             lambda a, b, c: torch.square(a @ b @ c).sum())
second_order("logsumexp", [real(3, 5)], lambda x: torch.square(torch.logsumexp(x, 1)).sum())
second_order("var", [real(3, 5), real(3)], lambda x, w: (torch.var(x, 1) ** 2 * w).sum())
second_order("std", [real(3, 5), real(5)], lambda x, w: (torch.std(x, 0) * w).sum())
second_order("norm", [real(3, 4)], lambda x: torch.linalg.vector_norm(x, 2, dim=1).sum())
second_order("norm_three", [away(3, 4)], lambda x: torch.linalg.vector_norm(x, 3, dim=0).sum())
second_order("prod", [away(3, 4, low=0.5), real(3)], lambda x, w: (torch.prod(x, 1) * w).sum())
second_order("prod_with_a_zero",
             [given([1.5, 0.0, -2.0, 0.75, 1.25, 0.5, 3.0, -1.0], shape=(2, 4))],
             lambda x: torch.prod(x, 1).sum())
second_order("cumsum", [real(3, 5), real(3, 5)],
             lambda x, w: (torch.tanh(torch.cumsum(x, 1)) * w).sum())
second_order("cumprod", [away(3, 4, low=0.5), real(3, 4)],
             lambda x, w: (torch.cumprod(x, 1) * w).sum())
second_order("pow", [real(3, 4, low=0.5, high=2), real(3, 4)], lambda x, y: (x**y).sum())
second_order("divide", [real(3, 4), away(3, 4, low=0.5)],
             lambda x, y: (torch.atan2(x, y) * x / y).sum())
second_order("trigonometry", [real(3, 4)],
             lambda x: (torch.sin(x) * torch.cos(2 * x) + torch.tan(x / 2)).sum())
second_order("logarithms", [real(3, 4, low=0.5, high=2)],
             lambda x: (torch.log(x) * torch.log1p(x) * torch.sqrt(x) + torch.expm1(x)).sum())
second_order("erf", [real(3, 4)], lambda x: (torch.erf(x) * x).sum())
second_order("gather_scatter_add", [real(5, 3), integers(4, 3, below=5), integers(4, 3, below=6)],
             lambda x, i, j: torch.square(torch.scatter_add(
                 torch.zeros(6, 3, dtype=x.dtype), 0, j, torch.gather(torch.tanh(x), 0, i))).sum())
second_order("embedding", [real(5, 3), integers(2, 3, below=5), real(3, 4)],
             lambda table, i, w: torch.logsumexp(table[i] @ w, -1).sum())
second_order("index_put", [real(4, 3), distinct(2, below=4), real(2, 3)],
             lambda x, i, v: torch.sigmoid(torch.index_put(x, (i,), v * v) ** 2).sum())
second_order("einsum", [real(2, 3), real(3, 4, 2), real(2, 4)],
             lambda a, b, c: torch.square(torch.einsum("bi,ijk,bj->bk", a, b, c)).sum())
second_order("huber", [real(3, 4), real(4, 5), real(3, 5, low=-1, high=1)],
             lambda x, w, t: F.huber_loss(torch.tanh(x @ w), t, delta=0.75))
second_order("bce", [real(3, 4), real(4, 2), constant(real(3, 2, low=0, high=1))],
             lambda x, w, t: F.binary_cross_entropy_with_logits(x @ w, t))
second_order("kl_div", [real(3, 4), real(3, 4)],
             lambda q, p: F.kl_div(F.log_softmax(q, -1), F.softmax(p, -1), reduction="sum"))
second_order("convolution", [real(2, 2, 7), real(3, 2, 3), real(3)],
             lambda x, w, b: torch.square(torch.tanh(torch.einsum(
                 "nctk,ock->not", x.unfold(2, 3, 1), w) + b[:, None])).sum())
second_order("sort", [apart(3, 5), real(5)],
             lambda x, w: (torch.square(torch.sort(x, 1).values) * w).sum())
second_order("topk", [apart(3, 6)], lambda x: torch.exp(torch.topk(x, 3).values / 4).sum())
second_order("selection", [apart(3, 5), apart(3, 5, phase=2)],
             lambda x, y: (torch.maximum(x, y) * torch.minimum(x, y)
                           + torch.where(x > y, x * x * y, y**3)).sum())
second_order("shapes", [real(3, 4), real(2, 3)],
             lambda x, y: torch.square(torch.cat([F.pad(x.T[1:, ::2], (1, 0)), y.repeat(1, 1)]) ** 2
                                       ).sum())
