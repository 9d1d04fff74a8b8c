#!/usr/bin/env python3
"""Writes what GPT-2 gives in PyTorch, for tests/models/golden_test.cpp.

usage: golden_gpt.py FILE.safetensors      (tests/models/data/gpt.safetensors)

GPT-2 as HuggingFace's GPT2LMHeadModel computes it, with its names and its weights (in, out), written out in
plain PyTorch: 2 layers of width 32 with 2 heads, 61 tokens, 16 positions. Computed in float64:
"param/<name>", "tokens", "targets", "logits", "grad/<name>" of the mean cross-entropy for every
parameter, and "losses" before each of ten steps of AdamW on the same batch.
"""

import math
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden"))
import torch
import torch.nn.functional as F
from make_golden import Writer, flat

LAYERS, WIDTH, HEADS, VOCABULARY, CONTEXT, BATCH = 2, 32, 2, 61, 16, 2
GENERATOR = torch.Generator().manual_seed(11)


def drawn(*shape, scale=0.25):
    """Multiples of scale / 128, which bf16 holds exactly."""
    return (torch.randint(-128, 129, shape, generator=GENERATOR) / 128).to(torch.float64) * scale


def parameters():
    found = {"wte.weight": drawn(VOCABULARY, WIDTH), "wpe.weight": drawn(CONTEXT, WIDTH)}
    for i in range(LAYERS):
        for norm in ("ln_1", "ln_2"):
            found[f"h.{i}.{norm}.weight"] = 1 + drawn(WIDTH)
            found[f"h.{i}.{norm}.bias"] = drawn(WIDTH)
        for name, rows, columns in (("attn.c_attn", WIDTH, 3 * WIDTH), ("attn.c_proj", WIDTH, WIDTH),
                                    ("mlp.c_fc", WIDTH, 4 * WIDTH), ("mlp.c_proj", 4 * WIDTH, WIDTH)):
            found[f"h.{i}.{name}.weight"] = drawn(rows, columns)
            found[f"h.{i}.{name}.bias"] = drawn(columns)
    found["ln_f.weight"] = 1 + drawn(WIDTH)
    found["ln_f.bias"] = drawn(WIDTH)
    return {f"transformer.{name}": value.bfloat16().double().requires_grad_()
            for name, value in found.items()}


def gelu_new(x):
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))


def logits_of(p, tokens):
    def get(name):
        return p[f"transformer.{name}"]

    def norm(x, name):
        return F.layer_norm(x, (WIDTH,), get(f"{name}.weight"), get(f"{name}.bias"), 1e-5)

    def conv1d(x, name):
        return x @ get(f"{name}.weight") + get(f"{name}.bias")

    def heads(x):
        return x.reshape(BATCH, -1, HEADS, WIDTH // HEADS).transpose(1, 2)

    length = tokens.shape[1]
    seen = torch.ones(length, length, dtype=torch.bool).tril()
    x = get("wte.weight")[tokens] + get("wpe.weight")[:length]
    for i in range(LAYERS):
        q, k, v = map(heads, conv1d(norm(x, f"h.{i}.ln_1"), f"h.{i}.attn.c_attn").split(WIDTH, -1))
        scores = (q @ k.transpose(-1, -2) / math.sqrt(WIDTH // HEADS)).masked_fill(~seen, -math.inf)
        mixed = (scores.softmax(-1) @ v).transpose(1, 2).reshape(x.shape)
        x = x + conv1d(mixed, f"h.{i}.attn.c_proj")
        hidden = gelu_new(conv1d(norm(x, f"h.{i}.ln_2"), f"h.{i}.mlp.c_fc"))
        x = x + conv1d(hidden, f"h.{i}.mlp.c_proj")
    return norm(x, "ln_f") @ get("wte.weight").T


def loss_of(p, tokens, targets):
    return F.cross_entropy(logits_of(p, tokens).flatten(0, 1), targets.flatten())


def main():
    path = sys.argv[1]
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    torch.set_num_threads(1)
    writer = Writer()
    writer.metadata["torch"] = torch.__version__.split("+")[0]
    p = parameters()
    text = torch.randint(0, VOCABULARY, (BATCH, CONTEXT + 1), generator=GENERATOR)
    tokens, targets = text[:, :-1], text[:, 1:]
    writer.add_result("tokens", tokens)
    writer.add_result("targets", targets)
    for name, value in p.items():
        writer.add(f"param/{name}", "bf16", value.shape, flat(value))
    writer.add("logits", "f32", (BATCH, CONTEXT, VOCABULARY), flat(logits_of(p, tokens)))
    grads = torch.autograd.grad(loss_of(p, tokens, targets), list(p.values()))
    for name, grad in zip(p, grads):
        writer.add(f"grad/{name}", "f32", grad.shape, flat(grad))
    optimizer = torch.optim.AdamW(p.values(), lr=3e-3, betas=(0.9, 0.95), eps=1e-8,
                                  weight_decay=0.1)
    losses = []
    for _ in range(10):
        loss = loss_of(p, tokens, targets)
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    writer.add("losses", "f64", (10,), losses)
    writer.write(path)
    print(f"{path}: {os.path.getsize(path)} bytes, torch {torch.__version__}, losses {losses}")


if __name__ == "__main__":
    main()
