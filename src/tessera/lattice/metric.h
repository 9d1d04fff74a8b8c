// How two vectors are compared. Cosine is inner product of vectors scaled to length 1 on entry.
#pragma once

#include <cstdint>
#include <string_view>

namespace tessera::lattice {

enum class Metric : uint8_t { l2, inner_product, cosine };

std::string_view name(Metric metric);

}  // namespace tessera::lattice
