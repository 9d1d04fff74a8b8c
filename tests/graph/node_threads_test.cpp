#include <gtest/gtest.h>

#include <barrier>
#include <random>
#include <thread>
#include <vector>

#include "tessera/graph/build.h"
#include "tessera/graph/scope.h"

namespace tessera {
namespace {

using namespace graph;

constexpr int kThreads = 64;

void run_threads(const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) threads.emplace_back(body, t);
  for (std::thread& thread : threads) thread.join();
}

TEST(NodeThreads, AllGetTheSameNode) {
  const int64_t before = live_nodes();
  {
    const Value x = make_leaf({DType::f32, {4}});
    for (int round = 0; round < 20; ++round) {
      std::vector<Value> results(kThreads);
      std::barrier start(kThreads);
      run_threads([&](int t) {
        start.arrive_and_wait();
        results[size_t(t)] = apply(Op::exp, x * double(round)) + x;
      });
      for (const Value& value : results) EXPECT_EQ(value, results[0]);
    }
  }
  EXPECT_EQ(live_nodes(), before);
}

// Few distinct nodes and short lives: building meets dying all the time.
TEST(NodeThreads, BuildingAndDroppingRace) {
  const int64_t before = live_nodes();
  {
    const Value x = make_leaf({DType::f32, {4}});
    run_threads([&](int t) {
      std::minstd_rand random(unsigned(t) + 1);
      std::vector<Value> held(4, x);
      for (int i = 0; i < 2000; ++i) {
        Value& a = held[random() % held.size()];
        const Value& b = held[random() % held.size()];
        switch (random() % 6) {
          case 0: a = x; break;
          case 1: a = apply(Op::neg, x); break;
          case 2: a = apply(Op::exp, apply(Op::neg, x)); break;
          case 3: a = b; break;
          case 4: a = x + apply(Op::neg, x); break;
          default: a = apply(Op::abs, b); break;
        }
        ASSERT_EQ(a.shape(), x.shape());
      }
    });
  }
  EXPECT_EQ(live_nodes(), before);
}

TEST(NodeThreads, SharedGraphsAreDroppedByWhoeverIsLast) {
  const int64_t before = live_nodes();
  {
    Value x = make_leaf({DType::f32, {}});
    for (int i = 0; i < 2000; ++i) x = apply(Op::neg, x);
    std::vector<Value> copies(kThreads, x);
    x = {};
    run_threads([&](int t) { copies[size_t(t)] = {}; });
  }
  EXPECT_EQ(live_nodes(), before);
}

struct Number : Slot {
  explicit Number(int v) : value(v) {}
  int value;
};

TEST(NodeThreads, SlotsAreReadWhileWritten) {
  const Value x = make_leaf({DType::f32, {}});
  std::vector<int> bad(kThreads, 0);
  run_threads([&](int t) {
    for (int i = 0; i < 500; ++i) {
      x.node->set_slot(0, std::make_shared<Number>(t));
      const auto slot = std::dynamic_pointer_cast<Number>(x.node->slot(0));
      if (!slot || slot->value < 0 || slot->value >= kThreads) ++bad[size_t(t)];
    }
  });
  EXPECT_EQ(bad, std::vector<int>(kThreads, 0));
}

TEST(NodeThreads, ScopesArePerThread) {
  std::vector<std::string> paths(kThreads);
  run_threads([&](int t) {
    const Scope outer("worker" + std::to_string(t % 8));
    for (int i = 0; i < 100; ++i) {
      const Scope inner("inner");
      paths[size_t(t)] = scope_path(current_scope());
    }
  });
  for (int t = 0; t < kThreads; ++t) {
    EXPECT_EQ(paths[size_t(t)], "worker" + std::to_string(t % 8) + "/inner");
  }
}

}  // namespace
}  // namespace tessera
