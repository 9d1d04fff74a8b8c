#include "tessera/lattice/vlc_import.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "tessera/base/error.h"
#include "tessera/base/half.h"
#include "tessera/io/mapped_file.h"
#include "tessera/lattice/index_writer.h"

namespace tessera::lattice {

namespace {

constexpr uint32_t kMagic = 0x564C4341;
constexpr size_t kHeaderBytes = 19;

template <class T>
T load(std::span<const std::byte> bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

template <class... Args>
[[noreturn]] void refuse(std::string_view name, const Args&... args) {
  fail("vlc: ", name, ": ", args...);
}

struct Counts {
  uint64_t m, d, n;
};

Counts read_counts(std::span<const std::byte> file, std::string_view name) {
  if (file.size() < kHeaderBytes) {
    refuse(name, "expected a header of ", kHeaderBytes, " bytes, got ", file.size());
  }
  if (load<uint32_t>(file, 0) != kMagic) {
    refuse(name, "expected 0x564C4341 at byte 0, got other leading bytes");
  }
  if (const int version = load<uint16_t>(file, 4); version != 1) {
    refuse(name, "expected version 1 at byte 4, got ", version);
  }
  const Counts counts = {load<uint32_t>(file, 6), load<uint32_t>(file, 10),
                         load<uint32_t>(file, 14)};
  constexpr uint64_t kMax = std::numeric_limits<int32_t>::max();
  if (counts.m < 1 || counts.m > kMax || counts.d < 1 || counts.d > kMax) {
    refuse(name, "expected m at byte 6 and d at byte 10 from 1 to 2^31 - 1, got ", counts.m,
           " and ", counts.d);
  }
  // Divided, not multiplied: 2 * m * d may be more than 2^63.
  const uint64_t rest = file.size() - kHeaderBytes;
  const bool anchors_fit = counts.m <= rest / 2 / counts.d;
  if (!anchors_fit || rest - 2 * counts.m * counts.d != 4 * counts.n) {
    refuse(name, "expected ", counts.m, " anchors of ", counts.d, " f16 and ", counts.n,
           " u32 after byte ", kHeaderBytes, ", got ", rest, " bytes");
  }
  return counts;
}

}  // namespace

VlcIndex parse_vlc(std::span<const std::byte> file, std::string_view name) {
  const auto [m, d, n] = read_counts(file, name);
  VlcIndex index;
  index.dim = int32_t(d);
  index.anchors.reserve(m * d);
  for (uint64_t i = 0; i < m * d; ++i) {
    f16 value;
    value.bits = load<uint16_t>(file, kHeaderBytes + 2 * i);
    if (!std::isfinite(float(value))) {
      refuse(name, "expected finite anchors, got ", float(value), " in row ", i / d, ", byte ",
             kHeaderBytes + 2 * i);
    }
    index.anchors.push_back(float(value));
  }
  const size_t begin = kHeaderBytes + 2 * m * d;
  index.assignments.reserve(n);
  for (uint64_t i = 0; i < n; ++i) {
    const auto cell = load<uint32_t>(file, begin + 4 * i);
    if (cell >= m) {
      refuse(name, "expected a cell below ", m, " for point ", i, ", got ", cell, " at byte ",
             begin + 4 * i);
    }
    index.assignments.push_back(int32_t(cell));
  }
  return index;
}

void import_vlc(const std::filesystem::path& from, const std::filesystem::path& to) {
  const MappedFile file(from);
  const VlcIndex index = parse_vlc(file.bytes(), cat("'", from.native(), "'"));
  IndexInfo info;
  info.dim = index.dim;
  info.anchors = index.anchors;
  std::vector<std::vector<int64_t>> lists(size_t(info.cells()));
  for (size_t i = 0; i < index.assignments.size(); ++i) {
    lists[size_t(index.assignments[i])].push_back(int64_t(i));
  }
  write_index(to, info, [&](int32_t cell, std::vector<int64_t>& ids, std::vector<std::byte>&) {
    ids.swap(lists[size_t(cell)]);
  });
}

}  // namespace tessera::lattice
