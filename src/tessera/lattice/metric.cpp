#include "tessera/lattice/metric.h"

#include <cstddef>

namespace tessera::lattice {

std::string_view name(Metric metric) {
  constexpr std::string_view kNames[] = {"l2", "inner_product", "cosine"};
  return kNames[size_t(metric)];
}

}  // namespace tessera::lattice
