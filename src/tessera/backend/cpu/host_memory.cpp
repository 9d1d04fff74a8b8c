#include "tessera/backend/cpu/host_memory.h"

#include <sys/mman.h>

#include <cstdlib>

namespace tessera::cpu {

namespace {

constexpr int64_t kAddressSpace = int64_t(1) << 47;  // bytes no allocator needs to be asked for
constexpr int64_t kLine = 64;
constexpr int64_t kLargePage = int64_t(2) << 20;

int64_t round_up(int64_t bytes, int64_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

void* allocate_host(int64_t bytes) {
  if (bytes < 0 || bytes > kAddressSpace) return nullptr;
  const bool large = bytes >= 2 * kLargePage;
  const int64_t unit = large ? kLargePage : kLine;
  // Rounded up in size too: the rest of the last page could hold nothing else as large.
  void* start = std::aligned_alloc(size_t(unit), size_t(round_up(bytes + 1, unit)));
#ifdef MADV_HUGEPAGE
  // A hint: where it is refused, small pages serve.
  if (large && start != nullptr) madvise(start, size_t(round_up(bytes + 1, unit)), MADV_HUGEPAGE);
#endif
  return start;
}

}  // namespace tessera::cpu
