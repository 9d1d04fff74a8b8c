// Chains that follow one another run together: each block of points passes through all of them.
// Then a chain's memory is walked beside the others', which processors fetch ahead better than a
// stretch of one operand after the other, and values that only these chains read need room for one
// block.
#pragma once

#include <vector>

#include "tessera/backend/cpu/plan.h"

namespace tessera::cpu {

inline constexpr int kMostTogether = 8;  // chains

// Row values of chains that run_chains may have to spread over a tile: it has room for three.
inline constexpr int kMostRowOperands = 3;

// The steps of a phase, reordered where chains can meet, with `together`, what stays within a block
// and where results go filled in. `uses` as in join_chains.
std::vector<Step> run_together(const Plan& plan, const std::vector<Step>& steps,
                               const std::vector<int>& uses);

}  // namespace tessera::cpu
