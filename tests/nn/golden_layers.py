#!/usr/bin/env python3
"""Writes what PyTorch's layers give, for tests/nn/golden_test.cpp.

usage: golden_layers.py FILE.safetensors      (tests/nn/data/layers.safetensors)

For every layer, computed in float64: "<case>/in" and "<case>/param/<name>" with Tessera's names; the loss is
sum(out · "<case>/cotangent"); "<case>/out", "<case>/grad/in" where the input is no index, and
"<case>/grad/<name>" for every parameter. Attention is written out here with q, k and v projected one
by one and complex numbers for rotations, as other libraries do not pack them as Tessera does.
"""

import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden"))
import torch
import torch.nn.functional as F
from make_golden import Writer

GENERATOR = torch.Generator().manual_seed(7)


def drawn(*shape):
    return (torch.randint(-128, 129, shape, generator=GENERATOR) / 128).to(torch.float64)


def of_module(module, x, names=None):
    """A PyTorch module with drawn parameters; names maps its names to Tessera's."""
    module = module.to(torch.float64)
    parameters = {}
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            parameter.copy_(drawn(*parameter.shape))
            parameters[(names or {}).get(name, name)] = parameter
    return parameters, x, module


def rotated(x, base, interleaved):
    """x (B, H, T, D) as complex numbers that turn by position · base^(-2i / D)."""
    length, width = x.shape[-2], x.shape[-1]
    frequencies = base ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    angles = torch.arange(length, dtype=torch.float64)[:, None] * frequencies
    turn = torch.polar(torch.ones_like(angles), angles)
    if interleaved:
        return torch.view_as_real(torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2)) * turn
                                  ).reshape(x.shape)
    turned = torch.complex(x[..., : width // 2], x[..., width // 2:]) * turn
    return torch.cat([turned.real, turned.imag], -1)


def attention(width, heads, kv_heads, causal, bias=True, rotary=None):
    head = width // heads
    rows = head * (heads + 2 * kv_heads)
    parameters = {"qkv.weight": drawn(rows, width)}
    if bias:
        parameters["qkv.bias"] = drawn(rows)
    parameters["out.weight"] = drawn(width, width)
    if bias:
        parameters["out.bias"] = drawn(width)

    def part(x, first, count):
        some = slice(first * head, (first + count) * head)
        y = F.linear(x, parameters["qkv.weight"][some],
                     parameters["qkv.bias"][some] if bias else None)
        return y.reshape(*x.shape[:2], count, head).transpose(1, 2)

    def run(x):
        q, k, v = part(x, 0, heads), part(x, heads, kv_heads), part(x, heads + kv_heads, kv_heads)
        if rotary:
            q, k = rotated(q, *rotary), rotated(k, *rotary)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=True)
        return F.linear(y.transpose(1, 2).flatten(2), parameters["out.weight"],
                        parameters.get("out.bias"))

    return parameters, drawn(2, 5, width), run


def mlp(activation, bias=True):
    parameters = {"up.weight": drawn(12, 6), "down.weight": drawn(6, 12)}
    if bias:
        parameters |= {"up.bias": drawn(12), "down.bias": drawn(6)}

    def run(x):
        hidden = activation(F.linear(x, parameters["up.weight"], parameters.get("up.bias")))
        return F.linear(hidden, parameters["down.weight"], parameters.get("down.bias"))

    return parameters, drawn(2, 3, 6), run


def swiglu():
    parameters = {"gate.weight": drawn(12, 6), "up.weight": drawn(12, 6),
                  "down.weight": drawn(6, 12)}

    def run(x):
        gated = F.silu(F.linear(x, parameters["gate.weight"]))
        return F.linear(gated * F.linear(x, parameters["up.weight"]), parameters["down.weight"])

    return parameters, drawn(2, 3, 6), run


def tied():
    """An embedding whose table is also the last weight."""
    parameters = {"embedding.weight": drawn(7, 4), "norm.weight": drawn(4), "norm.bias": drawn(4)}

    def run(tokens):
        x = F.embedding(tokens, parameters["embedding.weight"])
        x = F.layer_norm(x, (4,), parameters["norm.weight"], parameters["norm.bias"])
        return F.linear(x, parameters["embedding.weight"])

    return parameters, torch.tensor([[1, 2, 1], [6, 0, 3]]), run


def sequential():
    module = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.ReLU(), torch.nn.LayerNorm(8),
                                 torch.nn.Linear(8, 3, bias=False))
    names = {"0.weight": "fc1.weight", "0.bias": "fc1.bias", "2.weight": "norm.weight",
             "2.bias": "norm.bias", "3.weight": "fc2.weight"}
    return of_module(module, drawn(4, 5), names)


def cases():
    return {
        "linear": of_module(torch.nn.Linear(5, 3), drawn(2, 4, 5)),
        "linear_without_bias": of_module(torch.nn.Linear(5, 3, bias=False), drawn(4, 5)),
        "embedding": of_module(torch.nn.Embedding(7, 3), torch.tensor([[6, 0, 6], [2, 1, 6]])),
        "layer_norm": of_module(torch.nn.LayerNorm(6, eps=1e-3), drawn(3, 4, 6)),
        "rms_norm": of_module(torch.nn.RMSNorm(6, eps=1e-4), drawn(3, 4, 6)),
        "mlp_relu": mlp(F.relu),
        "mlp_gelu": mlp(F.gelu),
        "mlp_gelu_tanh": mlp(lambda x: F.gelu(x, approximate="tanh"), bias=False),
        "mlp_swiglu": swiglu(),
        "attention": attention(8, 2, 2, causal=False),
        "attention_causal": attention(8, 2, 2, causal=True),
        "attention_grouped": attention(16, 4, 2, causal=True, bias=False),
        "attention_rotary": attention(8, 2, 1, causal=True, rotary=(10000.0, False)),
        "attention_interleaved": attention(8, 2, 2, causal=False, rotary=(100.0, True)),
        "sequential": sequential(),
        "tied": tied(),
    }


def add_given(writer, name, tensor):
    """What was drawn, which bf16 holds exactly."""
    if not tensor.is_floating_point():
        writer.add_result(name, tensor)
        return
    assert torch.equal(tensor.bfloat16().double(), tensor)
    writer.add(name, "bf16", tensor.shape, tensor.detach().reshape(-1).tolist())


def add_case(writer, name, parameters, x, run):
    for parameter in parameters.values():
        parameter.requires_grad_()
    wanted = dict(parameters)
    if x.is_floating_point():
        wanted["in"] = x.requires_grad_()
    out = run(x)
    cotangent = drawn(*out.shape)
    grads = torch.autograd.grad((out * cotangent).sum(), list(wanted.values()))
    writer.add_result(f"{name}/out", out)
    add_given(writer, f"{name}/in", x)
    add_given(writer, f"{name}/cotangent", cotangent)
    for parameter_name, parameter in parameters.items():
        add_given(writer, f"{name}/param/{parameter_name}", parameter)
    for wanted_name, grad in zip(wanted, grads):
        writer.add_result(f"{name}/grad/{wanted_name}", grad)


def main():
    path = sys.argv[1]
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    torch.set_num_threads(1)
    writer = Writer()
    writer.metadata["torch"] = torch.__version__.split("+")[0]
    made = cases()
    for name, (parameters, x, run) in made.items():
        add_case(writer, name, parameters, x, run)
    writer.write(path)
    print(f"{path}: {len(made)} cases, {os.path.getsize(path)} bytes, torch {torch.__version__}")


if __name__ == "__main__":
    main()
