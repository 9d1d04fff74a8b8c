#include "tessera/bench/peers.h"

#include <cstdlib>

#include "tessera/base/error.h"
#include "tessera/base/thread_pool.h"
#include "tessera/runtime/shared_library.h"

namespace tessera::bench {

namespace {

int threads() { return 1 + thread_pool().workers(); }

// Debian's 2.6 crashes in its AMX code on current processors: dnnl_cpu_isa_avx512_core_bf16.
constexpr int kNewestIsa = 0xe7;

struct OneDnn {
  int (*sgemm)(char, char, int64_t, int64_t, int64_t, float, const float*, int64_t, const float*,
               int64_t, float, float*, int64_t) = nullptr;
  void (*set_threads)(int) = nullptr;
};
OneDnn g_onednn;

struct OpenBlas {
  void (*sgemm)(int, int, int, int, int, int, float, const float*, int, const float*, int, float,
                float*, int) = nullptr;
};
OpenBlas g_openblas;

// OpenMP's number of threads belongs to the calling thread. Set each time: the backend's own use of
// the library sets it to 1.
void run_onednn(const Gemm& g, int on_threads) {
  if (g_onednn.set_threads != nullptr) g_onednn.set_threads(on_threads);
  g_onednn.sgemm('N', g.transposed ? 'T' : 'N', g.m, g.n, g.k, 1.f, g.a, g.k, g.b,
                 g.transposed ? g.k : g.n, 0.f, g.c, g.n);
}

void multiply_onednn(const Gemm& g) { run_onednn(g, threads()); }
void multiply_onednn_alone(const Gemm& g) { run_onednn(g, 1); }

void multiply_openblas(const Gemm& g) {
  constexpr int kRowMajor = 101, kNoTranspose = 111, kTranspose = 112;
  g_openblas.sgemm(kRowMajor, kNoTranspose, g.transposed ? kTranspose : kNoTranspose, int(g.m),
                   int(g.n), int(g.k), 1.f, g.a, int(g.k), g.b, int(g.transposed ? g.k : g.n), 0.f,
                   g.c, int(g.n));
}

void open_onednn(std::vector<Peer>& found) {
  constexpr const char* kNames[] = {"libdnnl.so.3", "libdnnl.so.2"};
  const auto library = SharedLibrary::open(kNames);
  if (!library) return;
  if (auto* cap = library->function<int(int)>("dnnl_set_max_cpu_isa")) cap(kNewestIsa);
  g_onednn.sgemm =
      library->function<int(char, char, int64_t, int64_t, int64_t, float, const float*, int64_t,
                            const float*, int64_t, float, float*, int64_t)>("dnnl_sgemm");
  g_onednn.set_threads = library->function<void(int)>("omp_set_num_threads");
  if (g_onednn.sgemm == nullptr) return;
  struct VersionInfo {
    int major, minor, patch;
  };
  std::string name = "oneDNN";
  if (auto* version = library->function<const VersionInfo*()>("dnnl_version")) {
    const VersionInfo* v = version();
    name += cat(" ", v->major, ".", v->minor, ".", v->patch);
  }
  found.push_back(
      {name, multiply_onednn, g_onednn.set_threads != nullptr ? multiply_onednn_alone : nullptr});
}

void open_openblas(std::vector<Peer>& found) {
#if defined(__x86_64__)
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  const char* core = openblas_core(avx512, __builtin_cpu_supports("avx2"));
  // The library reads it when it is opened.
  if (core != nullptr) ::setenv("OPENBLAS_CORETYPE", core, 0);
#endif
  constexpr const char* kNames[] = {"libopenblas.so.0"};
  const auto library = SharedLibrary::open(kNames);
  if (!library) return;
  g_openblas.sgemm = library->function<void(int, int, int, int, int, int, float, const float*, int,
                                            const float*, int, float, float*, int)>("cblas_sgemm");
  if (g_openblas.sgemm == nullptr) return;
  if (auto* set_threads = library->function<void(int)>("openblas_set_num_threads")) {
    set_threads(threads());
  }
  std::string name = "OpenBLAS";
  if (auto* core_name = library->function<const char*()>("openblas_get_corename")) {
    name += cat(" (", core_name(), ")");
  }
  found.push_back({name, multiply_openblas, nullptr});
}

}  // namespace

const std::vector<Peer>& peers() {
  static const std::vector<Peer> found = [] {
    std::vector<Peer> list;
    open_onednn(list);
    open_openblas(list);
    return list;
  }();
  return found;
}

const char* openblas_core(bool has_avx512, bool has_avx2) {
  if (has_avx512) return "SKYLAKEX";
  return has_avx2 ? "HASWELL" : nullptr;
}

}  // namespace tessera::bench
