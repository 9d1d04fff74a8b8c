"""A training step of GPT-2 124M in PyTorch on a GPU: bf16, eager and compiled.

    python3 bench/peers/gpt2_step.py [--batch 64] [--context 1024] [--steps 20] [--beside PATH [--rounds 3]]

Same model and step as `bench_gpt2_step`: weights drawn at random, no dropout, flash attention, gradients clipped to norm
1, fused AdamW. Two ways to have bf16: parameters in f32 with autocast, and parameters in bf16 without masters, which is
less work than ours, whose masters are f32. The vocabulary is padded to a multiple of 64 unless --vocabulary says
otherwise. Prints tokens per second and the peak of memory, the median over steps that are queued and waited for once a
sample. With --beside, the program bench_gpt2_step at PATH takes turns with the compiled steps, round by round.
"""
import argparse
import re
import statistics
import subprocess
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

LAYERS, HEADS, WIDTH = 12, 12, 768
QUEUED = 4  # steps between two waits


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.join = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.widen, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (part.view(b, t, HEADS, c // HEADS).transpose(1, 2) for part in self.qkv(self.norm1(x)).split(c, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.join(y.transpose(1, 2).reshape(b, t, c))
        return x + self.narrow(F.gelu(self.widen(self.norm2(x)), approximate="tanh"))


class Gpt2(nn.Module):
    def __init__(self, vocabulary, context):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, WIDTH), nn.Embedding(context, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)
        for parameter in self.parameters():
            if parameter.dim() == 2:
                nn.init.normal_(parameter, 0, 0.02)

    def forward(self, tokens, targets):
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.norm(x), self.tokens.weight)
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.view(-1))


def make_step(compiled, pure, arguments):
    torch.manual_seed(1)
    with torch.device("cuda"):
        model = Gpt2(arguments.vocabulary, arguments.context)
        x, y = torch.randint(50257, (2, arguments.batch, arguments.context))
    if pure:
        model = model.bfloat16()
    forward = torch.compile(model) if compiled else model
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.bfloat16, enabled=not pure), sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            loss = forward(x, y)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
        optimizer.step()
        return loss

    for _ in range(3):
        loss = step()
    assert torch.isfinite(loss).item()
    return step


def rate_of(step, arguments):
    times = []
    torch.cuda.synchronize()
    for _ in range(max(1, arguments.steps // QUEUED)):
        begin = time.perf_counter()
        for _ in range(QUEUED):
            step()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - begin) / QUEUED)
    return arguments.batch * arguments.context / statistics.median(times)


def measure_all(arguments):
    best = 0
    for pure in (False, True):
        for compiled in (False, True):
            name = f"{'compiled' if compiled else 'eager':9s} {'bf16 parameters' if pure else 'autocast':15s}"
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
            try:
                rate = rate_of(make_step(compiled, pure, arguments), arguments)
            except Exception as error:  # out of memory, or a compiler that is not there
                print(f"{name} {str(error).splitlines()[0][:120]}", flush=True)
                continue
            best = max(best, rate)
            print(f"{name} {rate:9.0f} tokens/s, peak {torch.cuda.max_memory_allocated() * 1e-9:.1f} GB", flush=True)
            torch._dynamo.reset()
    print(f"best {best:.0f} tokens/s")


def take_turns(arguments):
    steps = {"compiled, autocast": make_step(True, False, arguments),
             "compiled, bf16 parameters": make_step(True, True, arguments)}
    command = [arguments.beside, str(arguments.steps), str(arguments.batch), str(arguments.context)]
    rates = {"Tessera": [], **{name: [] for name in steps}}
    for _ in range(arguments.rounds):
        torch.cuda.empty_cache()
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        rates["Tessera"].append(float(re.search(r"(\d+) tokens/s", printed)[1]))
        for name, step in steps.items():
            rates[name].append(rate_of(step, arguments))
        print("round:", ", ".join(f"{name} {values[-1]:.0f}" for name, values in rates.items()), flush=True)
    for name, values in rates.items():
        print(f"{name:26s} {' '.join(f'{value:.0f}' for value in values)}  median {statistics.median(values):.0f} tokens/s")
    best = max(statistics.median(rates[name]) for name in steps)
    print(f"Tessera / the best of PyTorch: {statistics.median(rates['Tessera']) / best:.3f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--context", type=int, default=1024)
    parser.add_argument("--vocabulary", type=int, default=50304)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--beside", help="the path of bench_gpt2_step")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    torch.set_float32_matmul_precision("high")
    print(f"PyTorch {torch.__version__}, {torch.cuda.get_device_name()}, B = {arguments.batch}, T = {arguments.context}")
    if arguments.beside:
        take_turns(arguments)
    else:
        measure_all(arguments)


if __name__ == "__main__":
    main()
