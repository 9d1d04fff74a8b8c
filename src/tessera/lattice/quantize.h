// Turns vectors into residual codes and back. A Coder is a spec and what follows from it; all its
// functions may be called from several threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tessera/lattice/code_kernels.h"
#include "tessera/lattice/code_layout.h"
#include "tessera/lattice/code_spec.h"
#include "tessera/lattice/rotation.h"

namespace tessera::lattice {

class Coder {
 public:
  explicit Coder(CodeSpec spec);
  Coder(const Coder&) = delete;  // the shape points into the spec
  Coder& operator=(const Coder&) = delete;

  const CodeSpec& spec() const { return spec_; }
  const CodeShape& shape() const { return shape_; }

  // x: (padded_dim), zeros past dim, in place.
  void transform(float* x) const;
  void transform_back(float* x) const;

  // rows: (n, dim) to (n, padded_dim), by the thread pool.
  std::vector<float> transform_rows(std::span<const float> rows) const;

  // Codes of a transformed residual (padded_dim). diagonal: empty or (padded_dim), what the levels
  // are multiplied by.
  Encoded encode(std::span<const float> residual, std::span<const float> diagonal,
                 std::span<uint8_t> codes) const;

  // |s ⊙ h|² of top bits, h = ±2^(bits - 2); diagonal as above.
  float hot_n2(std::span<const float> diagonal) const;

  // Encodes rows (n, dim) of the cell at `anchor` (dim) into positions [first, first + n) of its
  // blocks. diagonal as above.
  void encode_rows(std::span<const float> rows, std::span<const float> anchor,
                   std::span<const float> diagonal, std::byte* blocks, int64_t first) const;

  // The vector that position `position` of a list stands for: its direction is the code's, its
  // distance from the anchor the one that fits best. (dim)
  std::vector<float> decode(const std::byte* blocks, int64_t position,
                            std::span<const float> anchor, std::span<const float> diagonal) const;

 private:
  CodeSpec spec_;
  CodeShape shape_;
  std::optional<Rotation> rotation_;
  std::vector<float> axes_;  // (dim, padded_dim) of a PCA
};

// (dim) to (padded_dim), zeros behind.
std::vector<float> padded_row(const CodeSpec& spec, std::span<const float> row);

}  // namespace tessera::lattice
