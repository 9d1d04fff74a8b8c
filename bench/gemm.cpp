// Matrix products beside those of oneDNN, OpenBLAS and MKL, where the loader finds them.
//
//   bench_gemm [--bf16] [--rounds N] [words…]
//
// Every line is one product, first checked against sums in double precision. The contestants then
// take turns, so that a disturbance meets all of them; `words` keeps the lines that contain one of
// them, and a word such as 48x50257x768 that none contains is measured, too. TESSERA_THREADS sets
// everybody's number of threads. BENCH_MKL names a library that has MKL in it, such as PyTorch's
// torch/lib/libtorch_cpu.so.
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "tessera/backend/cpu/cpu_backend.h"
#include "tessera/backend/cpu/kernels/product.h"
#include "tessera/base/error.h"
#include "tessera/base/half.h"
#include "tessera/base/thread_pool.h"
#include "tessera/runtime/shared_library.h"

namespace tessera {
namespace {

constexpr double kSampleSeconds = 0.004;
// Until a peer's threads have stopped spinning: OpenBLAS goes on for some 30 ms.
constexpr useconds_t kSettleMicroseconds = 50000;
// Threads that slept may wake on one core, and take some milliseconds to part.
constexpr double kWarmSeconds = 20e-3;

struct Case {
  int64_t batch, m, n, k;
  bool a_transposed, b_transposed;
  DType dtype = DType::f32;

  std::string label(const std::string& group) const {
    const std::string many = batch > 1 ? cat(batch, " * ") : "";
    return cat(group, " ", many, m, "x", n, "x", k, " ", a_transposed ? "T" : "N",
               b_transposed ? "T" : "N");
  }
  double giga_flops() const { return 2e-9 * double(batch) * double(m) * double(n) * double(k); }
};

struct Group {
  const char* name;
  std::vector<std::vector<int64_t>> shapes;  // m, n, k[, batch]
  const char* layouts;                       // of a and b, "N" or "T" each
};

// The products of a GPT's training step: forward NN, gradient of the input NT, of the weight TN.
// clang-format off
const Group kGroups[] = {
    {"square",
     {{32, 32, 32}, {64, 64, 64}, {96, 96, 96}, {128, 128, 128}, {192, 192, 192}, {256, 256, 256},
      {384, 384, 384}, {512, 512, 512}, {1024, 1024, 1024}, {2048, 2048, 2048}},
     "NN NT TN TT"},
    {"forward",
     {{2048, 1152, 384}, {2048, 384, 384}, {2048, 1536, 384}, {2048, 384, 1536}, {2048, 65, 384}},
     "NN"},
    {"d_input",
     {{2048, 384, 1152}, {2048, 384, 384}, {2048, 384, 1536}, {2048, 1536, 384}, {2048, 384, 65}},
     "NT"},
    {"d_weight",
     {{384, 1152, 2048}, {384, 384, 2048}, {384, 1536, 2048}, {1536, 384, 2048}, {384, 65, 2048}},
     "TN"},
    {"few_rows",
     {{1, 768, 768}, {1, 4096, 4096}, {1, 50257, 768}, {2, 4096, 4096}, {4, 4096, 4096},
      {8, 768, 3072}, {8, 50257, 768}, {16, 4096, 1024}, {16, 768, 3072}, {16, 4096, 4096},
      {16, 50257, 768}, {32, 768, 768}, {32, 4096, 4096}, {64, 3072, 768}, {64, 50257, 768}},
     "NN NT"},
    {"few_columns",
     {{768, 1, 768}, {4096, 1, 4096}, {4096, 2, 1024}, {4096, 8, 1024}, {4096, 16, 1024},
      {3072, 32, 768}, {3072, 64, 768}},
     "NN TN"},
    {"deep", {{64, 64, 65536}, {16, 16, 65536}, {128, 128, 16384}, {1, 1, 1000000}}, "NN NT TN"},
    {"batched",
     {{256, 256, 64, 48}, {256, 64, 256, 48}, {8, 8, 8, 768}, {16, 16, 16, 768}, {32, 32, 32, 768},
      {64, 64, 64, 96}, {20, 30, 40, 768}, {1, 128, 64, 768}},
     "NN NT TN"},
};
// clang-format on

Backend& cpu_backend() {
  static const std::unique_ptr<Backend> backend = make_cpu_backend();
  return *backend;
}

View matrices(const Case& c, int64_t rows, int64_t columns, bool transposed) {
  return {{c.batch, rows, columns},
          {rows * columns, transposed ? 1 : columns, transposed ? rows : 1},
          0};
}

// The kernel "matmul" with operands of its own.
class Matmul {
 public:
  explicit Matmul(const Case& shape) : case_(shape) {
    KernelCall call;
    call.kernel = "matmul";
    call.operands = {{shape.dtype, matrices(shape, shape.m, shape.k, shape.a_transposed)},
                     {shape.dtype, matrices(shape, shape.k, shape.n, shape.b_transposed)},
                     {shape.dtype, matrices(shape, shape.m, shape.n, false)}};
    executable_ = cpu_backend().compile(call);
    uint32_t seed = 1;
    for (int i = 0; i < 3; ++i) {
      const int64_t count = numel(call.operands[size_t(i)].view.shape);
      memory_[i] = cpu_backend().allocate(count * size_of(shape.dtype));
      refs_[i] = {memory_[i]->handle, 0};
      for (int64_t j = 0; j < count; ++j) {
        seed = seed * 1664525 + 1013904223;
        set(i, j, i == 2 ? 0.f : float(seed >> 8) * 0x1p-23f - 1.f);
      }
    }
  }

