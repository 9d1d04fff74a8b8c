// How parameters start: an Init draws a tensor of a given shape.
#pragma once

#include <functional>

#include "tessera/tensor/random.h"

namespace tessera {

using Init = std::function<Tensor(const Random& random, const Shape& shape)>;

Init constant_init(double value);
Init uniform_init(double low, double high);
Init normal_init(double mean, double deviation);

// For weights (out, in, …), where the extents after `in` belong to both fans.
// Kaiming (He et al. 2015): in ±gain·√(3 / fan_in) with gain = √(2 / (1 + negative_slope²)), which
// keeps the variance through layers followed by (leaky) relu.
Init kaiming_uniform(double negative_slope = 0);
// Xavier (Glorot and Bengio 2010): in ±gain·√(6 / (fan_in + fan_out)).
Init xavier_uniform(double gain = 1);

}  // namespace tessera
