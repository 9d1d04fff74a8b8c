"""Matrix products in PyTorch on the CPU, GFLOP/s: the shapes of bench_gemm's GPT step and squares, f32 and bf16.

    taskset -c 0,1 python3 bench/peers/matmul.py [--threads 2]
"""
import argparse
import statistics
import time

import torch

SQUARES = (256, 512, 1024, 2048)
LINEARS = ((384, 1152), (384, 384), (384, 1536), (1536, 384), (384, 65))  # (in, out) over 2048 rows


def rate(a, b, runs=30):
    flops = 2 * a.shape[-2] * a.shape[-1] * b.shape[-1] * (a.shape[0] if a.dim() == 3 else 1)
    inner = max(1, int(2e8 / flops))
    times = []
    for i in range(runs + 3):
        begin = time.perf_counter()
        for _ in range(inner):
            torch.matmul(a, b)
        times.append((time.perf_counter() - begin) / inner)
    return flops / statistics.median(times[3:]) * 1e-9


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=2)
    torch.set_num_threads(parser.parse_args().threads)
    print(f"PyTorch {torch.__version__}, {torch.get_num_threads()} threads, GFLOP/s")
    for dtype in (torch.float32, torch.bfloat16):
        for n in SQUARES:
            print(f"{str(dtype)[6:]:9s} {n} x {n} x {n}  {rate(torch.randn(n, n).to(dtype), torch.randn(n, n).to(dtype)):7.1f}")
    for i, o in LINEARS:
        x, w, g = torch.randn(2048, i), torch.randn(o, i), torch.randn(2048, o)
        print(f"float32   2048 x {i} x {o}: y = x wT {rate(x, w.T):7.1f}  dx = g w {rate(g, w):7.1f}  dw = gT x {rate(g.T, x):7.1f}", flush=True)
    q, k = torch.randn(48, 256, 64), torch.randn(48, 256, 64)
    print(f"float32   48 x (256 x 64 x 256): {rate(q, k.transpose(1, 2)):7.1f}")


if __name__ == "__main__":
    main()
