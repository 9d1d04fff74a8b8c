// Makes an index of a file of vectors: anchors from a sample, then every vector's cell and code.
// Vector i of the file gets the id i.
//
//   build_index(VectorFile::open("vectors.npy"), "vectors.tsr", {.bits = 4});
//
// The file may be larger than memory: it is read chunk by chunk, once to find the cells and once
// more for each part of the codes that fits.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

#include "tessera/io/vector_file.h"
#include "tessera/lattice/anchors.h"
#include "tessera/lattice/metric.h"

namespace tessera::lattice {

enum class TransformMode : uint8_t { automatic, rotation, pca };

struct BuildOptions {
  AnchorOptions anchors = {};
  Metric metric = Metric::l2;
  int32_t bits = 4;  // a dimension, 0 to 8; 0: no codes, the anchors alone
  TransformMode transform = TransformMode::automatic;
  bool split_planes = false;  // the top bit of codes apart: for single queries; 2 bits or more
  uint64_t seed = 0;          // of everything that is drawn
  int64_t memory = int64_t(4) << 30;  // bytes, about
};

struct BuildProgress {
  enum class Phase : uint8_t { assign, encode } phase;
  int64_t done, rows;
};

struct BuildReport {
  int64_t rows = 0, dim = 0, cells = 0;
  int64_t iterations = 0;
  bool converged = false;
  double energy = 0;  // of the sample that was trained on
  bool is_pca = false;
  double coding_gain = 0;        // dB; 0 where it was not looked at
  int64_t file_bytes = 0;        // of the index
  int64_t vector_bytes = 0;      // of the vectors as they were
  double seeding_seconds = 0;    // of train_seconds
  double train_seconds = 0;      // the anchors
  double transform_seconds = 0;  // how residuals are turned and coded, chosen
  double encode_seconds = 0;     // cells, codes, the file
};

// Throws for options out of range and for files it cannot take, and leaves what is at `to` alone
// then.
BuildReport build_index(const VectorFile& vectors, const std::filesystem::path& to,
                        const BuildOptions& options, const TrainingCallback& training = {},
                        const std::function<void(const BuildProgress&)>& progress = {});

}  // namespace tessera::lattice
