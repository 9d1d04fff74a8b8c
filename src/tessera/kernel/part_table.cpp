#include "tessera/kernel/part_table.h"

#include <bit>

#include "tessera/kernel/kernel_call.h"

namespace tessera {

namespace {

constexpr int64_t kStep = 32;

}  // namespace

int64_t table_capacity(int64_t parts) {
  if (parts <= kStep) return int64_t(std::bit_ceil(uint64_t(parts)));
  return (parts + kStep - 1) / kStep * kStep;
}

int64_t most_parts(const KernelIR& ir, int64_t table_words) {
  const int64_t room = table_words / words_of_part(ir);
  return room < kStep ? int64_t(std::bit_floor(uint64_t(room))) : room / kStep * kStep;
}

}  // namespace tessera
