// A library that answers like libcublasLt.so and multiplies on the host, over the memory of
// driver.cpp. It checks that alignments which were promised hold.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

extern "C" int stand_in_submit(void* stream, const std::function<void()>& work);  // driver.cpp
extern "C" void stand_in_pass(float milliseconds);
extern "C" size_t stand_in_copies();

namespace {

constexpr int kInvalid = 7;
bool g_refuses = false, g_refuses_epilogues = false, g_has_slow_epilogues = false;
bool g_has_cache = false;
uint64_t g_last_algorithm = 0;
size_t g_version = 130000;

struct Operation {
  int compute, scale;
  int32_t transposed[2] = {0, 0};
  int32_t epilogue = 1;
  void* row = nullptr;
  void* beside = nullptr;
  int64_t beside_step = 0;
};
struct Layout {
  int type;
  uint64_t rows, columns;
  int64_t step;
  int32_t batch = 1;
  int64_t stride = 0;
};
struct Preference {
  uint32_t alignment[4] = {256, 256, 256, 256};
};
struct Algorithm {
  uint64_t alignment[4];
  uint64_t number, rest[3];
};
struct Candidate {
  Algorithm algorithm;
  size_t workspace_bytes;
  int status;
  float waves;
  int reserved[4];
};

double load(const void* at, int type, int64_t i) {
  uint32_t bits = 0;
  float value = 0;
  switch (type) {
    case 0: return static_cast<const float*>(at)[i];
    case 1: return static_cast<const double*>(at)[i];
    case 14:
      bits = uint32_t(static_cast<const uint16_t*>(at)[i]) << 16;
      std::memcpy(&value, &bits, 4);
      return value;
    default: {
      _Float16 half;
      std::memcpy(&half, static_cast<const uint16_t*>(at) + i, 2);
      return double(half);
    }
  }
}

void store(void* at, int type, int64_t i, double value) {
  const float narrow = float(value);
  uint32_t bits = 0;
  switch (type) {
    case 0: static_cast<float*>(at)[i] = narrow; return;
    case 1: static_cast<double*>(at)[i] = value; return;
    case 14:
      std::memcpy(&bits, &narrow, 4);
      bits += 0x7fffu + ((bits >> 16) & 1);
      static_cast<uint16_t*>(at)[i] = uint16_t(bits >> 16);
      return;
    default: {
      const _Float16 half = _Float16(narrow);
      std::memcpy(static_cast<uint16_t*>(at) + i, &half, 2);
    }
  }
}

struct Factor {
  const void* at;
  const Layout& layout;
  bool transposed;

  double element(int64_t batch, int64_t row, int64_t column) const {
    if (transposed) std::swap(row, column);
    return load(at, layout.type, batch * layout.stride + row + column * layout.step);
  }
};

// op(a) op(b) of (m, k) and (k, n), by columns. Each element is the plain sum in the order of the
// depth; a few rows at a time, so that a compiler makes vectors of them.
std::vector<double> multiply(const Factor& a, const Factor& b, int64_t batch, int64_t m, int64_t n,
                             int64_t k) {
  constexpr int64_t kRows = 16;
  std::vector<double> product(size_t(m * n)), columns(size_t(k * n)), rows(size_t(k * kRows));
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t p = 0; p < k; ++p) columns[size_t(p + j * k)] = b.element(batch, p, j);
  }
  for (int64_t first = 0; first < m; first += kRows) {
    const int64_t count = std::min(kRows, m - first);
    for (int64_t p = 0; p < k; ++p) {
      for (int64_t i = 0; i < count; ++i) {
        rows[size_t(i + p * kRows)] = a.element(batch, first + i, p);
      }
    }
    for (int64_t j = 0; j < n; ++j) {
      double sums[kRows] = {};
      for (int64_t p = 0; p < k; ++p) {
        const double factor = columns[size_t(p + j * k)];
        for (int64_t i = 0; i < kRows; ++i) sums[i] += rows[size_t(i + p * kRows)] * factor;
      }
      std::copy_n(sums, count, &product[size_t(first + j * m)]);
    }
  }
  return product;
}

