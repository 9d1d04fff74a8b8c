"""The lines of bench_gpu in PyTorch, by replay of CUDA graphs.

    python3 bench/peers/gpu.py [--small] [--turns] [PATTERN]

Prints one JSON object per line: name, microseconds. --turns is as bench_gpu's. Elementwise and row kernels are timed eager and compiled
(max-autotune without its own graphs); the faster counts.
"""
import json
import sys
import time

import torch
import torch.nn.functional as F

SMALL = "--small" in sys.argv
TURNS = "--turns" in sys.argv
PATTERN = next((word for word in sys.argv[1:] if not word.startswith("--")), "")
ROUNDS, ROUNDS_OF_A_TURN = 7, 3
SHORT_FLOPS = 4e9
DEVICE = "cuda"
DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16}


def large(n):
    return n // 64 if SMALL else n


def recorded(work):
    """Times a graph of the work: seconds of one replay, the least of so many rounds."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            work()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kept = work()

    def one_round(runs):
        begin = time.perf_counter()
        for _ in range(runs):
            graph.replay()
        torch.cuda.synchronize()
        return time.perf_counter() - begin

    one_round(3)
    runs = max(3, int(0.02 / max(one_round(1), 1e-6)))

    def least(rounds, _kept=kept):
        return min(one_round(runs) / runs for _ in range(rounds))

    return least


def is_asked_for(name):
    print(json.dumps({"ready": name}), flush=True)
    return sys.stdin.readline().strip() == "time"


def line(name, *works, repeats=1):
    if PATTERN not in name:
        return
    graphs = []
    for work in works:
        try:
            graphs.append(recorded(work))
        except Exception as error:  # one that cannot be captured or compiled
            print(json.dumps({"name": name, "note": str(error)[:120]}), flush=True)

    def measure(rounds):
        seconds = [least(rounds) / repeats for least in graphs]
        print(json.dumps({"name": name, "us": min(seconds) * 1e6, "eager_us": seconds[0] * 1e6}), flush=True)

    if graphs and not TURNS:
        measure(ROUNDS)
    while graphs and TURNS and is_asked_for(name):
        measure(ROUNDS_OF_A_TURN)
    torch._dynamo.reset()


def made(*shape, dtype):
    return (torch.rand(*shape, device=DEVICE) - 0.5).to(dtype)


def elementwise():
    for name, dtype in DTYPES.items():
        n = large(1 << 28)
        x, y = made(n, dtype=dtype), made(n, dtype=dtype)
        chain = lambda: torch.tanh(x * y + x) * torch.sigmoid(y - x)
        line(f"copy_{name}", lambda: -x)
        line(f"add_{name}", lambda: x + y)
        line(f"chain_{name}", chain, torch.compile(chain))
        line(f"sum_{name}", lambda: x.sum(), torch.compile(lambda: x.sum()))
        del x, y
    for n in (1 << 10, 1 << 18, 1 << 20):
        repeats = 50 if n < 1 << 20 else 3  # so many that a cache holds what they touch
        xs, y = [made(n, dtype=torch.float32) for _ in range(repeats)], made(n, dtype=torch.float32)
        line(f"add_replayed_{n}", lambda: [x + y for x in xs], repeats=repeats)


def rows():
    for name, dtype in DTYPES.items():
        for columns in (768, 1024, 4096, 16384, 32768, 50257, 131072):
            x = made(large(1 << 27) // columns, columns, dtype=dtype)
            gamma, beta = made(columns, dtype=dtype), made(columns, dtype=dtype)
            soft = lambda: torch.softmax(x, -1)
            norm = lambda: F.layer_norm(x, (columns,), gamma, beta)
            line(f"softmax_{columns}_{name}", soft, torch.compile(soft))
            line(f"layer_norm_{columns}_{name}", norm, torch.compile(norm))
        x = made(large(65536), 768, dtype=dtype).requires_grad_()
        gamma = made(768, dtype=dtype).requires_grad_()
        beta = made(768, dtype=dtype).requires_grad_()
        g = made(large(65536), 768, dtype=dtype)
        y, mean, rstd = torch.native_layer_norm(x, (768,), gamma, beta, 1e-5)
        back = lambda: torch.ops.aten.native_layer_norm_backward(
            g, x.detach(), [768], mean.detach(), rstd.detach(), gamma.detach(), beta.detach(), [True, True, True])
        line(f"layer_norm_backward_768_{name}", back, torch.compile(back))
    xs = [made(64, 1024, dtype=torch.float32) for _ in range(50)]
    gamma, beta = made(1024, dtype=torch.float32), made(1024, dtype=torch.float32)
    line("softmax_replayed_64x1024", lambda: [torch.softmax(x, -1) for x in xs], repeats=50)
    line("layer_norm_replayed_64x1024", lambda: [F.layer_norm(x, (1024,), gamma, beta) for x in xs], repeats=50)


def losses():
    def add(rows, columns, name):
        x = made(rows, columns, dtype=DTYPES[name]).requires_grad_()
        targets = torch.randint(columns, (rows,), device=DEVICE)
        loss = lambda: F.cross_entropy(x.float(), targets)
        compiled = torch.compile(loss)

        def both(forward):
            value = forward()
            return value.detach(), torch.autograd.grad(value, x)[0]

        def alone(forward):
            with torch.no_grad():
                return forward()

        suffix = f"_{rows}x{columns}_{name}"
        line("cross_entropy" + suffix, lambda: both(loss), lambda: both(compiled))
        line("cross_entropy_loss" + suffix, lambda: alone(loss), lambda: alone(compiled))

    add(large(65536), 50304, "bf16")
    add(large(16384), 50257, "bf16")
    add(large(16384), 50304, "f32")


def heads():
    rows, width = large(16384), 768
    for words in (50257, 50304):
        x, w = made(rows, width, dtype=torch.bfloat16), made(words, width, dtype=torch.bfloat16)
        x.requires_grad_()
        w.requires_grad_()
        targets = torch.randint(words, (rows,), device=DEVICE)
        loss = lambda: F.cross_entropy(F.linear(x, w).float(), targets)
        compiled = torch.compile(loss)

        def both(forward):
            value = forward()
            return (value.detach(), *torch.autograd.grad(value, (x, w)))

        line(f"head_{rows}x{words}_bf16", lambda: both(loss), lambda: both(compiled))


def orders():
    for name, dtype in DTYPES.items():
        tokens, words = large(65536), 50257
        g = made(tokens, 768, dtype=dtype)
        for suffix, below in (("", words), ("_few", 100)):
            index = torch.randint(below, (tokens,), device=DEVICE)
            back = lambda: torch.ops.aten.embedding_dense_backward(g, index, words, -1, False)
            line(f"embedding_backward_768{suffix}_{name}", back, torch.compile(back))
        logits = made(64, words, dtype=dtype)
        top = lambda: torch.topk(logits, 50)
        line(f"topk_50_64x50257_{name}", top, torch.compile(top))
        for rows, columns in ((large(65536), 1024), (large(8192), 8192), (64, words)):
            x = made(rows, columns, dtype=dtype)
            line(f"sort_{rows}x{columns}_{name}", lambda: torch.sort(x, stable=True))
        for shape, axis in (((large(32768), 4096), 1), ((1, large(1 << 27)), 1), ((large(32768), 4096), 0)):
            x = made(*shape, dtype=dtype)
            total = lambda: torch.cumsum(x, axis)
            line(f"cumsum_{shape[0]}x{shape[1]}_axis{axis}_{name}", total, torch.compile(total))


def attentions():
    """The faster of flash attention and cuDNN's."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    def add(b, h, t, d, name):
        qkv = made(b, t, 3, h, d, dtype=DTYPES[name]).requires_grad_()
        g = made(b, h, t, d, dtype=DTYPES[name])

        def forward(backend):
            q, k, v = (qkv[:, :, i].transpose(1, 2) for i in range(3))
            with sdpa_kernel(backend):
                return F.scaled_dot_product_attention(q, k, v, is_causal=True)

        def alone(backend):
            with torch.no_grad():
                return forward(backend)

        def both(backend):
            y = forward(backend)
            return torch.autograd.grad(y, qkv, g)[0]

        backends = (SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION)
        if name == "f32":
            backends = (SDPBackend.EFFICIENT_ATTENTION,)
        suffix = f"_{b}x{h}x{t}x{d}_{name}"
        line("attention" + suffix, *(lambda each=each: alone(each) for each in backends))
        line("attention_gradient" + suffix, *(lambda each=each: both(each) for each in backends))

    add(large(4096) // 64, 12, 1024, 64, "bf16")
    add(large(4096) // 64, 12, 1024, 64, "f32")
    add(large(512) // 32, 16, 2048, 128, "bf16")
    for b in (1, 64):
        q = made(b, 12, 1, 64, dtype=torch.bfloat16)
        k, v = (made(b, 12, 1024, 64, dtype=torch.bfloat16) for _ in range(2))
        line(f"attention_decode_{b}x12x1024x64_bf16", lambda: F.scaled_dot_product_attention(q, k, v))


def gpt2_shapes(width):
    shapes = [(50257, width), (1024, width)]
    for _ in range(12):
        shapes += [(width,)] * 4
        for rows, columns in ((width, 3 * width), (width, width), (width, 4 * width), (4 * width, width)):
            shapes += [(rows, columns), (columns,)]
    return shapes + [(width,)] * 2


def optimizers():
    """Fused AdamW; in bf16 without a master, of which bench_gpu writes one."""
    for name, dtype in DTYPES.items():
        suffix = "" if name == "f32" else f"_{name}"
        params = [made(*shape, dtype=dtype).requires_grad_() for shape in gpt2_shapes(large(768 * 64) // 64)]
        for p in params:
            p.grad = made(*p.shape, dtype=dtype)
        adamw = torch.optim.AdamW(params, lr=1e-4, weight_decay=0.1, fused=True, capturable=True)

        def norm():
            return torch.nn.utils.get_total_norm([p.grad for p in params], foreach=True)

        def clipped():
            torch.nn.utils.clip_grad_norm_(params, 1.0, foreach=True)
            adamw.step()

        line("global_norm_gpt2" + suffix, norm)
        line("adamw_gpt2" + suffix, adamw.step)
        line("clipped_adamw_gpt2" + suffix, clipped)


def products():
    def add(name, m, n, k, dtype):
        # A short product alone takes as long as its launch: several in one replay.
        repeats = 20 if 2 * m * n * k < SHORT_FLOPS else 1
        xs, b = [made(m, k, dtype=dtype) for _ in range(repeats)], made(n, k, dtype=dtype)
        line(name, lambda: [F.linear(x, b) for x in xs], repeats=repeats)

    torch.backends.cuda.matmul.allow_tf32 = False
    for name, dtype in DTYPES.items():
        n = 128
        while n <= large(8192):
            add(f"matmul_{n}_{name}", n, n, n, dtype)
            n *= 2
    tokens = large(65536)
    add("linear_qkv_bf16", tokens, 2304, 768, torch.bfloat16)
    add("linear_proj_bf16", tokens, 768, 768, torch.bfloat16)
    add("linear_fc_bf16", tokens, 3072, 768, torch.bfloat16)
    add("linear_fcproj_bf16", tokens, 768, 3072, torch.bfloat16)
    add("linear_head_bf16", tokens // 4, 50304, 768, torch.bfloat16)
    x, w = made(tokens, 768, dtype=torch.bfloat16), made(3072, 768, dtype=torch.bfloat16)
    bias = made(3072, dtype=torch.bfloat16)
    fused = lambda: F.gelu(F.linear(x, w, bias), approximate="tanh")
    line("linear_bias_gelu_bf16", fused, torch.compile(fused))

    def saved():
        total = F.linear(x, w, bias)
        return F.gelu(total, approximate="tanh"), total

    line("linear_bias_gelu_saved_bf16", saved, torch.compile(saved))
    rectified = lambda: F.relu(F.linear(x, w, bias))
    line("linear_bias_relu_bf16", rectified, torch.compile(rectified))
    g = made(tokens, 3072, dtype=torch.bfloat16)
    gradients = lambda: (x.T @ g, g.sum(0))
    line("linear_gradients_bf16", gradients, torch.compile(gradients))

    def sloped():
        y = torch.ops.aten.gelu_backward(F.linear(x, w), g, approximate="tanh")
        return y, y.sum(0)

    line("linear_slope_bf16", sloped, torch.compile(sloped))


if __name__ == "__main__":
    products()
    attentions()
    elementwise()
    rows()
    losses()
    heads()
    orders()
    optimizers()
