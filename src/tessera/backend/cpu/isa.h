// Which instruction set the loops use. Chosen once, from what the processor has and from
// TESSERA_ISA = baseline | avx2 | avx512.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "tessera/backend/cpu/attention.h"
#include "tessera/backend/cpu/gemm.h"
#include "tessera/backend/cpu/loops.h"

namespace tessera::cpu {

enum class Isa { baseline, avx2, avx512 };

std::string_view name(Isa isa);

// Those this build has and this processor runs, the best one last.
const std::vector<Isa>& available_isas();

// What `setting` (the value of TESSERA_ISA, nullptr when unset) selects. Throws when it names none,
// or one the processor lacks.
Isa choose_isa(const char* setting);

Isa isa();
const LoopTable& loops();
const GemmTable& gemms();
const AttentionTable& attentions();

// For tests: the instruction set of kernels compiled from here on. Not thread safe.
void set_isa(Isa isa);

}  // namespace tessera::cpu