  void operator()() const { cpu_backend().launch(*executable_, refs_, 0, Stream{}); }

  const Case& shape() const { return case_; }
  float* data(int operand) const { return static_cast<float*>(refs_[operand].handle); }

  // The greatest |error| of some elements, over the sum of their terms' sizes.
  double error() const {
    const Case& s = case_;
    double worst = 0;
    uint32_t seed = 7;
    auto draw = [&](int64_t n, int round) {
      seed = seed * 1664525 + 1013904223;
      return round == 0 ? n - 1 : int64_t((uint64_t(seed) * uint64_t(n)) >> 32);
    };
    for (int round = 0; round < 200; ++round) {
      const int64_t b = draw(s.batch, round), i = draw(s.m, round), j = draw(s.n, round);
      double sum = 0, size = 1e-30;
      for (int64_t p = 0; p < s.k; ++p) {
        const int64_t ia = s.a_transposed ? p * s.m + i : i * s.k + p;
        const int64_t ib = s.b_transposed ? j * s.k + p : p * s.n + j;
        const double term = get(0, b * s.m * s.k + ia) * get(1, b * s.k * s.n + ib);
        sum += term;
        size += std::abs(term);
      }
      worst = std::max(worst, std::abs(get(2, (b * s.m + i) * s.n + j) - sum) / size);
    }
    return worst;
  }

 private:
  double get(int operand, int64_t i) const {
    if (case_.dtype == DType::f32) return double(data(operand)[i]);
    return double(float(static_cast<const bf16*>(refs_[operand].handle)[i]));
  }
  void set(int operand, int64_t i, float value) {
    if (case_.dtype == DType::f32) {
      data(operand)[i] = value;
    } else {
      static_cast<bf16*>(refs_[operand].handle)[i] = bf16(value);
    }
  }

  Case case_;
  std::unique_ptr<Executable> executable_;
  std::shared_ptr<Memory> memory_[3];
  BufferRef refs_[3];
};

int thread_count() { return 1 + thread_pool().workers(); }

// A peer's sgemm over the operands of `product`. Items of a batch are dealt out to our threads,
// each with one thread of the peer's: the best use we know of a library without batches.
struct Peer {
  const char* name = nullptr;
  std::function<void(const Case&, const float* a, const float* b, float* c)> multiply;
  std::function<void(int)> set_threads;

