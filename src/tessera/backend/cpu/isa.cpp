#include "tessera/backend/cpu/isa.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <string>

#include "tessera/base/error.h"

namespace tessera::cpu {

extern const LoopTable kLoops_baseline;
extern const GemmTable kGemm_baseline;
extern const AttentionTable kAttention_baseline;
#if defined(__x86_64__)
extern const LoopTable kLoops_avx2, kLoops_avx512;
extern const GemmTable kGemm_avx2, kGemm_avx512;
extern const AttentionTable kAttention_avx2, kAttention_avx512;
#endif

namespace {

struct IsaRow {
  Isa isa;
  std::string_view name;
  const LoopTable* loops;
  const GemmTable* gemms;
  const AttentionTable* attentions;
};

constexpr IsaRow kRows[] = {
    {Isa::baseline, "baseline", &kLoops_baseline, &kGemm_baseline, &kAttention_baseline},
#if defined(__x86_64__)
    {Isa::avx2, "avx2", &kLoops_avx2, &kGemm_avx2, &kAttention_avx2},
    {Isa::avx512, "avx512", &kLoops_avx512, &kGemm_avx512, &kAttention_avx512},
#endif
};

bool runs_here(Isa isa) {
#if defined(__x86_64__)
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (isa == Isa::avx2) return avx2;
  if (isa == Isa::avx512) {
    return avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  }
#endif
  return isa == Isa::baseline;
}

const IsaRow& row(Isa isa) {
  return *std::find_if(std::begin(kRows), std::end(kRows),
                       [&](const IsaRow& r) { return r.isa == isa; });
}

std::string known_names() {
  std::string result;
  for (Isa isa : available_isas()) result += (result.empty() ? "" : ", ") + std::string(name(isa));
  return result;
}

std::atomic<const IsaRow*>& current() {
  static std::atomic<const IsaRow*> value = &row(choose_isa(std::getenv("TESSERA_ISA")));
  return value;
}

}  // namespace

std::string_view name(Isa isa) { return row(isa).name; }

const std::vector<Isa>& available_isas() {
  static const std::vector<Isa> result = [] {
    std::vector<Isa> found;
    for (const IsaRow& r : kRows) {
      if (runs_here(r.isa)) found.push_back(r.isa);
    }
    return found;
  }();
  return result;
}

Isa choose_isa(const char* setting) {
  if (setting == nullptr || *setting == '\0') return available_isas().back();
  for (Isa isa : available_isas()) {
    if (name(isa) == setting) return isa;
  }
  fail("TESSERA_ISA: expected one of ", known_names(), " (what this processor has), got '", setting,
       "'");
}

Isa isa() { return current().load()->isa; }
const LoopTable& loops() { return *current().load()->loops; }
const GemmTable& gemms() { return *current().load()->gemms; }
const AttentionTable& attentions() { return *current().load()->attentions; }
void set_isa(Isa isa) { current().store(&row(isa)); }

}  // namespace tessera::cpu
