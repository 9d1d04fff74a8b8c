#include "tessera/backend/cpu/peak.h"

#include "tessera/backend/cpu/isa.h"

namespace tessera::cpu {

extern const PeakLoops kPeak_baseline;
#if defined(__x86_64__)
extern const PeakLoops kPeak_avx2, kPeak_avx512;
#endif

const PeakLoops& peaks([[maybe_unused]] Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::avx2) return kPeak_avx2;
  if (isa == Isa::avx512) return kPeak_avx512;
#endif
  return kPeak_baseline;
}

}  // namespace tessera::cpu
