"""A training step of the character GPT (preset "char" of src/tessera/models, no dropout) in PyTorch: eager and compiled.

    taskset -c 0,1 python3 bench/peers/gpt_step.py [--threads 2] [--steps 10] [--beside PATH [--rounds 8]]

Same model, batch and optimiser as `bench_gpt_step`: 6 layers, 6 heads, width 384, context 256, 65 characters,
biases, tied head, tanh GELU, B = 8, f32, AdamW. Prints tokens per second, median over steps, for eager and
torch.compile, each with AdamW's implementations (for-loop, foreach, fused): the best counts. With --beside, the program
bench_gpt_step at PATH takes turns with eager and compiled steps (fused AdamW), round by round, and the medians of all
rounds are compared: a machine whose speed changes from minute to minute is the same machine for all of them.
"""
import argparse
import re
import statistics
import subprocess
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

LAYERS, HEADS, WIDTH, CONTEXT, VOCABULARY, BATCH = 6, 6, 384, 256, 65, 8


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


class CharGpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)
        for parameter in self.parameters():
            if parameter.dim() == 2:
                nn.init.normal_(parameter, 0, 0.02)

    def forward(self, tokens, targets):
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.norm(x), self.tokens.weight)
        return F.cross_entropy(logits.view(-1, VOCABULARY), targets.view(-1))


def make_step(compiled, adamw):
    """A step of training, after its first three."""
    torch.manual_seed(1)
    model = CharGpt()
    forward = torch.compile(model) if compiled else model
    optimizer = torch.optim.AdamW(model.parameters(), **adamw)
    x, y = torch.randint(VOCABULARY, (2, BATCH, CONTEXT))

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = forward(x, y)
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(3):
        step()
    return step


def rate_of(step, steps):
    times = []
    for _ in range(steps):
        begin = time.perf_counter()
        loss = step()
        times.append(time.perf_counter() - begin)
    loss.item()
    return BATCH * CONTEXT / statistics.median(times)


def tokens_per_second(compiled, adamw, steps):
    return rate_of(make_step(compiled, adamw), steps)


def take_turns(program, rounds, steps):
    peers = {"eager": make_step(False, {"fused": True}), "compiled": make_step(True, {"fused": True})}
    rates = {"Tessera": [], **{name: [] for name in peers}}
    for _ in range(rounds):
        printed = subprocess.run([program, str(steps)], capture_output=True, text=True, check=True).stdout
        rates["Tessera"].append(float(re.search(r"(\d+) tokens/s", printed)[1]))
        for name, step in peers.items():
            rates[name].append(rate_of(step, steps))
        print("round:", ", ".join(f"{name} {values[-1]:.0f}" for name, values in rates.items()), flush=True)
    for name, values in rates.items():
        print(f"{name:9s} {' '.join(f'{value:5.0f}' for value in values)}  median {statistics.median(values):.0f} tokens/s")
    best = max(statistics.median(rates[name]) for name in peers)
    print(f"Tessera / the best of PyTorch: {statistics.median(rates['Tessera']) / best:.3f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--beside", help="the path of bench_gpt_step")
    parser.add_argument("--rounds", type=int, default=8)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    print(f"PyTorch {torch.__version__}, {arguments.threads} threads")
    if arguments.beside:
        return take_turns(arguments.beside, arguments.rounds, arguments.steps)
    for compiled in (False, True):
        best = 0
        for adamw in ({"foreach": False}, {"foreach": True}, {"fused": True}):
            rate = tokens_per_second(compiled, adamw, arguments.steps)
            print(f"{'compiled' if compiled else 'eager':9s} {str(adamw):20s} {rate:7.0f} tokens/s", flush=True)
            best = max(best, rate)
        print(f"{'compiled' if compiled else 'eager':9s} best {best:.0f} tokens/s", flush=True)


if __name__ == "__main__":
    main()