  void operator()(const Matmul& product) const {
    const Case& s = product.shape();
    auto item = [&](int64_t i) {
      multiply(s, product.data(0) + i * s.m * s.k, product.data(1) + i * s.k * s.n,
               product.data(2) + i * s.m * s.n);
    };
    // Each time: the backend's use of oneDNN sets the calling thread's number too.
    set_threads(s.batch == 1 ? thread_count() : 1);
    if (s.batch == 1) return item(0);
    thread_pool().parallel_for(s.batch, std::max<int64_t>(1, s.batch / 64),
                               [&](int64_t begin, int64_t end) {
                                 set_threads(1);
                                 for (int64_t i = begin; i < end; ++i) item(i);
                               });
  }
};

void add_onednn(std::vector<Peer>& peers) {
  constexpr const char* kNames[] = {"libdnnl.so.3", "libdnnl.so.2"};
  const auto library = SharedLibrary::open(kNames);
  if (!library) return;
  // dnnl_cpu_isa_avx512_core_bf16: see product_onednn.cpp.
  if (auto* cap = library->function<int(int)>("dnnl_set_max_cpu_isa")) cap(0xe7);
  auto* threads = library->function<void(int)>("omp_set_num_threads");
  auto* sgemm =
      library->function<int(char, char, int64_t, int64_t, int64_t, float, const float*, int64_t,
                            const float*, int64_t, float, float*, int64_t)>("dnnl_sgemm");
  if (threads == nullptr || sgemm == nullptr) return;
  threads(thread_count());
  auto multiply = [=](const Case& s, const float* a, const float* b, float* c) {
    sgemm(s.a_transposed ? 'T' : 'N', s.b_transposed ? 'T' : 'N', s.m, s.n, s.k, 1, a,
          s.a_transposed ? s.m : s.k, b, s.b_transposed ? s.k : s.n, 0, c, s.n);
  };
  peers.push_back({"oneDNN", multiply, threads});
}

void add_openblas(std::vector<Peer>& peers) {
#if defined(__x86_64__)
  // Debian's 0.3.21 takes Xeons newer than itself for a Prescott.
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_is("intel")) {
    setenv("OPENBLAS_CORETYPE", "SKYLAKEX", 0);
  }
#endif
  constexpr const char* kNames[] = {"libopenblas.so.0"};
  const auto library = SharedLibrary::open(kNames);
  if (!library) return;
  auto* threads = library->function<void(int)>("openblas_set_num_threads");
  auto* sgemm = library->function<void(int, int, int, int, int, int, float, const float*, int,
                                       const float*, int, float, float*, int)>("cblas_sgemm");
  if (threads == nullptr || sgemm == nullptr) return;
  threads(thread_count());
  auto multiply = [=](const Case& s, const float* a, const float* b, float* c) {
    constexpr int kRowMajor = 101, kPlain = 111, kTransposed = 112;
    sgemm(kRowMajor, s.a_transposed ? kTransposed : kPlain, s.b_transposed ? kTransposed : kPlain,
          int(s.m), int(s.n), int(s.k), 1, a, int(s.a_transposed ? s.m : s.k), b,
          int(s.b_transposed ? s.k : s.n), 0, c, int(s.n));
  };
  peers.push_back({"OpenBLAS", multiply, threads});
}

// By Fortran's interface, the only one that PyTorch's copy shows: columns first, so c' = b' a'.
void add_mkl(std::vector<Peer>& peers) {
  const char* const given = std::getenv("BENCH_MKL");
  const char* const names[] = {given != nullptr ? given : "libmkl_rt.so.2"};
  const auto library = SharedLibrary::open(names);
  if (!library) return;
  auto* threads = library->function<void(int)>("MKL_Set_Num_Threads");
  if (threads == nullptr) threads = library->function<void(int)>("omp_set_num_threads");
  auto* sgemm = library->function<void(const char*, const char*, const int*, const int*, const int*,
                                       const float*, const float*, const int*, const float*,
                                       const int*, const float*, float*, const int*)>("sgemm_");
  if (threads == nullptr || sgemm == nullptr) return;
  threads(thread_count());
  auto multiply = [=](const Case& s, const float* a, const float* b, float* c) {
    const int m = int(s.m), n = int(s.n), k = int(s.k);
    const float one = 1, zero = 0;
    sgemm(s.b_transposed ? "T" : "N", s.a_transposed ? "T" : "N", &n, &m, &k, &one, b,
          s.b_transposed ? &k : &n, a, s.a_transposed ? &m : &k, &zero, c, &n);
  };
  peers.push_back({"MKL", multiply, threads});
}

struct Contestant {
  std::string name;
  std::function<void()> work;
  std::vector<double> seconds;  // per call, one entry a round

