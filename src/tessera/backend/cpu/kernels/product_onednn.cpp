// oneDNN's sgemm, opened at run time where TESSERA_ONEDNN = 1 or a measurement asks for it. By
// default our own kernels do the work: in one thread (bench/gemm.cpp, "lent") oneDNN is at most 10
// % ahead at square products and those of a training step, and half as fast at some transposed
// ones. It is ahead by more, up to 30 %, at some products with few rows of c or a very large k,
// which parts of kRows rows leave to a single thread, and by up to 14 % at some batches.
#include <atomic>
#include <cstdlib>
#include <string>

#include "tessera/backend/cpu/kernels/product.h"
#include "tessera/base/error.h"
#include "tessera/base/thread_pool.h"
#include "tessera/runtime/shared_library.h"

namespace tessera::cpu {

namespace {

constexpr int64_t kLargeProduct = int64_t(1) << 20;  // multiplications
constexpr int64_t kRows = 128;  // of one call; fewer in all are left to our own kernel
// dnnl_cpu_isa_avx512_core_bf16. Debian's 2.6 crashes in its AMX code on current processors.
constexpr int kNewestIsa = 0xe7;

using Sgemm = int(char, char, int64_t, int64_t, int64_t, float, const float*, int64_t, const float*,
                  int64_t, float, float*, int64_t);

struct OneDnn {
  Sgemm* sgemm = nullptr;
  void (*set_threads)(int) = nullptr;
  std::string status;
};

// TESSERA_ONEDNN, read once: 1 asks for it.
bool wanted() {
  static const bool result = [] {
    const char* setting = std::getenv("TESSERA_ONEDNN");
    const std::string value = setting == nullptr ? "" : setting;
    if (value != "" && value != "0" && value != "1") {
      fail("TESSERA_ONEDNN: expected 0 or 1, got '", value, "'");
    }
    return value == "1";
  }();
  return result;
}

OneDnn open_onednn() {
  OneDnn result;
  constexpr const char* kNames[] = {"libdnnl.so.3", "libdnnl.so.2"};
  const auto library = SharedLibrary::open(kNames);
  if (!library) {
    result.status = "own matrix products (libdnnl.so.3 and libdnnl.so.2 were not found)";
    return result;
  }
  if (auto* cap = library->function<int(int)>("dnnl_set_max_cpu_isa")) cap(kNewestIsa);
  result.sgemm = library->function<Sgemm>("dnnl_sgemm");
  result.set_threads = library->function<void(int)>("omp_set_num_threads");
  if (result.sgemm == nullptr || result.set_threads == nullptr) {
    result.status = "own matrix products (" + library->name() + " lacks a function we need)";
    result.sgemm = nullptr;
    return result;
  }
  result.status = "large f32 matrix products by oneDNN (" + library->name() + ")";
  struct VersionInfo {
    int major, minor, patch;
  };
  if (auto* version = library->function<const VersionInfo*()>("dnnl_version")) {
    const VersionInfo* v = version();
    result.status =
        cat("large f32 matrix products by oneDNN ", v->major, ".", v->minor, ".", v->patch);
  }
  return result;
}

const OneDnn& onednn() {
  static const OneDnn instance = open_onednn();
  return instance;
}

// A matrix as sgemm takes it: contiguous along one side.
struct Layout {
  char transposed;
  int64_t leading;
};
bool find_layout(int64_t row, int64_t column, int64_t rows, int64_t columns, Layout& layout) {
  if (column == 1 && row >= columns)
    layout = {'N', row};
  else if (row == 1 && column >= rows)
    layout = {'T', column};
  else
    return false;
  return layout.leading > 0;
}

std::atomic<ProductLibrary> chosen{ProductLibrary::automatic};

bool worth_it(const Product& p) {
  if (chosen != ProductLibrary::automatic) return chosen == ProductLibrary::onednn;
  return wanted() && p.m >= kRows && p.m * p.n * p.k >= kLargeProduct;
}

}  // namespace

void set_product_library(ProductLibrary library) { chosen = library; }

bool multiply_with_onednn(const Product& p) {
  if (p.dtype != DType::f32 || !worth_it(p)) return false;
  const OneDnn& library = onednn();
  if (library.sgemm == nullptr) return false;
  Layout a, b, c;
  const bool fits = find_layout(p.a_row, p.a_column, p.m, p.k, a) &&
                    find_layout(p.b_row, p.b_column, p.k, p.n, b) &&
                    find_layout(p.c_row, p.c_column, p.m, p.n, c) && c.transposed == 'N';
  if (!fits) return false;
  // Our threads, each with a part of the rows: the library's own would spin against them after
  // every product. Parts depend on the shape alone, so that any number of threads gives the same
  // bits.
  std::atomic<int> status{0};
  thread_pool().parallel_for(p.m, kRows, [&](int64_t begin, int64_t end) {
    library.set_threads(1);
    const int result = library.sgemm(a.transposed, b.transposed, end - begin, p.n, p.k, 1.f,
                                     reinterpret_cast<const float*>(p.a) + begin * p.a_row,
                                     a.leading, reinterpret_cast<const float*>(p.b), b.leading, 0.f,
                                     reinterpret_cast<float*>(p.c) + begin * p.c_row, c.leading);
    if (result != 0) status = result;
  });
  return status == 0;
}

const char* onednn_status() { return wanted() ? onednn().status.c_str() : "own matrix products"; }

}  // namespace tessera::cpu
