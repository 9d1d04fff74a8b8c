"""Products, normalisation, losses, attention."""

import torch
import torch.nn.functional as F

from .registry import booleans, case, constant, given, integers, real

# Products ---------------------------------------------------------------------------------------

case("matmul", [real(3, 4), real(4, 5)], torch.matmul)
case("matmul_row", [real(4), real(4, 5)], torch.matmul)
case("matmul_column", [real(3, 4), real(4)], torch.matmul)
case("matmul_vectors", [real(6), real(6)], torch.matmul)
case("matmul_batched", [real(2, 3, 4), real(2, 4, 2)], torch.matmul)
case("matmul_broadcast", [real(2, 1, 3, 4), real(3, 4, 2)], torch.matmul)
case("matmul_matrix_of_batch", [real(2, 3, 4), real(4, 2)], torch.matmul)
case("matmul_vector_of_batch", [real(4), real(2, 4, 3)], torch.matmul)
case("matmul_transposed", [real(4, 3), real(5, 4)], lambda a, b: a.T @ b.T)
case("dot", [real(9), real(9)], torch.dot)
case("outer", [real(4), real(3)], torch.outer)

EQUATIONS = {
    "matrix": ("ij,jk->ik", [(3, 4), (4, 2)]),
    "implicit": ("ij,jk", [(3, 4), (4, 2)]),
    "batched": ("bij,bjk->bik", [(2, 3, 4), (2, 4, 2)]),
    "transposed": ("ij->ji", [(3, 4)]),
    "total": ("ij->", [(3, 4)]),
    "row_sums": ("ij->i", [(3, 4)]),
    "diagonal": ("ii->i", [(4, 4)]),
    "trace": ("ii", [(4, 4)]),
    "outer": ("i,j->ij", [(3,), (4,)]),
    "scores": ("bhqd,bhkd->bhqk", [(2, 2, 3, 4), (2, 2, 2, 4)]),
    "ellipsis": ("...ij,...jk->...ik", [(2, 1, 2, 3), (3, 3, 2)]),
    "chain": ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 2)]),
    "bilinear": ("bi,ijk,bk->bj", [(2, 3), (3, 4, 2), (2, 2)]),
    "summed_alone": ("ij,k->i", [(2, 3), (4,)]),
    "hadamard": ("ij,ij->ij", [(3, 4), (3, 4)]),
    "diagonal_product": ("ii,ij->j", [(3, 3), (3, 4)]),
}
for name, (equation, shapes) in EQUATIONS.items():
    case(f"einsum_{name}", [real(*shape) for shape in shapes],
         lambda *x, equation=equation: torch.einsum(equation, *x))

# Normalisation ----------------------------------------------------------------------------------

case("softmax", [real(3, 5)], lambda x: F.softmax(x, -1))
case("softmax_first", [real(3, 5)], lambda x: F.softmax(x, 0))
case("softmax_middle", [real(2, 3, 4)], lambda x: F.softmax(x, 1))
case("softmax_large", [real(3, 5, low=900, high=1000)], lambda x: F.softmax(x, -1))
case("log_softmax", [real(3, 5)], lambda x: F.log_softmax(x, -1))
case("log_softmax_first", [real(3, 5)], lambda x: F.log_softmax(x, 0))
case("layer_norm", [real(3, 8), real(8), real(8)],
     lambda x, gamma, beta: F.layer_norm(x, (8,), gamma, beta))
case("layer_norm_batch", [real(2, 3, 6), real(6), real(6)],
     lambda x, gamma, beta: F.layer_norm(x, (6,), gamma, beta, 1e-3))
case("rms_norm", [real(3, 8), real(8)], lambda x, gamma: F.rms_norm(x, (8,), gamma, 1e-6))
case("rms_norm_epsilon", [real(2, 2, 6), real(6)],
     lambda x, gamma: F.rms_norm(x, (6,), gamma, 0.125))
case("group_norm", [real(2, 6, 3), real(6), real(6)],
     lambda x, gamma, beta: F.group_norm(x, 3, gamma, beta))
case("group_norm_plane", [real(2, 4, 2, 3), real(4), real(4)],
     lambda x, gamma, beta: F.group_norm(x, 2, gamma, beta, 1e-3))
