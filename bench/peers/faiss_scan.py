"""faiss on the vectors of bench_scan: bytes a vector, recall@10, queries/s in batches of 1,000, one query.

    bench_scan 1000000 4 rotation whole FOLDER  (writes FOLDER/base.fbin and query.fbin)
    taskset -c 0,1 python3 bench/peers/faiss_scan.py FOLDER [--threads 2] [KEY ...]

KEY is a factory string, by default IVF1024,RaBitQfs4. Recall is tie-aware, as bench_scan's: a result counts if its
true distance is within a thousandth of the 10th best. CPU time is given because machines are shared.
"""
import argparse
import os
import statistics
import time

# Before the import: Debian's OpenBLAS may take the processor for an old one, and spinning threads disturb.
os.environ.setdefault("OPENBLAS_CORETYPE", "SKYLAKEX")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import faiss
import numpy as np

K = 10


def read_fbin(path):
    n, d = np.fromfile(path, np.uint32, 2)
    return np.fromfile(path, np.float32, offset=8).reshape(n, d)


def measure(index, base, queries, kth):
    index.search(queries, K)
    times, cpu = [], time.process_time()
    for _ in range(3):
        start = time.perf_counter()
        _, found = index.search(queries, K)
        times.append(time.perf_counter() - start)
    cpu = (time.process_time() - cpu) / 3 / len(queries)
    distances = ((queries[:, None, :] - base[found]) ** 2).sum(-1)
    recall = (distances <= kth * 1.001).mean()
    ones = []
    for query in queries[:100]:
        start = time.perf_counter()
        index.search(query[None], K)
        ones.append(time.perf_counter() - start)
    return recall, len(queries) / min(times), cpu * 1e6, statistics.median(ones) * 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("keys", nargs="*", default=["IVF1024,RaBitQfs4"])
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    faiss.omp_set_num_threads(options.threads)
    base, queries = (read_fbin(f"{options.folder}/{name}.fbin") for name in ("base", "query"))
    exact = faiss.IndexFlatL2(base.shape[1])
    exact.add(base)
    kth = exact.search(queries, K)[0][:, K - 1:]
    print(f"faiss {faiss.__version__}: {faiss.get_compile_options()}")
    for key in options.keys:
        start = time.perf_counter()
        index = faiss.index_factory(base.shape[1], key)
        index.train(base[:262144])
        index.add(base)
        built = time.perf_counter() - start
        size = faiss.serialize_index(index).size / len(base)
        print(f"{key}: built in {built:.1f} s, {size:.1f} bytes/vector")
        for nprobe in (8, 16, 32, 64, 128):
            index.nprobe = nprobe
            recall, rate, cpu, one = measure(index, base, queries, kth)
            print(f"  nprobe {nprobe:4d}: recall {recall:.4f}, {rate:8.0f} QPS, {cpu:7.1f} us CPU, one {one:.3f} ms",
                  flush=True)


if __name__ == "__main__":
    main()
