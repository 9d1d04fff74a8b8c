// Several users of one folder at the same time.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "io/temp_folder.h"
#include "runtime/child.h"
#include "tessera/base/error.h"
#include "tessera/base/log.h"
#include "tessera/runtime/binary_cache.h"

namespace tessera {
namespace {

constexpr int kBinaries = 20;
constexpr int64_t kLimit = 6000;  // about half of them

std::string binary_of(int i) { return std::string(size_t(200 + 13 * i), char('a' + i)); }

struct Outcome {
  int found = 0, wrong = 0;
};

// Finds or stores, and sometimes clears where `clears`.
Outcome use(BinaryCache& cache, int seed, bool clears) {
  Outcome outcome;
  for (int round = 0; round < 300; ++round) {
    const int i = (seed + round * 7) % kBinaries;
    const std::string source = cat("source ", i);
    const BinaryKey key = {source, "", "", ""};
    if (const auto binary = cache.find(key)) {
      ++outcome.found;
      outcome.wrong += *binary != binary_of(i);
    } else {
      cache.store(key, binary_of(i));
    }
    if (clears && round % 10 == 0) cache.clear();
    if (round % 25 == 0) cache.info();
  }
  return outcome;
}

void expect_binaries_alone(const TempFolder& folder) {
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    EXPECT_EQ(entry.path().extension(), ".bin");
  }
}

// All store, evict and read, one clears: whatever is found is right, and nobody is warned.
TEST(BinaryCacheSharing, ProcessesShareAFolder) {
  const TempFolder folder;
  const auto work = [&](int seed) {
    int heard = 0;
    set_log_sink([&](LogLevel, std::string_view) { ++heard; });
    BinaryCache cache(folder.path().native(), kLimit);
    const Outcome outcome = use(cache, seed, seed == 0);
    return outcome.wrong > 0 ? 1 : heard > 0 ? 2 : outcome.found == 0 ? 3 : 0;
  };
  std::vector<pid_t> children;
  for (int seed = 0; seed < 3; ++seed) children.push_back(start_child([&] { return work(seed); }));
  for (const pid_t child : children) EXPECT_EQ(wait_for_child(child), 0);
  expect_binaries_alone(folder);
}

TEST(BinaryCacheSharing, ThreadsShareACache) {
  const TempFolder folder;
  int heard = 0;  // the sink is called by one thread at a time
  const LogSink before = set_log_sink([&](LogLevel, std::string_view) { ++heard; });
  BinaryCache cache(folder.path().native(), kLimit);
  std::vector<Outcome> outcomes(3);
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] { outcomes[size_t(t)] = use(cache, t, t == 0); });
  }
  for (std::thread& thread : threads) thread.join();
  set_log_sink(before);
  for (const Outcome& outcome : outcomes) {
    EXPECT_GT(outcome.found, 0);
    EXPECT_EQ(outcome.wrong, 0);
  }
  EXPECT_EQ(heard, 0);
  expect_binaries_alone(folder);
}

}  // namespace
}  // namespace tessera
