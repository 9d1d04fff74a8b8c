// Matrix products of bf16 for which the processor has instructions. c is cut into tasks like those
// of product_floats.cpp; each sums its part in f32 and rounds it once.
#include <algorithm>
#include <atomic>
#include <functional>
#include <vector>

#include "tessera/backend/cpu/gemm_bf16.h"
#include "tessera/backend/cpu/isa.h"
#include "tessera/backend/cpu/kernels/product.h"
#include "tessera/backend/cpu/kernels/product_blocks.h"
#include "tessera/backend/cpu/scratch.h"
#include "tessera/base/thread_pool.h"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace tessera::cpu {

#if defined(__x86_64__)
extern const Bf16Gemm kGemmBf16_avx512bf16, kGemmBf16_amx;
#endif

namespace {

constexpr int64_t kWorthPacking = 1 << 15;              // multiplications
constexpr int64_t kMostRows = 256, kMostColumns = 512;  // of a task's sums

#if defined(__x86_64__) && defined(__linux__)

bool cpuid_bit(unsigned subleaf, int reg, int bit) {
  unsigned regs[4];
  if (__get_cpuid_count(7, subleaf, &regs[0], &regs[1], &regs[2], &regs[3]) == 0) return false;
  return (regs[reg] >> bit & 1) != 0;
}

bool has_avx512_bf16() { return cpuid_bit(1, 0, 5); }

// The tile registers are large, so the system hands them out only to processes that ask.
bool has_amx_bf16() {
  constexpr int kRequestPermission = 0x1023, kTileData = 18;
  return cpuid_bit(0, 3, 22) && cpuid_bit(0, 3, 24) &&
         syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

std::vector<const Bf16Gemm*> find_gemms() {
  std::vector<const Bf16Gemm*> found;
  const std::vector<Isa>& isas = available_isas();
  if (std::find(isas.begin(), isas.end(), Isa::avx512) == isas.end()) return found;
  if (has_avx512_bf16()) found.push_back(&kGemmBf16_avx512bf16);
  if (has_avx512_bf16() && has_amx_bf16()) found.push_back(&kGemmBf16_amx);
  return found;
}

#else

std::vector<const Bf16Gemm*> find_gemms() { return {}; }

#endif

std::atomic<const Bf16Gemm*>& current() {
  static std::atomic<const Bf16Gemm*> value =
      available_bf16_gemms().empty() ? nullptr : available_bf16_gemms().back();
  return value;
}

class Bf16Product {
 public:
  Bf16Product(const Product& p, const Bf16Gemm& gemm)
      : p_(p), gemm_(gemm), store_(loops().store[int(Storage::bf16)]) {
    const int64_t panel = gemm.columns * int64_t(sizeof(uint16_t));
    const int64_t deepest = round_up(std::max<int64_t>(128, cache_sizes().first / 2 / panel), 32);
    depth_ = round_up(divide_up(p.k, divide_up(p.k, deepest)), 32);
  }

  void run() const {
    const ProductShape shape = {
        p_.m, p_.n, p_.k, gemm_.rows, gemm_.columns, sizeof(uint16_t), gemm_.columns};
    Grid grid = choose_grid(shape, 1 + thread_pool().workers());
    grid.rows.count = std::max(grid.rows.count, divide_up(p_.m, round_up(kMostRows, gemm_.rows)));
    grid.columns.count = std::max(grid.columns.count, divide_up(p_.n, kMostColumns));
    auto task = [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t down = i % grid.rows.count, across = i / grid.rows.count;
        run_task(grid.rows.begin(down), grid.rows.size(down), grid.columns.begin(across),
                 grid.columns.size(across));
      }
    };
    if (grid.tasks() == 1) return task(0, 1);
    thread_pool().parallel_for(grid.tasks(), 1, std::cref(task));
  }

 private:
  const uint16_t* a_at(int64_t i, int64_t k) const {
    return reinterpret_cast<const uint16_t*>(p_.a) + i * p_.a_row + k * p_.a_column;
  }
  const uint16_t* b_at(int64_t k, int64_t j) const {
    return reinterpret_cast<const uint16_t*>(p_.b) + k * p_.b_row + j * p_.b_column;
  }

  // c, rows [row, row + rows), columns [column, column + columns).
  void run_task(int64_t row, int64_t rows, int64_t column, int64_t columns) const {
    const int64_t c_step = round_up(columns, gemm_.columns);
    const int64_t a_bytes = padded(round_up(rows, gemm_.rows) * depth_ * 2);
    const int64_t b_bytes = padded(c_step * depth_ * 2);
    const int64_t c_bytes = round_up(rows, gemm_.rows) * c_step * int64_t(sizeof(float));
    char* at = scratch(Scratch::tile, a_bytes + b_bytes + c_bytes);
    auto* a = reinterpret_cast<uint16_t*>(at);
    auto* b = reinterpret_cast<uint16_t*>(at + a_bytes);
    auto* c = reinterpret_cast<float*>(at + a_bytes + b_bytes);
    gemm_.begin();
    for (int64_t k0 = 0; k0 < p_.k; k0 += depth_) {
      const int64_t depth = std::min(depth_, p_.k - k0), packed = round_up(depth, gemm_.unit);
      for (int64_t i = 0; i < rows; i += gemm_.rows) {
        gemm_.pack_a(a + i * packed, {a_at(row + i, k0), std::min<int64_t>(gemm_.rows, rows - i),
                                      depth, p_.a_row, p_.a_column});
      }
      for (int64_t j = 0; j < columns; j += gemm_.columns) {
        gemm_.pack_b(b + j * packed,
                     {b_at(k0, column + j), std::min<int64_t>(gemm_.columns, columns - j), depth,
                      p_.b_column, p_.b_row});
        for (int64_t i = 0; i < rows; i += gemm_.rows) {
          gemm_.multiply(packed, a + i * packed, b + j * packed, c + i * c_step + j, c_step,
                         k0 > 0);
        }
      }
    }
    gemm_.end();
    store_(p_.c + (row * p_.c_row + column * p_.c_column) * 2, c,
           {rows, columns, p_.c_row, p_.c_column, c_step, 1});
  }

  const Product& p_;
  const Bf16Gemm& gemm_;
  MoveLoop store_;
  int64_t depth_;  // of a block along k: its panel of b fills half the first-level cache
};

}  // namespace

std::span<const Bf16Gemm* const> available_bf16_gemms() {
  static const std::vector<const Bf16Gemm*> gemms = find_gemms();
  return gemms;
}

const Bf16Gemm* bf16_gemm() { return isa() == Isa::avx512 ? current().load() : nullptr; }
void set_bf16_gemm(const Bf16Gemm* gemm) { current() = gemm; }

bool multiply_bf16(const Product& given) {
  const Bf16Gemm* gemm = bf16_gemm();
  if (gemm == nullptr || given.m * given.n * given.k < kWorthPacking) return false;
  const bool narrow = 2 * given.n < gemm->columns && given.n < given.m;
  const Product p = narrow ? transposed(given) : given;
  if (2 * p.n < gemm->columns) return false;
  Bf16Product(p, *gemm).run();
  return true;
}

}  // namespace tessera::cpu
