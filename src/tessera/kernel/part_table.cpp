#include "tessera/kernel/part_table.h"

#include "tessera/kernel/kernel_call.h"

namespace tessera {

namespace {

constexpr int64_t kSmall = 8, kStep = 32;

}  // namespace

int64_t table_capacity(int64_t parts) {
  if (parts <= kSmall) return kSmall;
  return (parts + kStep - 1) / kStep * kStep;
}

int64_t most_parts(const KernelIR& ir, int64_t table_words) {
  const int64_t room = table_words / words_of_part(ir);
  if (room >= kStep) return room / kStep * kStep;
  return room >= kSmall ? kSmall : 0;
}

}  // namespace tessera
