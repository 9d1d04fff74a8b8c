#include "tessera/backend/cpu/stores.h"

#include <algorithm>

#include "tessera/backend/cpu/tiling.h"

namespace tessera::cpu {

namespace {

constexpr int kDoubt = 2;         // caches may hold half or twice what is expected
constexpr float kWorth = 0.8f;    // what stays is worth something to whoever reads it next
constexpr float kForget = 1.02f;  // others come and go: a good time is worth less with every run
// Runs at a time that go the other way, at the beginning and then out of so many: what caches hold
// is settled after the first.
constexpr uint32_t kTrial = 4, kTrialEvery = 128;

}  // namespace

Stores::Stores(int64_t bytes)
    : may_stay_(!outgrows_caches(bytes / kDoubt)), may_go_(outgrows_caches(bytes * kDoubt)) {}

bool Stores::next() {
  if (!may_stay_ || !may_go_) return may_go_;
  const uint32_t run = runs_.fetch_add(1, std::memory_order_relaxed);
  if (run < 2 * kTrial) return run >= kTrial;
  const bool past = seconds_[1].load(std::memory_order_relaxed) <
                    kWorth * seconds_[0].load(std::memory_order_relaxed);
  return run % kTrialEvery < kTrial ? !past : past;
}

void Stores::took(bool past, float seconds) {
  std::atomic<float>& least = seconds_[past];
  least.store(std::min(seconds, kForget * least.load(std::memory_order_relaxed)),
              std::memory_order_relaxed);
}

}  // namespace tessera::cpu
