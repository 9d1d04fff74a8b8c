#include "tessera/bench/movers.h"

#include <algorithm>
#include <cstdlib>
#include <new>

#include "tessera/backend/cpu/host_memory.h"
#include "tessera/backend/cpu/isa.h"
#include "tessera/backend/cpu/peak.h"
#include "tessera/base/thread_pool.h"
#include "tessera/bench/timing.h"

namespace tessera::bench {

namespace {

constexpr int64_t kGrain = 1 << 14;  // floats
constexpr int kTrials = 3;

}  // namespace

double bytes_of(const Moved& moved) {
  constexpr double kArrays[] = {1, 1, 2, 3};
  return 4 * kArrays[size_t(moved.how)] * double(moved.floats);
}

Mover::Mover(std::vector<Moved> parts, int copies) : parts_(std::move(parts)) {
  int64_t a = 0, b = 0;
  for (const Moved& part : parts_) {
    if (part.how != Move::write) a = std::max(a, part.floats);
    if (part.how == Move::add) b = std::max(b, part.floats);
  }
  for (int i = 0; i < copies; ++i) {
    Arrays& arrays = copies_.emplace_back(Arrays{make_array(a), make_array(b), {}});
    for (const Moved& part : parts_) {
      arrays.d.push_back(make_array(part.how == Move::read ? 0 : part.floats));
    }
  }
  const auto best = [&](bool past) { return best_of(kTrials, [&] { run(past); }); };
  past_ = best(true) < best(false);
}

// As tensors have it.
Mover::Array Mover::make_array(int64_t floats) {
  Array array(static_cast<float*>(cpu::allocate_host(floats * int64_t(sizeof(float)))), std::free);
  if (array == nullptr) throw std::bad_alloc();
  thread_pool().parallel_for(floats, kGrain, [&](int64_t begin, int64_t end) {
    std::fill(array.get() + begin, array.get() + end, 1.f);
  });
  return array;
}

void Mover::operator()() const { run(past_); }

void Mover::run(bool past) const {
  const cpu::PeakLoops& loops = cpu::peaks(cpu::isa());
  const Arrays& arrays = copies_[next_++ % copies_.size()];
  for (size_t i = 0; i < parts_.size(); ++i) {
    const auto body = [&, how = parts_[i].how](int64_t begin, int64_t end) {
      const int64_t n = end - begin;
      float* const d = arrays.d[i].get() + begin;
      const float* const a = arrays.a.get() + begin;
      if (how == Move::read) {
        [[maybe_unused]] volatile float sum = loops.read(n, a);
      } else if (how == Move::write) {
        (past ? loops.write_past : loops.write)(n, d);
      } else if (how == Move::copy) {
        (past ? loops.copy_past : loops.copy)(n, d, a);
      } else {
        (past ? loops.add_past : loops.add)(n, d, a, arrays.b.get() + begin);
      }
    };
    thread_pool().parallel_for(parts_[i].floats, kGrain, body);
  }
}

Contender move_bytes(std::vector<Moved> parts, int copies) {
  const auto mover = std::make_shared<Mover>(std::move(parts), copies);
  return {.column = std::string(kBytes),
          .by = mover->is_past() ? "past the caches" : "",
          .run = [mover] { (*mover)(); }};
}

}  // namespace tessera::bench
