#include "tessera/lattice/nearest_kernels.h"

#include <cstdlib>
#include <string_view>
#include <vector>

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace tessera::lattice {

extern const NearestKernel kNearest_baseline;
extern const DistanceKernel kDistance_baseline;
#if defined(__x86_64__)
extern const NearestKernel kNearest_avx2, kNearest_avx512, kNearest_avx512bf16, kNearest_amx;
extern const DistanceKernel kDistance_avx2, kDistance_avx512;
#endif

namespace {

struct Choice {
  std::vector<const NearestKernel*> nearest = {&kNearest_baseline};
  const DistanceKernel* distance = &kDistance_baseline;
};

#if defined(__x86_64__)

bool has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }

bool has_avx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

#if defined(__linux__)

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

#else

bool has_avx512_bf16() { return false; }
bool has_amx_bf16() { return false; }

#endif

Choice choose() {
  const char* setting = std::getenv("TESSERA_ISA");
  const std::string_view cap = setting == nullptr ? "" : setting;
  Choice choice;
  if (cap == "baseline" || !has_avx2()) return choice;
  choice.nearest.push_back(&kNearest_avx2);
  choice.distance = &kDistance_avx2;
  if (cap == "avx2" || !has_avx512()) return choice;
  choice.nearest.push_back(&kNearest_avx512);
  choice.distance = &kDistance_avx512;
  if (!has_avx512_bf16()) return choice;
  choice.nearest.push_back(&kNearest_avx512bf16);
  if (has_amx_bf16()) choice.nearest.push_back(&kNearest_amx);
  return choice;
}

#else

Choice choose() { return {}; }

#endif

const Choice& chosen() {
  static const Choice choice = choose();
  return choice;
}

}  // namespace

std::span<const NearestKernel* const> available_nearest_kernels() { return chosen().nearest; }
const DistanceKernel& distance_kernel() { return *chosen().distance; }

}  // namespace tessera::lattice
