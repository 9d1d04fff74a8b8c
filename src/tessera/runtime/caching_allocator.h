// Keeps released device memory for the next request of about its size.
#pragma once

#include <cstdint>
#include <memory>

#include "tessera/runtime/backend.h"

namespace tessera {

struct AllocatorStats {
  int64_t in_use = 0;  // bytes handed out and still referenced, rounded to their size class
  int64_t cached = 0;  // bytes kept for reuse
  int64_t peak = 0;    // the greatest in_use so far
};

// Thread safe. Buffers may outlive the allocator; the backend must outlive both. Memory goes back
// to the cache when the last reference drops, so work still queued on it must be done by then.
class CachingAllocator {
 public:
  explicit CachingAllocator(Backend& backend);

  // Sizes are rounded up to a class (at most 1/8 more). When the device has no more, the cache is
  // released and the request repeated once; then the error says what was asked and what is in use.
  Buffer allocate(int64_t bytes);

  // Gives what is cached back to the backend.
  void release_cached();

  AllocatorStats stats() const;

 private:
  friend void release_cached_memory();
  struct State;
  std::shared_ptr<State> state_;
};

// Gives what any allocator has cached back to its backend: for memory that is asked of a backend
// itself, and refused.
void release_cached_memory();

// The size class of a request: multiples of 64 up to 512, then eighths of powers of two, then
// multiples of 64 MiB.
int64_t size_class(int64_t bytes);

}  // namespace tessera
