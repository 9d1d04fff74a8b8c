#include "tessera/bench/limits.h"

#include <algorithm>
#include <fstream>

#include "tessera/backend/cpu/isa.h"
#include "tessera/backend/cpu/peak.h"
#include "tessera/base/thread_pool.h"
#include "tessera/bench/movers.h"
#include "tessera/bench/timing.h"
#include "tessera/runtime/registry.h"

namespace tessera::bench {

namespace {

int threads() { return 1 + thread_pool().workers(); }

// The best of several trials: noise only ever makes it slower, and a limit is no average.
double fma_rate(const cpu::PeakLoops& loops, int64_t rounds, int trials, int on_threads) {
  const auto one = [&](int64_t, int64_t) {
    [[maybe_unused]] volatile float kept = loops.fma(rounds);
  };
  const double seconds = best_of(trials, [&] {
    on_threads == 1 ? one(0, 1)
                    : thread_pool().parallel_for(on_threads, 1, [&](int64_t b, int64_t e) {
                        for (int64_t i = b; i < e; ++i) one(i, i + 1);
                      });
  });
  return double(loops.flops) * double(rounds) * on_threads / seconds;
}

double bandwidth(Move how, int64_t floats, int trials, bool& past) {
  const Moved moved{how, floats};
  const Mover mover({moved});
  past = mover.is_past();
  return bytes_of(moved) / best_of(trials, [&] { mover(); });
}

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return backend("cpu").target().description;
}

}  // namespace

Limits measure_limits(bool quick) {
  const int64_t rounds = quick ? 200'000 : 1'000'000;
  const int64_t floats = int64_t(quick ? 16 : 64) << 20;
  const int trials = quick ? 8 : 30;
  Limits limits;
  for (const cpu::Isa isa : cpu::available_isas()) {
    const cpu::PeakLoops& loops = cpu::peaks(isa);
    limits.fma.push_back({std::string(cpu::name(isa)), fma_rate(loops, rounds, trials, 1),
                          fma_rate(loops, rounds, trials, threads())});
  }
  limits.copy_bytes = bandwidth(Move::copy, floats, trials, limits.copy_past);
  limits.add_bytes = bandwidth(Move::add, floats, trials, limits.add_past);
  return limits;
}

Machine describe_machine() {
  Machine machine;
  machine.cpu = processor_name();
  machine.description = backend("cpu").target().description;
  machine.isa = cpu::name(cpu::isa());
  machine.threads = threads();
  return machine;
}

}  // namespace tessera::bench