// Sums over the depth of a product: of rows of op(a), or of columns of op(b).
void store_sums(void* sums, const void* from, const Layout& layout, bool across, int64_t count,
                int64_t depth) {
  for (int64_t i = 0; i < count; ++i) {
    double sum = 0;
    for (int64_t p = 0; p < depth; ++p) {
      sum += load(from, layout.type, across ? i + p * layout.step : p + i * layout.step);
    }
    store(sums, layout.type, i, sum);
  }
}

double gelu_argument(double x) { return x * (1.5957691216057308 + 0.07135481627260025 * x * x); }
double gelu(double x) { return x / (1 + std::exp(-gelu_argument(x))); }
double gelu_slope(double x) {
  const double share = 1 / (1 + std::exp(-gelu_argument(x)));
  return share * (1 + x * (1 - share) * (1.5957691216057308 + 0.21406444881780074 * x * x));
}

void pass_as_with_cache(uint64_t algorithm) {
  static size_t copies_before = 0;
  const bool is_far = stand_in_copies() != copies_before;
  copies_before = stand_in_copies();
  stand_in_pass(algorithm != 1 ? 2 : is_far ? 5 : 1);
}

bool is_aligned(const void* at, uint64_t alignment) {
  return reinterpret_cast<uint64_t>(at) % alignment == 0;
}

}  // namespace

