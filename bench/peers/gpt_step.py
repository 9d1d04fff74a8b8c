"""A training step of the character GPT (preset "char" of src/tessera/models, no dropout) in PyTorch: eager and compiled.

    taskset -c 0,1 python3 bench/peers/gpt_step.py [--threads 2] [--steps 10] [--beside PATH [--train PATH] [--rounds 8]]

Same model, batch and optimiser as `bench_gpt_step`: 6 layers, 6 heads, width 384, context 256, 65 characters,
biases, tied head, tanh GELU, B = 8, f32, AdamW. Prints tokens per second, median over steps, for eager and
torch.compile, each with AdamW's implementations (for-loop, foreach, fused): the best counts. With --beside, the program
bench_gpt_step at PATH takes turns with eager and compiled steps (fused AdamW), round by round, and the medians of all
steps are compared: a machine whose speed changes from minute to minute is the same machine for all of them. With
--train, the command `tessera` at PATH takes its turns, too: `tessera train` of the same model on a text of 65
characters, with clipping, which the others leave out.
"""
import argparse
import csv
import pathlib
import random
import re
import statistics
import string
import subprocess
import tempfile
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


def rate_of_command(command, steps):
    """Tokens per second of `tessera train`, by its log: the later half of its steps."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        letters = (string.ascii_letters + string.digits + " ,.\n")[:VOCABULARY]
        (folder / "text").write_text("".join(random.Random(1).choices(letters, k=200_000)))
        subprocess.run([command, "train", folder / "text", "--model", "char", "--dropout", "0", "--batch", str(BATCH),
                        "--steps", str(2 * steps), "--log-every", str(steps), "--eval-every", "0", "--sample", "0",
                        "--device", "cpu", "--out", folder / "run"], capture_output=True, check=True)
        with open(folder / "run" / "log.csv") as log:
            seconds = {int(row["step"]): float(row["seconds"]) for row in csv.DictReader(log)}
    return steps * BATCH * CONTEXT / (seconds[2 * steps] - seconds[steps])


def seconds_of(step):
    begin = time.perf_counter()
    step()
    return time.perf_counter() - begin


def take_turns(program, command, rounds, steps):
    ours = subprocess.Popen([program, "turns"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    print("Tessera:", ours.stdout.readline().strip())

    def our_step():
        print(file=ours.stdin, flush=True)
        return float(ours.stdout.readline())

    torch_steps = {"eager": make_step(False, {"fused": True}), "compiled": make_step(True, {"fused": True})}
    sides = {"Tessera": our_step, **{name: lambda step=step: seconds_of(step) for name, step in torch_steps.items()}}
    times = {name: [] for name in sides}
    rates = {}  # of the latest round
    trained = []
    for turn in range(rounds):
        for name, step in sides.items():
            step()  # its threads wake, and the others' have fallen asleep
            times[name] += [step() for _ in range(steps)]
            rates[name] = BATCH * CONTEXT / statistics.median(times[name][-steps:])
        if command:
            trained.append(rate_of_command(command, steps))
            rates["train"] = trained[-1]
        print(f"round {turn}:", ", ".join(f"{name} {rate:.0f}" for name, rate in rates.items()), flush=True)
    for name, values in times.items():
        print(f"{name:9s} median {BATCH * CONTEXT / statistics.median(values):.0f}, best {BATCH * CONTEXT / min(values):.0f} tokens/s")
    best = min(statistics.median(times[name]) for name in torch_steps)
    if command:
        rate = statistics.median(trained)
        print(f"tessera train median {rate:.0f}, best {max(trained):.0f} tokens/s, "
              f"{rate * best / (BATCH * CONTEXT):.3f} of the best of PyTorch")
    print(f"Tessera / the best of PyTorch, by medians: {best / statistics.median(times['Tessera']):.3f}, "
          f"by best steps: {min(min(times[name]) for name in torch_steps) / min(times['Tessera']):.3f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--beside", help="the path of bench_gpt_step")
    parser.add_argument("--train", help="the path of tessera, whose training is timed, too")
    parser.add_argument("--rounds", type=int, default=8)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    print(f"PyTorch {torch.__version__}, {arguments.threads} threads")
    if arguments.beside:
        return take_turns(arguments.beside, arguments.train, arguments.rounds, arguments.steps)
    for compiled in (False, True):
        best = 0
        for adamw in ({"foreach": False}, {"foreach": True}, {"fused": True}):
            rate = tokens_per_second(compiled, adamw, arguments.steps)
            print(f"{'compiled' if compiled else 'eager':9s} {str(adamw):20s} {rate:7.0f} tokens/s", flush=True)
            best = max(best, rate)
        print(f"{'compiled' if compiled else 'eager':9s} best {best:.0f} tokens/s", flush=True)


if __name__ == "__main__":
    main()
