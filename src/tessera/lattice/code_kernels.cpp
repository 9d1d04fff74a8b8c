#include "tessera/lattice/code_kernels.h"

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/lattice/code_layout.h"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

namespace tessera::lattice {

extern const CodeKernels kCodes_baseline;
#if defined(__x86_64__)
extern const CodeKernels kCodes_avx2, kCodes_avx512, kCodes_amx;
#elif defined(__aarch64__)
extern const CodeKernels kCodes_dotprod;
#endif

namespace {

bool always() { return true; }

#if defined(__x86_64__)

bool has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }

bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512vnni");
}

// The tile registers are large, so the system hands them out only to processes that ask.
bool has_amx() {
#if defined(__linux__)
  constexpr int kRequestPermission = 0x1023, kTileData = 18;
  constexpr unsigned kTile = 1u << 24, kInt8 = 1u << 25;
  unsigned a, b, c, d;
  return has_avx512() && __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & kTile) != 0 &&
         (d & kInt8) != 0 && syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

#elif defined(__aarch64__)

bool has_dotprod() {
#if defined(__linux__)
  constexpr unsigned long kDotProducts = 1ul << 20;  // HWCAP_ASIMDDP
  return (getauxval(AT_HWCAP) & kDotProducts) != 0;
#else
  return true;
#endif
}

#endif

struct Row {
  std::string_view setting;  // the value of TESSERA_ISA that allows it and those before
  const CodeKernels* kernels;
  bool (*runs_here)();
};

constexpr Row kRows[] = {
    {"baseline", &kCodes_baseline, always},
#if defined(__x86_64__)
    {"avx2", &kCodes_avx2, has_avx2},
    {"avx512", &kCodes_avx512, has_avx512},
    {"avx512", &kCodes_amx, has_amx},
#elif defined(__aarch64__)
    {"dotprod", &kCodes_dotprod, has_dotprod},
#endif
};

std::atomic<const CodeKernels*>& current() {
  static std::atomic<const CodeKernels*> value = &choose_code_kernels(std::getenv("TESSERA_ISA"));
  return value;
}

}  // namespace

std::span<const CodeKernels* const> available_code_kernels() {
  static const std::vector<const CodeKernels*> result = [] {
    std::vector<const CodeKernels*> found;
    for (const Row& row : kRows) {
      if (row.runs_here()) found.push_back(row.kernels);
    }
    return found;
  }();
  return result;
}

const CodeKernels& choose_code_kernels(const char* setting) {
  const auto available = available_code_kernels();
  if (setting == nullptr || *setting == '\0') return *available.back();
  const CodeKernels* chosen = nullptr;
  bool reached = false, passed = false;
  for (const Row& row : kRows) {
    passed = reached && row.setting != setting;
    if (passed) break;
    reached = reached || row.setting == setting;
    for (const CodeKernels* kernels : available) {
      if (kernels == row.kernels) chosen = kernels;
    }
  }
  if (!reached) fail("TESSERA_ISA: the lattice has no kernels for '", setting, "'");
  return *chosen;
}

const CodeKernels& code_kernels() { return *current().load(); }

void set_code_kernels(const CodeKernels& kernels) { current().store(&kernels); }

CodeShape code_shape(const CodeSpec& spec) {
  const int64_t bytes = block_bytes(spec), hot = hot_bytes(spec), row = row_bytes(spec);
  return {.dim = spec.dim,
          .padded_dim = spec.padded_dim,
          .half_bytes = bytes == 0 || spec.planes ? 0 : (bytes - 4 * kBlock) / 2,
          .block_bytes = bytes,
          .hot_bytes = hot,
          .hot_half_bytes = hot == 0 ? 0 : (hot - 4 * kBlock) / 2,
          .cold_half_bytes = row == 0 ? 0 : (row - 2) * 16,
          .row_bytes = row,
          .n2_unit = std::ldexp(1.f, spec.n2_exponent),
          .g_unit = std::ldexp(1.f, spec.g_exponent),
          .step_ratio = spec.step_ratio,
          .group_bits = spec.group_bits.data()};
}

}  // namespace tessera::lattice