  double best() const { return *std::min_element(seconds.begin(), seconds.end()); }
  double median() const {
    std::vector<double> sorted = seconds;
    std::nth_element(sorted.begin(), sorted.begin() + int64_t(sorted.size() / 2), sorted.end());
    return sorted[sorted.size() / 2];
  }
};

// Of one thread the time it ran, which nobody else on the machine lengthens; else of the clock.
double now() {
  timespec time;
  clock_gettime(thread_count() == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
  return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
}

double time_calls(const std::function<void()>& work, int64_t calls) {
  const double start = now();
  for (int64_t i = 0; i < calls; ++i) work();
  return now() - start;
}

void take_turns(std::vector<Contestant>& contestants, int rounds) {
  std::vector<int64_t> calls;
  for (Contestant& c : contestants) {
    int64_t n = 1;
    while (time_calls(c.work, n) < kSampleSeconds) n *= 2;
    calls.push_back(n);
  }
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < contestants.size(); ++i) {
      usleep(kSettleMicroseconds);
      for (const double start = now(); now() - start < kWarmSeconds;) contestants[i].work();
      contestants[i].seconds.push_back(time_calls(contestants[i].work, calls[i]) /
                                       double(calls[i]));
    }
  }
}

struct Options {
  bool bf16 = false;
  int rounds = 9;
  std::vector<std::string> words;

  bool wants(const std::string& label) const {
    return words.empty() || std::any_of(words.begin(), words.end(), [&](const std::string& word) {
             return label.find(word) != std::string::npos;
           });
  }
};

// Ours, oneDNN by our threads ("lent", as TESSERA_ONEDNN = 1 uses it), what is used by default,
// then the peers by their threads; the last columns are the default's share of the best peer, by
// best and median times.
void measure_f32(const Case& shape, const std::string& label, const std::vector<Peer>& peers,
                 int rounds) {
  const Matmul product(shape);
  auto with = [&](cpu::ProductLibrary library) {
    return [&product, library] {
      cpu::set_product_library(library);
      product();
    };
  };
  std::vector<Contestant> contestants = {{"own", with(cpu::ProductLibrary::own), {}},
                                         {"lent", with(cpu::ProductLibrary::onednn), {}},
                                         {"default", with(cpu::ProductLibrary::automatic), {}}};
  constexpr size_t kDefault = 2;
  for (const Peer& peer : peers) {
    contestants.push_back({peer.name, [&] { peer(product); }, {}});
  }
  contestants[0].work();
  const double error = product.error();
  take_turns(contestants, rounds);
  std::printf("%-34s", label.c_str());
  double best = 1e30, median = 1e30;
  for (size_t i = 0; i < contestants.size(); ++i) {
    const Contestant& c = contestants[i];
    std::printf(" %8.1f %6.1f", shape.giga_flops() / c.best(), shape.giga_flops() / c.median());
    if (i <= kDefault) continue;
    best = std::min(best, c.best());
    median = std::min(median, c.median());
  }
  if (!peers.empty()) {
    std::printf("   %5.2f %5.2f", best / contestants[kDefault].best(),
                median / contestants[kDefault].median());
  }
  std::printf("%s\n", error < 1e-6 ? "" : cat("  WRONG: error ", error).c_str());
  std::fflush(stdout);
}