case("group_norm_vector", [real(3, 6), real(6), real(6)],
     lambda x, gamma, beta: F.group_norm(x, 2, gamma, beta))

# Losses -----------------------------------------------------------------------------------------

LOGITS = real(5, 4)
WEIGHTS = constant(real(4, low=0.5, high=2))
TARGETS = integers(5, below=4)
WITH_IGNORED = given([2, -100, 0, 3, -100], "i64")
for reduction in ("mean", "sum", "none"):
    options = {"reduction": reduction}
    case(f"cross_entropy_{reduction}", [LOGITS, TARGETS],
         lambda x, t, o=options: F.cross_entropy(x, t, **o))
    case(f"cross_entropy_ignore_{reduction}", [LOGITS, WITH_IGNORED],
         lambda x, t, o=options: F.cross_entropy(x, t, ignore_index=-100, **o))
    case(f"cross_entropy_smoothing_{reduction}", [LOGITS, TARGETS],
         lambda x, t, o=options: F.cross_entropy(x, t, label_smoothing=0.125, **o))
    case(f"cross_entropy_weights_{reduction}", [LOGITS, TARGETS, WEIGHTS],
         lambda x, t, w, o=options: F.cross_entropy(x, t, w, **o))
    case(f"cross_entropy_everything_{reduction}", [LOGITS, WITH_IGNORED, WEIGHTS],
         lambda x, t, w, o=options: F.cross_entropy(x, t, w, ignore_index=-100,
                                                    label_smoothing=0.25, **o))
    case(f"nll_loss_{reduction}", [real(5, 4, low=-3, high=0), TARGETS],
         lambda x, t, o=options: F.nll_loss(x, t, **o))
    case(f"nll_loss_everything_{reduction}",
         [real(5, 4, low=-3, high=0), given([2, 1, 0, 3, 1], "i64"), WEIGHTS],
         lambda x, t, w, o=options: F.nll_loss(x, t, w, ignore_index=1, **o))
    # Values 1 to 8 apart: the kink of l1_loss is far, both sides of huber_loss are met.
    pair = [real(3, 4), real(3, 4, low=3, high=6)]
    near = [real(3, 4, low=-0.5, high=0.5), real(3, 4, low=-0.25, high=0.25)]
    case(f"mse_loss_{reduction}", pair, lambda x, t, o=options: F.mse_loss(x, t, **o))
    case(f"l1_loss_{reduction}", pair, lambda x, t, o=options: F.l1_loss(x, t, **o))
    case(f"huber_loss_{reduction}", pair,
         lambda x, t, o=options: F.huber_loss(x, t, delta=2.5, **o))
    case(f"huber_loss_near_{reduction}", near, lambda x, t, o=options: F.huber_loss(x, t, **o))
    case(f"bce_with_logits_{reduction}",
         [real(3, 4, low=-4, high=4), real(3, 4, low=0, high=1)],
         lambda x, t, o=options: F.binary_cross_entropy_with_logits(x, t, **o))
    case(f"kl_div_{reduction}", [real(3, 4, low=-3, high=-0.25), real(3, 4, low=0.125, high=1)],
         lambda q, p, o=options: F.kl_div(q, p, **o))
    case(f"kl_div_log_target_{reduction}",
         [real(3, 4, low=-3, high=-0.25), real(3, 4, low=-3, high=-0.25)],
         lambda q, p, o=options: F.kl_div(q, p, log_target=True, **o))

case("cross_entropy_batch", [real(2, 3, 4), integers(2, 3, below=4)],
     lambda x, t: F.cross_entropy(x.flatten(0, 1), t.flatten()))
case("cross_entropy_batch_none", [real(2, 3, 4), integers(2, 3, below=4)],
     lambda x, t: F.cross_entropy(x.flatten(0, 1), t.flatten(), reduction="none").view(2, 3))
case("cross_entropy_large", [real(3, 4, low=-512, high=512), integers(3, below=4)],
     F.cross_entropy)
case("bce_with_logits_positive_weight",
     [real(3, 4, low=-4, high=4), constant(real(3, 4, low=0, high=1)),
      constant(real(4, low=0.5, high=3))],
     lambda x, t, w: F.binary_cross_entropy_with_logits(x, t, pos_weight=w))
case("bce_with_logits_large", [given([300.0, -300.0, 80.0, -80.0]),
                               constant(given([0.0, 1.0, 1.0, 0.0]))],
     F.binary_cross_entropy_with_logits)
