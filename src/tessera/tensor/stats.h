// What evaluation has done in this process; tests assert on differences.
#pragma once

#include <cstdint>

namespace tessera {

struct EvalStats {
  int64_t compilations = 0;  // Programs made
  int64_t replays = 0;       // runs of a Program that existed before
};

EvalStats eval_stats();

namespace detail {
void count_compilation();
void count_replay();
}  // namespace detail

}  // namespace tessera
