#include "lanes.h"

#include <ucontext.h>

#include <algorithm>
#include <memory>

namespace stand_in {

namespace {

struct Fibers {
  static constexpr size_t kStack = 256 << 10;
  ucontext_t home;
  std::vector<ucontext_t> lanes;
  std::vector<std::unique_ptr<char[]>> stacks;
  std::vector<Wait> waits;
  std::vector<bool> done;
  std::vector<size_t> awaited;  // how often each lane has waited for its cluster
  size_t arrived = 0;           // of all lanes
  unsigned now = 0;
  const Function* function = nullptr;
  void** params = nullptr;
  Place place = {};

  // Of the lane at hand; lanes of a cluster's groups follow each other.
  unsigned group() const { return now / place.lanes; }
  Place place_of_lane() const {
    Place here = place;
    here.lane = now % place.lanes;
    here.group += group();
    return here;
  }
};
Fibers g_fibers;

void wait_fiber(Wait wait) {
  if (wait == Wait::arrive) {
    ++g_fibers.arrived;
    return;
  }
  if (wait == Wait::cluster) ++g_fibers.awaited[g_fibers.now];
  g_fibers.waits[g_fibers.now] = wait;
  swapcontext(&g_fibers.lanes[g_fibers.now], &g_fibers.home);
}
void wait_never(Wait) {}

void fiber_main() {
  const unsigned lane = g_fibers.now;
  g_fibers.function->run[g_fibers.group()](g_fibers.params, g_fibers.place_of_lane(), wait_fiber);
  g_fibers.done[lane] = true;
  swapcontext(&g_fibers.lanes[lane], &g_fibers.home);
}

// Lets the lanes in [begin, end) go on if all that are not done wait for `wait`. True: they do.
bool release(unsigned begin, unsigned end, Wait wait) {
  Fibers& f = g_fibers;
  bool any = false;
  for (unsigned i = begin; i < end; ++i) {
    if (!f.done[i] && f.waits[i] != wait) return false;
    any = any || !f.done[i];
  }
  for (unsigned i = begin; any && i < end; ++i) f.waits[i] = Wait::no;
  return any;
}

// Lets the lanes go on for which all of the cluster have arrived as often as they wait.
bool release_cluster() {
  Fibers& f = g_fibers;
  bool any = false;
  for (size_t i = 0; i < f.done.size(); ++i) {
    const bool waits = !f.done[i] && f.waits[i] == Wait::cluster;
    if (!waits || f.arrived < f.awaited[i] * f.done.size()) continue;
    f.waits[i] = Wait::no;
    any = true;
  }
  return any;
}

// False where lanes wait for each other for ever.
bool run_fibers() {
  constexpr unsigned kWarp = 32;
  Fibers& f = g_fibers;
  const auto lanes = unsigned(f.done.size());
  for (;;) {
    for (f.now = 0; f.now < lanes; ++f.now) {
      if (f.done[f.now] || f.waits[f.now] != Wait::no) continue;
      f.function->enter[f.group()](f.place_of_lane());
      swapcontext(&f.home, &f.lanes[f.now]);
    }
    if (std::all_of(f.done.begin(), f.done.end(), [](bool done) { return done; })) return true;
    bool goes_on = release_cluster();
    for (unsigned first = 0; first < lanes; first += f.place.lanes) {
      goes_on = release(first, first + f.place.lanes, Wait::group) || goes_on;
    }
    for (unsigned warp = 0; warp < lanes; warp += kWarp) {
      goes_on = release(warp, std::min(warp + kWarp, lanes), Wait::warp) || goes_on;
    }
    if (!goes_on) return false;
  }
}

}  // namespace

bool run_groups(const Function& function, void** params, Place place) {
  if (!function.waits) {
    for (place.lane = 0; place.lane < place.lanes; ++place.lane) {
      function.run[0](params, place, wait_never);
    }
    return true;
  }
  const auto lanes = unsigned(place.lanes * function.run.size());
  Fibers& f = g_fibers;
  f.function = &function;
  f.params = params;
  f.place = place;
  f.lanes.resize(std::max<size_t>(f.lanes.size(), lanes));
  f.done.assign(lanes, false);
  f.waits.assign(lanes, Wait::no);
  f.awaited.assign(lanes, 0);
  f.arrived = 0;
  while (f.stacks.size() < lanes) f.stacks.emplace_back(new char[Fibers::kStack]);
  for (unsigned lane = 0; lane < lanes; ++lane) {
    getcontext(&f.lanes[lane]);
    f.lanes[lane].uc_stack = {f.stacks[lane].get(), 0, Fibers::kStack};
    f.lanes[lane].uc_link = nullptr;
    makecontext(&f.lanes[lane], fiber_main, 0);
  }
  return run_fibers();
}

}  // namespace stand_in
