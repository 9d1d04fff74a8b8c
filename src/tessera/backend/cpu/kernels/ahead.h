// Memory that is needed soon, asked for a few lines of the cache at a time by tiles of products
// that are computed meanwhile. Rows that lie far apart are what the processor does not foresee by
// itself.
#pragma once

#include <algorithm>
#include <cstdint>

#include "tessera/backend/cpu/gemm.h"
#include "tessera/base/error.h"

namespace tessera::cpu {

class Ahead {
 public:
  static constexpr int kMost = 8;

  // `count` rows of `bytes`, `stride` bytes apart. At most kMost times.
  void add(const char* rows, int64_t count, int64_t stride, int64_t bytes) {
    TESSERA_ASSERT(parts_ < kMost);
    if (count >= kMaxGemmRows) part_[parts_++] = {rows, count, stride, bytes};
  }

  // The next lines of what was added, in that order, are fetched by a tile of `rows`.
  template <class T>
  void give(GemmTile<T>& tile, int64_t rows) {
    tile.later = nullptr;
    if (at_ == parts_) return;
    const Part& part = part_[at_];
    tile.later = part.rows + std::min(row_, part.count - rows) * part.stride + column_;
    tile.later_step = part.stride;
    column_ += kFetched;
    if (column_ < part.bytes) return;
    column_ = 0;
    row_ += rows;
    if (row_ < part.count) return;
    row_ = 0;
    ++at_;
  }

 private:
  static constexpr int64_t kFetched = 128;  // bytes of a row

  struct Part {
    const char* rows;
    int64_t count, stride, bytes;
  };

  Part part_[kMost];
  int parts_ = 0, at_ = 0;
  int64_t row_ = 0, column_ = 0;
};

}  // namespace tessera::cpu
