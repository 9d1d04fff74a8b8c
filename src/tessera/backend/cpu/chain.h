// Joining scalar steps into chains (loops.h): what one step computes for the next one alone then
// never reaches memory.
#pragma once

#include <vector>

#include "tessera/backend/cpu/plan.h"

namespace tessera::cpu {

inline constexpr int kMostLinks = 24;  // of a chain; longer ones are cut

// `uses`: by register, how many operands of the program's steps it is. A value that others read
// beside the next link is kept in a slot of its own; so is the last one of the chain.
std::vector<Step> join_chains(const Plan& plan, const LoopTable& loops,
                              const std::vector<Step>& steps, const std::vector<int>& uses);

// Products that are summed up and nothing else need not be stored. To be called before join_chains.
void join_products(const Plan& plan, const LoopTable& loops, std::vector<Step>& steps,
                   const std::vector<int>& uses);

// Kernels of rows walk a tile several times. Chooses the pass that computes while the memory of the
// others is fetched: the first chain that calls a function, or else the first.
void choose_ahead(Plan& plan);

}  // namespace tessera::cpu
