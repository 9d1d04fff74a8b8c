// Compresses vectors and searches them: an index of 4 bits a dimension, made, searched and changed.
#include <cstdio>
#include <filesystem>
#include <numeric>

#include "tessera/io/npy.h"
#include "tessera/lattice/build_index.h"
#include "tessera/lattice/vector_index.h"
#include "tessera/tensor/ops.h"
#include "tessera/tessera.h"

using namespace tessera;

int main() {
  init();
  // 5,000 vectors of 32 numbers around 50 centres, in a file.
  const std::filesystem::path folder = std::filesystem::temp_directory_path();
  const Random random(1);
  const Tensor centres = random.normal({50, 32}) * 4.f;
  const Tensor vectors =
      take(centres, random.randint({5000}, 0, 50), 0) + random.normal({5000, 32});
  const std::vector<float> rows = vectors.to_vector<float>();
  write_npy(folder / "tessera_vectors.npy", DType::f32, {5000, 32}, std::as_bytes(std::span(rows)));

  // The ten lines.
  const VectorFile file = VectorFile::open(folder / "tessera_vectors.npy");
  lattice::BuildOptions options;
  options.anchors.anchors = 50;
  const auto report = lattice::build_index(file, folder / "tessera_vectors.tsr", options);
  lattice::VectorIndex index(folder / "tessera_vectors.tsr");
  const std::span<const float> query(rows.data() + 123 * 32, 32);
  const lattice::SearchResult found = index.search(query, {.k = 5, .nprobe = 8});
  index.erase(std::vector<int64_t>{123});
  const lattice::SearchResult without = index.search(query, {.k = 5, .nprobe = 8});

  std::printf("%.1f %% of the size\nnearest to vector 123:",
              100.0 * double(report.file_bytes) / double(report.vector_bytes));
  for (const int64_t id : found.ids) std::printf(" %lld", static_cast<long long>(id));
  std::printf("\nand without it:       ");
  for (const int64_t id : without.ids) std::printf(" %lld", static_cast<long long>(id));
  std::printf("\n");
  for (const char* name : {"tessera_vectors.npy", "tessera_vectors.tsr"}) {
    std::filesystem::remove(folder / name);
  }
  return found.ids[0] == 123 && without.ids[0] == found.ids[1] ? 0 : 1;
}