// bf16 beside our own f32 products of the same shape.
void measure_bf16(Case shape, const std::string& label, int rounds) {
  const Matmul plain(shape);
  shape.dtype = DType::bf16;
  const Matmul product(shape);
  std::vector<Contestant> contestants = {{"bf16", [&] { product(); }, {}},
                                         {"f32", [&] { plain(); }, {}}};
  cpu::set_product_library(cpu::ProductLibrary::own);
  product();
  const double error = product.error();
  take_turns(contestants, rounds);
  std::printf("%-34s", label.c_str());
  for (const Contestant& c : contestants) {
    std::printf(" %8.1f %6.1f", shape.giga_flops() / c.best(), shape.giga_flops() / c.median());
  }
  std::printf("   %5.2f", contestants[1].best() / contestants[0].best());
  std::printf("%s\n", error < 4e-3 ? "" : cat("  WRONG: error ", error).c_str());
  std::fflush(stdout);
}

// Words that are whole shapes and belong to no group.
Group given_shapes(const std::vector<std::string>& words) {
  Group given = {"given", {}, "NN NT TN"};
  for (const std::string& word : words) {
    long long m = 0, n = 0, k = 0;
    int end = 0;
    const bool whole = std::sscanf(word.c_str(), "%lldx%lldx%lld%n", &m, &n, &k, &end) == 3 &&
                       size_t(end) == word.size() && m > 0 && n > 0 && k > 0;
    const auto has = [&](const Group& group) {
      return std::ranges::find(group.shapes, std::vector<int64_t>{m, n, k}) != group.shapes.end();
    };
    if (whole && std::ranges::none_of(kGroups, has)) given.shapes.push_back({m, n, k});
  }
  return given;
}

void run(const Options& options) {
  std::vector<Peer> peers;
  if (!options.bf16) {
    add_onednn(peers);
    add_openblas(peers);
    add_mkl(peers);
  }
  std::printf("%s\nGFLOP/s, best and median of %d rounds\n%-34s",
              cpu_backend().target().description.c_str(), options.rounds, "");
  const std::vector<const char*> columns = options.bf16
                                               ? std::vector<const char*>{"bf16", "f32"}
                                               : std::vector<const char*>{"own", "lent", "default"};
  for (const char* name : columns) std::printf(" %15s", name);
  for (const Peer& peer : peers) std::printf(" %15s", peer.name);
  std::printf("   %s\n", options.bf16 ? "bf16 / f32" : "default / best peer");
  std::vector<Group> groups(std::begin(kGroups), std::end(kGroups));
  groups.push_back(given_shapes(options.words));
  for (const Group& group : groups) {
    for (const std::vector<int64_t>& s : group.shapes) {
      for (const char* at = group.layouts; *at != '\0'; at += at[2] == '\0' ? 2 : 3) {
        const Case shape = {s.size() > 3 ? s[3] : 1, s[0], s[1], s[2], at[0] == 'T', at[1] == 'T'};
        const std::string label = shape.label(group.name);
        if (!options.wants(label)) continue;
        options.bf16 ? measure_bf16(shape, label, options.rounds)
                     : measure_f32(shape, label, peers, options.rounds);
      }
    }
  }
}

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) {
  tessera::Options options;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--bf16") == 0) {
      options.bf16 = true;
    } else if (std::strcmp(argv[i], "--rounds") == 0 && i + 1 < argc) {
      options.rounds = std::max(1, std::atoi(argv[++i]));
    } else {
      options.words.push_back(argv[i]);
    }
  }
  tessera::run(options);
}
