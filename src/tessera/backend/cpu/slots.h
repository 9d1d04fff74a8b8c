// Where the registers of points live inside a tile's memory.
#pragma once

#include <span>

#include "tessera/backend/cpu/plan.h"

namespace tessera::cpu {

// Gives every register that `steps` define a slot, which is free again after the last step that
// reads it. Returns the bytes per point of all of them.
int assign_slots(const Plan& plan, std::span<Step* const> steps);

// Bytes per point that a step writes into a tile's memory: none by a load whose points lie in its
// operand as a register would hold them, as far as is known without a domain.
int written_bytes(const Plan& plan, const Step& step);

}  // namespace tessera::cpu
