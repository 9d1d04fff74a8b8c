// What evaluation has done in this process; tests assert on differences.
#pragma once

#include <cstdint>
#include <optional>

#include "tessera/base/device.h"

namespace tessera {

struct EvalStats {
  int64_t compilations = 0;  // Programs made
  int64_t replays = 0;       // runs of a Program that existed before
};

EvalStats eval_stats();

// Bytes on one device. Who holds them inside a step is told by its Program's report.
struct MemoryStats {
  int64_t in_use = 0;                // by tensors, Vars and results that are alive
  int64_t peak = 0;                  // the greatest in_use so far
  int64_t cached = 0;                // kept for the next of about this size
  int64_t arena = 0;                 // for temporaries, shared by all Programs
  std::optional<int64_t> free = {};  // what the device has left, where it says
};

MemoryStats memory_stats(Device device);

namespace detail {
void count_compilation();
void count_replay();
}  // namespace detail

}  // namespace tessera
