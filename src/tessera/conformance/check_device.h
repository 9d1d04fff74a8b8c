// What `tessera selftest` tries on a device beside the ops: its memory, and matrix products.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tessera/runtime/backend.h"

namespace tessera {

// Bytes of the device's memory that nobody uses now; nothing where the device does not tell.
std::optional<int64_t> free_memory(const Target& target);

// A pattern sent to the device, copied there, and fetched again.
struct MemoryCheck {
  int64_t bytes = 0;
  double upload_seconds = 0, copy_seconds = 0, download_seconds = 0;
  std::optional<int64_t> first_difference;  // byte; nothing: all came back

  bool passed() const { return !first_difference; }
};
MemoryCheck check_memory(Backend& backend, int64_t bytes);

// (2, 2) @ (2, 2) of whole numbers, row-major, by way of the compiler.
struct SmallProduct {
  std::vector<float> a, b, expected, actual;

  bool passed() const { return actual == expected; }
};
SmallProduct check_small_product();

// A product of two f32 matrices (size, size), timed, with samples of the result against f64.
struct LargeProduct {
  int64_t size = 0;
  int64_t samples = 0;
  double max_error = 0, mean_error = 0, tolerance = 0;  // ulps of the largest sample
  double seconds = 0;                                   // the median of `runs`, after a first one
  int runs = 0;

  bool passed() const { return max_error <= tolerance; }
  double gflops() const;  // 2 size³ operations
};
LargeProduct check_large_product(int64_t size, int runs);

}  // namespace tessera
