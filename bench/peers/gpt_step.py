"""A training step of the character GPT of src/tessera/bench/char_gpt.h in PyTorch: eager and compiled.

    taskset -c 0,1 python3 bench/peers/gpt_step.py [--threads 2] [--steps 10]

Same model, batch and optimiser as `bench_gpt_step`: 6 layers, 6 heads, width 384, context 256, 65 characters,
biases, tied head, tanh GELU, B = 8, f32, AdamW. Prints tokens per second, median over steps, for eager and
torch.compile, each with AdamW's implementations (for-loop, foreach, fused): the best counts.
"""
import argparse
import statistics
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


def tokens_per_second(compiled, adamw, steps):
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
    times = []
    for _ in range(steps):
        begin = time.perf_counter()
        loss = step()
        times.append(time.perf_counter() - begin)
    loss.item()
    return BATCH * CONTEXT / statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=10)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    print(f"PyTorch {torch.__version__}, {arguments.threads} threads")
    for compiled in (False, True):
        best = 0
        for adamw in ({"foreach": False}, {"foreach": True}, {"fused": True}):
            rate = tokens_per_second(compiled, adamw, arguments.steps)
            print(f"{'compiled' if compiled else 'eager':9s} {str(adamw):20s} {rate:7.0f} tokens/s", flush=True)
            best = max(best, rate)
        print(f"{'compiled' if compiled else 'eager':9s} best {best:.0f} tokens/s", flush=True)


if __name__ == "__main__":
    main()
