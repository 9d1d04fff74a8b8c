// Points for the tests of anchors: generated ones, and those beside the repository.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace tessera::lattice {

// (n, dim), independent and normal.
std::vector<float> normal_points(int64_t n, int64_t dim, uint64_t seed);

// (n, dim): `clusters` centres of normal coordinates times `spread`, each with normal noise of 1
// around it. Point i belongs to cluster i % clusters.
std::vector<float> mixture(int64_t n, int64_t dim, int64_t clusters, float spread, uint64_t seed);

// All rows of a file in ../shared/data, seen from the repository; nothing where it is absent.
std::optional<std::vector<float>> shared_vectors(std::string_view file);

}  // namespace tessera::lattice
