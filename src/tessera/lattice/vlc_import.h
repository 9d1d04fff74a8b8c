// Files of the Voronoi lattice compressor, version 1 (.idx): anchors, and the cell of each point.
//
//   u32 magic 0x564C4341, u16 version 1, u32 m, u32 d, u32 n, u8 flags   (19 bytes, little-endian)
//   f16 anchors (m, d)
//   u32 assignments (n), each below m
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

namespace tessera::lattice {

struct VlcIndex {
  int32_t dim = 0;
  std::vector<float> anchors;        // (m, dim)
  std::vector<int32_t> assignments;  // (n): the cell of each point
};

// The content of a whole file. `name` stands for it in errors, which name the byte or the row.
VlcIndex parse_vlc(std::span<const std::byte> file, std::string_view name);

// Writes the index at `to`: metric l2, the points 0…n-1 as ids, no codes. The file has none, so a
// search can rank cells, not points.
void import_vlc(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace tessera::lattice
