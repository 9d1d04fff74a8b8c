#include "tessera/runtime/caching_allocator.h"

#include <algorithm>
#include <bit>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace tessera {

namespace {

constexpr int64_t kSmallest = 64;
constexpr int64_t kLargestStep = int64_t(64) << 20;  // an eighth of a card's memory is too much
constexpr int64_t kLargest = int64_t(1) << 60;       // beyond, rounding up could overflow

using MemoryList = std::vector<std::shared_ptr<Memory>>;

}  // namespace

struct CachingAllocator::State {
  explicit State(Backend& b) : backend(b) {}

  std::shared_ptr<Memory> take(int64_t size) {
    const std::lock_guard lock(mutex);
    const auto found = free.find(size);
    if (found == free.end() || found->second.empty()) return nullptr;
    std::shared_ptr<Memory> memory = std::move(found->second.back());
    found->second.pop_back();
    stats.cached -= size;
    return memory;
  }

  void count_use(int64_t size) {
    const std::lock_guard lock(mutex);
    stats.in_use += size;
    stats.peak = std::max(stats.peak, stats.in_use);
  }

  void give_back(std::shared_ptr<Memory> memory) {
    const int64_t size = memory->bytes;
    const std::lock_guard lock(mutex);
    stats.in_use -= size;
    stats.cached += size;
    free[size].push_back(std::move(memory));
  }

  void release_cached() {
    std::unordered_map<int64_t, MemoryList> dropped;
    const std::lock_guard lock(mutex);
    dropped.swap(free);
    stats.cached = 0;
  }

  Backend& backend;
  mutable std::mutex mutex;
  std::unordered_map<int64_t, MemoryList> free;  // by size class
  AllocatorStats stats;
};

namespace {

// Of all allocators; those that are gone leave a null behind.
struct Caches {
  std::mutex mutex;
  std::vector<std::weak_ptr<void>> states;
};
Caches& caches() {
  static Caches* instance = new Caches;  // outlives whatever still allocates at exit
  return *instance;
}

}  // namespace

int64_t size_class(int64_t bytes) {
  TESSERA_ASSERT(bytes >= 0);
  if (bytes > kLargest) return bytes;
  const int64_t padded = std::max(kSmallest, (bytes + kSmallest - 1) / kSmallest * kSmallest);
  if (padded <= 8 * kSmallest) return padded;
  const int64_t step = std::min(int64_t(std::bit_floor(uint64_t(padded))) / 8, kLargestStep);
  return (padded + step - 1) / step * step;
}

CachingAllocator::CachingAllocator(Backend& backend) : state_(std::make_shared<State>(backend)) {
  const std::lock_guard lock(caches().mutex);
  std::erase_if(caches().states, [](const auto& state) { return state.expired(); });
  caches().states.push_back(state_);
}

void release_cached_memory() {
  std::vector<std::shared_ptr<void>> alive;
  {
    const std::lock_guard lock(caches().mutex);
    for (const auto& state : caches().states) alive.push_back(state.lock());
  }
  for (const auto& state : alive) {
    if (state) std::static_pointer_cast<CachingAllocator::State>(state)->release_cached();
  }
}

Buffer CachingAllocator::allocate(int64_t bytes) {
  const int64_t size = size_class(bytes);
  std::shared_ptr<Memory> memory = state_->take(size);
  if (memory == nullptr) {
    try {
      memory = state_->backend.allocate(size);
    } catch (const Error&) {
      state_->release_cached();
      try {
        memory = state_->backend.allocate(size);
      } catch (const Error& error) {
        fail(error.what(), "; ", stats().in_use, " bytes are in use, nothing is cached");
      }
    }
  }
  state_->count_use(size);
  // The handle goes back to the cache instead of the backend when the last reference drops.
  Memory* raw = memory.get();
  auto give_back = [state = state_, memory = std::move(memory)](Memory*) mutable {
    state->give_back(std::move(memory));
  };
  return {std::shared_ptr<Memory>(raw, std::move(give_back)), 0, bytes};
}

void CachingAllocator::release_cached() { state_->release_cached(); }

AllocatorStats CachingAllocator::stats() const {
  const std::lock_guard lock(state_->mutex);
  return state_->stats;
}

}  // namespace tessera
