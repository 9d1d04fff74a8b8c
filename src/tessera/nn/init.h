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
enum class Fan : uint8_t { in, out };
// Kaiming (He et al. 2015): a deviation of gain / √fan with gain = √(2 / (1 + negative_slope²)),
// which keeps the variance through layers followed by (leaky) relu: forward by fan_in, backward by
// fan_out. The uniform ones are in ±√3 deviations.
Init kaiming_uniform(double negative_slope = 0, Fan fan = Fan::in);
Init kaiming_normal(double negative_slope = 0, Fan fan = Fan::in);
// Xavier (Glorot and Bengio 2010): a deviation of gain · √(2 / (fan_in + fan_out)).
Init xavier_uniform(double gain = 1);
Init xavier_normal(double gain = 1);

// The normal distribution without what lies outside [low, high], which is drawn anew.
Init truncated_normal(double mean, double deviation, double low, double high);
// Saxe et al. 2014: as a matrix (out, everything else), rows that are orthogonal and gain long, or
// columns where there are fewer of them. Computed on the host in cubic time: for small weights.
Init orthogonal_init(double gain = 1);

}  // namespace tessera
