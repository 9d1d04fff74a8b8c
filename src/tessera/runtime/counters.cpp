#include "tessera/runtime/counters.h"

namespace tessera {

void Counters::add_allocation(int64_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  const int64_t now = bytes_in_use.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  int64_t peak = peak_bytes.load(std::memory_order_relaxed);
  while (now > peak && !peak_bytes.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
}

void Counters::add_release(int64_t bytes) {
  bytes_in_use.fetch_sub(bytes, std::memory_order_relaxed);
}

CounterValues Counters::snapshot() const {
  return {allocations.load(std::memory_order_relaxed),
          bytes_in_use.load(std::memory_order_relaxed),
          peak_bytes.load(std::memory_order_relaxed),
          compiles.load(std::memory_order_relaxed),
          launches.load(std::memory_order_relaxed),
          synchronizations.load(std::memory_order_relaxed)};
}

Counters& counters() {
  static Counters instance;
  return instance;
}

}  // namespace tessera
