// oneDNN's sgemm, opened at run time when it is first worth it. Our own kernels do most of the
// work: in one thread (bench/gemm.cpp, "lent") oneDNN is at most 10 % ahead at square products and
// those of a training step, and half as fast at some transposed ones. It is ahead by 10 to 20 %
// where a few tiles of rows meet a matrix that no cache holds, as it lies, and by more where that
// one's rows collide: those go to it by default.
#include <atomic>
#include <cstdlib>
#include <functional>
#include <string>

#include "tessera/backend/cpu/kernels/product.h"
#include "tessera/backend/cpu/kernels/product_blocks.h"
#include "tessera/base/error.h"
#include "tessera/base/thread_pool.h"
#include "tessera/runtime/shared_library.h"

namespace tessera::cpu {

namespace {

constexpr int64_t kLargeProduct = int64_t(1) << 20;  // multiplications
constexpr int64_t kRows = 128, kColumns = 2048;      // of one call
// dnnl_cpu_isa_avx512_core_bf16. Debian's 2.6 crashes in its AMX code on current processors.
constexpr int kNewestIsa = 0xe7;

using Sgemm = int(char, char, int64_t, int64_t, int64_t, float, const float*, int64_t, const float*,
                  int64_t, float, float*, int64_t);

struct OneDnn {
  Sgemm* sgemm = nullptr;
  void (*set_threads)(int) = nullptr;
  std::string status;
};

enum class Wanted { never, where_faster, for_large };

// TESSERA_ONEDNN, read once.
Wanted wanted() {
  static const Wanted result = [] {
    const char* setting = std::getenv("TESSERA_ONEDNN");
    const std::string value = setting == nullptr ? "" : setting;
    if (value != "" && value != "0" && value != "1") {
      fail("TESSERA_ONEDNN: expected 0 or 1, got '", value, "'");
    }
    return value == "" ? Wanted::where_faster : value == "0" ? Wanted::never : Wanted::for_large;
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

// Found with bench/gemm.cpp, by shapes such as 64x50257x768 and 16x4096x4096.
bool is_faster(const Product& p) {
  constexpr int64_t kFewest = 49, kFewestColliding = 10, kMost = 256;  // rows of a
  const int64_t b_bytes = p.k * p.n * size_of(p.dtype);
  const int64_t fewest = rows_collide(p) ? kFewestColliding : kFewest;
  return p.m >= fewest && p.m <= kMost && p.b_column == 1 && b_bytes > 16 * cache_sizes().second;
}

bool worth_it(const Product& p) {
  if (chosen != ProductLibrary::automatic) return chosen == ProductLibrary::onednn;
  switch (wanted()) {
    case Wanted::never: return false;
    case Wanted::where_faster: return is_faster(p);
    case Wanted::for_large: return p.m >= kRows && p.m * p.n * p.k >= kLargeProduct;
  }
  return false;
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
  // Our threads, each with a part of the rows, or of the columns where there are few rows: the
  // library's own would spin against them after every product. Parts depend on the shape alone, so
  // that any number of threads gives the same bits.
  const bool by_rows = p.m >= 2 * kRows || p.n < kColumns;
  std::atomic<int> status{0};
  auto part = [&](int64_t begin, int64_t end) {
    const int64_t row = by_rows ? begin : 0, column = by_rows ? 0 : begin;
    library.set_threads(1);
    const int result = library.sgemm(
        a.transposed, b.transposed, by_rows ? end - begin : p.m, by_rows ? p.n : end - begin, p.k,
        1.f, reinterpret_cast<const float*>(p.a) + row * p.a_row, a.leading,
        reinterpret_cast<const float*>(p.b) + column * p.b_column, b.leading, 0.f,
        reinterpret_cast<float*>(p.c) + row * p.c_row + column, c.leading);
    if (result != 0) status = result;
  };
  thread_pool().parallel_for(by_rows ? p.m : p.n, by_rows ? kRows : kColumns, std::cref(part));
  return status == 0;
}

const char* onednn_status() {
  return wanted() == Wanted::for_large ? onednn().status.c_str() : "own matrix products";
}

}  // namespace tessera::cpu
