// The formulae of annealing.
#pragma once

#include <cstdint>

#include "tessera/lattice/anchors.h"

namespace tessera::lattice {

// T at iteration t (from 0).
double temperature_at(const AnchorOptions& options, int64_t t);

// How far an anchor goes towards its cell's mean: learning rate · T / (1 + T).
double gain_at(const AnchorOptions& options, double temperature);

}  // namespace tessera::lattice