case("kl_div_zero_target", [real(2, 3, low=-3, high=-0.25),
                            constant(given([0.0, 0.5, 0.5, 1.0, 0.0, 0.0], shape=(2, 3)))],
     lambda q, p: F.kl_div(q, p, reduction="sum"))

# Attention --------------------------------------------------------------------------------------

attention = F.scaled_dot_product_attention


def grouped(q, k, v, **options):
    """Heads of q share those of k and v in groups."""
    group = q.shape[1] // k.shape[1]
    k, v = (torch.repeat_interleave(t, group, 1) for t in (k, v))
    return attention(q, k, v, **options)


def causal_to_the_end(q, k):
    queries, keys = q.shape[-2], k.shape[-2]
    return torch.ones(queries, keys, dtype=torch.bool).tril(keys - queries)


QKV = [real(2, 2, 3, 4), real(2, 2, 3, 4), real(2, 2, 3, 4)]
CROSS = [real(2, 2, 3, 4), real(2, 2, 5, 4), real(2, 2, 5, 3)]
GROUPED = [real(1, 4, 3, 4), real(1, 2, 3, 4), real(1, 2, 3, 4)]


def seen_by_all(*shape):
    """A mask in which every query sees the first key."""

    def draw(rng):
        mask = booleans(*shape)(rng)
        for i in range(0, len(mask.values), shape[-1]):
            mask.values[i] = 1
        return mask

    return draw


case("attention", QKV, attention)
case("attention_cross", CROSS, attention)
case("attention_scale", QKV, lambda q, k, v: attention(q, k, v, scale=0.75))
case("attention_causal", QKV, lambda q, k, v: attention(q, k, v, is_causal=True))
case("attention_causal_cross", CROSS,
     lambda q, k, v: attention(q, k, v, attn_mask=causal_to_the_end(q, k)))
case("attention_bool_mask", [*CROSS, seen_by_all(2, 1, 3, 5)],
     lambda q, k, v, m: attention(q, k, v, attn_mask=m))
case("attention_additive_mask", [*CROSS, real(2, 2, 3, 5)],
     lambda q, k, v, m: attention(q, k, v, attn_mask=m))
case("attention_lengths", [*CROSS, given([5, 2], "i64")],
     lambda q, k, v, n: attention(
         q, k, v, attn_mask=torch.arange(5) < n[:, None, None, None]))
case("attention_grouped", GROUPED, grouped)
case("attention_grouped_causal", GROUPED,
     lambda q, k, v: grouped(q, k, v, attn_mask=causal_to_the_end(q, k)))
case("attention_one_group", [real(2, 3, 2, 4), real(2, 1, 4, 4), real(2, 1, 4, 4)], grouped)
case("attention_causal_and_mask", [*CROSS, seen_by_all(3, 5)],
     lambda q, k, v, m: attention(q, k, v, attn_mask=m & causal_to_the_end(q, k)))


def rotary(x, positions, base=10000.0, interleaved=False):
    """By its definition; angles and turning in f32 at least."""
    wide = torch.float64 if x.dtype == torch.float64 else torch.float32
    d = x.shape[-1]
    frequencies = base ** -(torch.arange(0, d, 2, dtype=wide) / d)
    angles = positions.to(wide)[..., None] * frequencies
    cos, sin = torch.cos(angles), torch.sin(angles)
    y = x.to(wide)
    if interleaved:
        a, b = y[..., 0::2], y[..., 1::2]
        turned = torch.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(-2)
    else:
        a, b = y[..., : d // 2], y[..., d // 2 :]
        turned = torch.cat([a * cos - b * sin, a * sin + b * cos], -1)
    return turned.to(x.dtype)


case("rotary", [real(2, 3, 8), given([0, 1, 2], "i64")], rotary)
case("rotary_base", [real(2, 3, 4), given([3, 5, 9], "i64")], lambda x, p: rotary(x, p, 500.0))
case("rotary_interleaved", [real(2, 3, 8), given([0, 1, 2], "i64")],
     lambda x, p: rotary(x, p, interleaved=True))
case("rotary_batch", [real(2, 2, 3, 4), given([0, 1, 2, 7, 8, 9], "i64", (2, 1, 3))], rotary)
