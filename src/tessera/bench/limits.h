// What this machine can do at most, measured: shares are of these.
#pragma once

#include <span>

#include "tessera/base/device.h"
#include "tessera/base/dtype.h"
#include "tessera/bench/results.h"

namespace tessera::bench {

Limits measure_limits(bool quick);

// A device that is no CPU: its own copies, and the products of matrices as large as take it some
// milliseconds.
inline constexpr DType kProductTypes[] = {DType::f32, DType::bf16};
Limits::OfDevice measure_device(Device device, bool quick,
                                std::span<const DType> products = kProductTypes);

Machine describe_machine();  // without compiler and version, which the command knows

}  // namespace tessera::bench
