// oneDNN's sgemm, opened at run time for large f32 products; TESSERA_ONEDNN = 0 leaves it alone.
#include <cstdlib>
#include <string>

#include "tessera/backend/cpu/kernels/product.h"
#include "tessera/base/error.h"
#include "tessera/base/thread_pool.h"
#include "tessera/runtime/shared_library.h"

namespace tessera::cpu {

namespace {

constexpr int64_t kLargeProduct = int64_t(1) << 20;  // multiplications
// dnnl_cpu_isa_avx512_core_bf16. Debian's 2.6 crashes in its AMX code on current processors.
constexpr int kNewestIsa = 0xe7;

using Sgemm = int(char, char, int64_t, int64_t, int64_t, float, const float*, int64_t, const float*,
                  int64_t, float, float*, int64_t);

struct OneDnn {
  Sgemm* sgemm = nullptr;
  void (*set_threads)(int) = nullptr;
  std::string status;
};

bool wanted() {
  const char* setting = std::getenv("TESSERA_ONEDNN");
  if (setting == nullptr || *setting == '\0') return true;
  const std::string value = setting;
  if (value == "0") return false;
  if (value == "1") return true;
  fail("TESSERA_ONEDNN: expected 0 or 1, got '", value, "'");
}

OneDnn open_onednn() {
  OneDnn result;
  if (!wanted()) {
    result.status = "own matrix products";
    return result;
  }
  constexpr const char* kNames[] = {"libdnnl.so.3", "libdnnl.so.2"};
  const auto library = SharedLibrary::open(kNames);
  if (!library) {
    result.status = "own matrix products (libdnnl.so.3 and libdnnl.so.2 were not found)";
    return result;
  }
  if (auto* cap = library->function<int(int)>("dnnl_set_max_cpu_isa")) cap(kNewestIsa);
  result.sgemm = library->function<Sgemm>("dnnl_sgemm");
  result.set_threads = library->function<void(int)>("omp_set_num_threads");
  result.status = "own matrix products (" + library->name() + " has no dnnl_sgemm)";
  if (result.sgemm == nullptr) return result;
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

}  // namespace

bool multiply_with_onednn(const Product& p) {
  if (p.dtype != DType::f32 || p.k == 0 || p.m * p.n * p.k < kLargeProduct) return false;
  const OneDnn& library = onednn();
  if (library.sgemm == nullptr) return false;
  Layout a, b, c;
  const bool fits = find_layout(p.a_row, p.a_column, p.m, p.k, a) &&
                    find_layout(p.b_row, p.b_column, p.k, p.n, b) &&
                    find_layout(p.c_row, p.c_column, p.m, p.n, c) && c.transposed == 'N';
  if (!fits) return false;
  if (library.set_threads != nullptr) library.set_threads(1 + thread_pool().workers());
  const int status = library.sgemm(a.transposed, b.transposed, p.m, p.n, p.k, 1.f,
                                   reinterpret_cast<const float*>(p.a), a.leading,
                                   reinterpret_cast<const float*>(p.b), b.leading, 0.f,
                                   reinterpret_cast<float*>(p.c), c.leading);
  return status == 0;
}

const char* onednn_status() { return onednn().status.c_str(); }

}  // namespace tessera::cpu
