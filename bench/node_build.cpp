// Nanoseconds to build a node: one that is new, one that is found in the intern table, and to drop
// one. The goal is at most 1000.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "tessera/graph/build.h"

namespace {

using namespace tessera;

constexpr int kNodes = 200'000;
constexpr int kRepeats = 5;

template <class F>
double nanoseconds_per_node(F&& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  const std::chrono::duration<double, std::nano> elapsed = std::chrono::steady_clock::now() - start;
  return elapsed.count() / kNodes;
}

struct Times {
  double fresh = 1e9, found = 1e9, dropped = 1e9;
};

// The best of several rounds: the machine may be busy with something else.
template <class Build>
void measure(const char* what, Build build) {
  Times best;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    const Value x = make_leaf({DType::f32, {32, 64}}), y = make_leaf({DType::f32, {32, 64}});
    std::vector<Value> nodes(kNodes + 1, x), again(kNodes + 1, x);
    const auto chain = [&](std::vector<Value>& into) {
      return nanoseconds_per_node([&] {
        for (size_t i = 0; i < kNodes; ++i) into[i + 1] = build(into[i], y);
      });
    };
    best.fresh = std::min(best.fresh, chain(nodes));
    best.found = std::min(best.found, chain(again));
    again.clear();
    best.dropped = std::min(best.dropped, nanoseconds_per_node([&] { nodes.clear(); }));
  }
  std::printf("%-10s new %5.0f ns   found %5.0f ns   dropped %5.0f ns\n", what, best.fresh,
              best.found, best.dropped);
}

}  // namespace

int main() {
  measure("exp", [](const Value& x, const Value&) { return graph::apply(Op::exp, x); });
  measure("add", [](const Value& x, const Value& y) { return graph::operator+(x, y); });
  measure("permute", [](const Value& x, const Value&) { return graph::swap_last(x); });
}
