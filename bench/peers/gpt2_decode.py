"""Decoding with GPT-2 124M in PyTorch on a GPU: eager, and compiled over a static cache.

    python3 bench/peers/gpt2_decode.py [--prompt 32] [--tokens 200] [--runs 5]

bf16 weights drawn at random, B = 1 and B = 64, the likeliest token each time. Keys and values lie in a cache of fixed
capacity, so that a step has the same shapes each time and is one CUDA graph where it is compiled. Prints the milliseconds
of a token's step, the tokens per second of all sequences together, and the time of the prompt; medians over runs.
"""
import argparse
import statistics
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

LAYERS, HEADS, WIDTH, VOCABULARY, CONTEXT = 12, 12, 768, 50257, 1024


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.join = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.widen, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x, positions, mask, keys, values):
        b, t, c = x.shape
        q, k, v = (part.view(b, t, HEADS, c // HEADS).transpose(1, 2) for part in self.qkv(self.norm1(x)).split(c, 2))
        keys.index_copy_(2, positions, k)
        values.index_copy_(2, positions, v)
        y = F.scaled_dot_product_attention(q, keys, values, attn_mask=mask)
        x = x + self.join(y.transpose(1, 2).reshape(b, t, c))
        return x + self.narrow(F.gelu(self.widen(self.norm2(x)), approximate="tanh"))


class Gpt2(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)
        for parameter in self.parameters():
            if parameter.dim() == 2:
                nn.init.normal_(parameter, 0, 0.02)

    def forward(self, tokens, positions, cache):
        """tokens (B, T) at positions (T) -> the next token (B, 1)."""
        mask = torch.arange(cache[0][0].shape[2], device=tokens.device) <= positions[:, None]
        x = self.tokens(tokens) + self.positions(positions)
        for block, (keys, values) in zip(self.blocks, cache):
            x = block(x, positions, mask, keys, values)
        return F.linear(self.norm(x[:, -1:]), self.tokens.weight).argmax(-1)


def decode(model, step, cache, prompt, count):
    """Seconds of the prompt and of each step behind it."""
    torch.cuda.synchronize()
    begin = time.perf_counter()
    token = model(prompt, torch.arange(prompt.shape[1], device="cuda"), cache)
    torch.cuda.synchronize()
    middle = time.perf_counter()
    position = torch.full((1,), prompt.shape[1], device="cuda")
    for _ in range(count - 1):
        token = step(token, position, cache).clone()
        position += 1
    torch.cuda.synchronize()
    return middle - begin, (time.perf_counter() - middle) / (count - 1)


@torch.inference_mode()
def measure(batch, compiled, arguments):
    torch.manual_seed(1)
    with torch.device("cuda"):
        model = Gpt2().bfloat16().eval()
        prompt = torch.randint(VOCABULARY, (batch, arguments.prompt))
        shape = (batch, HEADS, arguments.prompt + arguments.tokens, WIDTH // HEADS)
        cache = [(torch.zeros(shape, dtype=torch.bfloat16), torch.zeros(shape, dtype=torch.bfloat16))
                 for _ in range(LAYERS)]
    for pair in cache:
        for part in pair:
            torch._dynamo.mark_static_address(part)
    step = torch.compile(model, mode="reduce-overhead", fullgraph=True) if compiled else model
    decode(model, step, cache, prompt, arguments.tokens)
    runs = [decode(model, step, cache, prompt, arguments.tokens) for _ in range(arguments.runs)]
    first, each = (statistics.median(part) for part in zip(*runs))
    print(f"{'compiled' if compiled else 'eager':9s} B = {batch:2d} {each * 1e3:7.3f} ms a step, {batch / each:9.0f} tokens/s, "
          f"prompt {first * 1e3:.2f} ms", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--prompt", type=int, default=32)
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    print(f"PyTorch {torch.__version__}, {torch.cuda.get_device_name()}, {arguments.prompt} + {arguments.tokens} tokens")
    for batch in (1, 64):
        for compiled in (False, True):
            torch._dynamo.reset()
            try:
                measure(batch, compiled, arguments)
            except Exception as error:  # a compiler that is not there
                print(f"{'compiled' if compiled else 'eager':9s} B = {batch:2d} {str(error).splitlines()[0][:120]}", flush=True)


if __name__ == "__main__":
    main()
