#include "tessera/backend/cpu/scratch.h"

#include <cstdlib>

#include "tessera/backend/cpu/host_memory.h"
#include "tessera/base/error.h"

namespace tessera::cpu {

namespace {

constexpr int64_t kHuge = int64_t(1) << 40;  // bytes: no spare beyond

class Arena {
 public:
  Arena() = default;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena() { std::free(start_); }

  char* reserve(int64_t bytes) {
    if (bytes <= size_) return start_;
    std::free(start_);
    start_ = nullptr;
    size_ = 0;
    const int64_t wanted = bytes < kHuge ? padded(bytes + bytes / 4) : bytes;
    start_ = static_cast<char*>(allocate_host(wanted));
    if (start_ == nullptr) fail("cpu: out of memory: asked for ", bytes, " bytes of scratch");
    size_ = wanted;
    return start_;
  }

 private:
  char* start_ = nullptr;
  int64_t size_ = 0;
};

}  // namespace

char* scratch(Scratch purpose, int64_t bytes) {
  thread_local Arena arenas[size_t(Scratch::count)];
  return arenas[size_t(purpose)].reserve(bytes);
}

}  // namespace tessera::cpu
