// tessera bench lattice: vectors that are drawn, compressed and measured, in two sizes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/cli/command.h"
#include "tessera/lattice/build_index.h"

namespace tessera::cli {

struct LatticeCase {
  std::string_view name;
  int64_t points, dim, anchors;
};

inline constexpr LatticeCase kLatticeCases[] = {{"small", 1000, 64, 32},
                                                {"large", 10000, 128, 256}};

// An index of the case's vectors.
struct LatticeSize {
  int32_t bits;
  lattice::BuildReport report;
  double seconds;  // of all that build_index does
  double recall;   // @10 with all cells looked into: what the codes lose
};

struct LatticeRun {
  LatticeCase task;
  std::vector<lattice::TrainingProgress> iterations;
  std::vector<LatticeSize> sizes;  // of 0, 1, 4 and 8 bits
};

// Points (n, dim) of a mixture, one part for each anchor, whose variance falls along the dimensions
// by a power law. The same in every run.
std::vector<float> lattice_points(const LatticeCase& task);

LatticeRun run_lattice_case(const LatticeCase& task);

std::string to_text(const LatticeRun& run);
std::string to_json(std::span<const LatticeRun> runs);

Status run_lattice_bench(const Arguments& arguments, Console& console);

}  // namespace tessera::cli