extern "C" {

// For tests: no algorithm is known and no product made.
void stand_in_refuse_products(bool refuses) { g_refuses = refuses; }
void stand_in_refuse_epilogues(bool refuses) { g_refuses_epilogues = refuses; }
// Products with something else than the product take ten milliseconds more.
void stand_in_slow_epilogues(bool slow) { g_has_slow_epilogues = slow; }
// The second algorithm is the fastest where no copy came between, and the slowest behind one.
void stand_in_have_cache(bool has_cache) { g_has_cache = has_cache; }
// The number of the algorithm that ran last.
uint64_t stand_in_last_algorithm() { return g_last_algorithm; }
// What was kept for another version is not looked at.
void stand_in_set_version(size_t version) { g_version = version; }

size_t cublasLtGetVersion() { return g_version; }
int cublasLtCreate(void** handle) {
  static int instance;
  *handle = &instance;
  return 0;
}
int cublasLtMatmulDescCreate(Operation** made, int compute, int scale) {
  *made = new Operation{compute, scale};
  return 0;
}
int cublasLtMatmulDescSetAttribute(Operation* operation, int what, const void* value, size_t) {
  switch (what) {
    case 3:
    case 4: std::memcpy(&operation->transposed[what - 3], value, 4); return 0;
    case 7: std::memcpy(&operation->epilogue, value, 4); return 0;
    case 8: std::memcpy(&operation->row, value, 8); return 0;
    case 11: std::memcpy(&operation->beside, value, 8); return 0;
    case 12: std::memcpy(&operation->beside_step, value, 8); return 0;
    default: return kInvalid;
  }
}
int cublasLtMatmulDescDestroy(Operation* operation) {
  delete operation;
  return 0;
}
int cublasLtMatrixLayoutCreate(Layout** made, int type, uint64_t rows, uint64_t columns,
                               int64_t step) {
  if (step < int64_t(rows)) return kInvalid;
  *made = new Layout{type, rows, columns, step};
  return 0;
}
int cublasLtMatrixLayoutSetAttribute(Layout* layout, int what, const void* value, size_t bytes) {
  if (what == 5) std::memcpy(&layout->batch, value, bytes);
  if (what == 6) std::memcpy(&layout->stride, value, bytes);
  return 0;
}
int cublasLtMatrixLayoutDestroy(Layout* layout) {
  delete layout;
  return 0;
}
int cublasLtMatmulPreferenceCreate(Preference** made) {
  *made = new Preference;
  return 0;
}
int cublasLtMatmulPreferenceSetAttribute(Preference* preference, int what, const void* value,
                                         size_t) {
  if (what >= 5 && what <= 8) std::memcpy(&preference->alignment[what - 5], value, 4);
  return 0;
}
int cublasLtMatmulPreferenceDestroy(Preference* preference) {
  delete preference;
  return 0;
}
int cublasLtMatmulAlgoGetHeuristic(void*, Operation* operation, Layout*, Layout*, Layout*, Layout*,
                                   Preference* preference, int wanted, Candidate* candidates,
                                   int* found) {
  const bool refuses = g_refuses || (g_refuses_epilogues && operation->epilogue != 1);
  *found = refuses ? 0 : wanted < 3 ? wanted : 3;
  for (int i = 0; i < *found; ++i) {
    candidates[i] = {};
    for (int k = 0; k < 4; ++k) candidates[i].algorithm.alignment[k] = preference->alignment[k];
    candidates[i].algorithm.number = uint64_t(i);
  }
  return 0;
}
int cublasLtMatmul(void*, Operation* operation, const void*, const void* a, Layout* al,
                   const void* b, Layout* bl, const void* beta, const void* c, Layout* cl, void* d,
                   Layout* dl, const Algorithm* algorithm, void* workspace, size_t, void* stream) {
  const bool ta = operation->transposed[0] != 0, tb = operation->transposed[1] != 0;
  const auto m = int64_t(dl->rows), n = int64_t(dl->columns);
  const auto k = int64_t(ta ? al->rows : al->columns);
  const bool fits = int64_t(ta ? al->columns : al->rows) == m &&
                    int64_t(tb ? bl->rows : bl->columns) == n &&
                    int64_t(tb ? bl->columns : bl->rows) == k && workspace != nullptr;
  if (g_refuses || !fits || !is_aligned(a, algorithm->alignment[0]) ||
      !is_aligned(b, algorithm->alignment[1]) || !is_aligned(c, algorithm->alignment[2]) ||
      !is_aligned(d, algorithm->alignment[3])) {
    return kInvalid;
  }
  const double share = load(beta, operation->scale, 0);
  return stand_in_submit(stream, [=, al = *al, bl = *bl, cl = *cl, dl = *dl, op = *operation,
                                  number = algorithm->number] {
    if (g_has_slow_epilogues && op.epilogue != 1) stand_in_pass(10);
    if (g_has_cache) pass_as_with_cache(number);
    g_last_algorithm = number;
    std::vector<double> sums(size_t(m), 0.0);
    for (int64_t batch = 0; batch < dl.batch; ++batch) {
      const std::vector<double> product = multiply({a, al, ta}, {b, bl, tb}, batch, m, n, k);
      for (int64_t j = 0; j < n; ++j) {
        for (int64_t i = 0; i < m; ++i) {
          double sum = product[size_t(i + j * m)];
          if (share != 0) {
            sum += share * load(c, cl.type, batch * cl.stride + i + j * cl.step);
          }
          const int64_t beside = i + j * op.beside_step;
          if ((op.epilogue & 4) != 0) sum += load(op.row, dl.type, i);
          if ((op.epilogue & (32 | 128)) == (32 | 128)) store(op.beside, dl.type, beside, sum);
          if ((op.epilogue & 2) != 0) sum = sum <= 0 ? 0 : sum;
          if ((op.epilogue & 32) != 0) sum = gelu(sum);
          if ((op.epilogue & 64) != 0) sum *= gelu_slope(load(op.beside, dl.type, beside));
          sums[size_t(i)] += sum;
          store(d, dl.type, batch * dl.stride + i + j * dl.step, sum);
        }
      }
    }
    if ((op.epilogue & 256) != 0) store_sums(op.row, a, al, !ta, m, k);
    if ((op.epilogue & 512) != 0) store_sums(op.row, b, bl, tb, n, k);
    for (int64_t i = 0; i < m && (op.epilogue & 16) != 0; ++i) {
      store(op.row, dl.type, i, sums[size_t(i)]);
    }
  });
}

}  // extern "C"
