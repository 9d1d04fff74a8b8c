#include "tessera/data/batch_loader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "io/temp_folder.h"
#include "support/expect_error.h"
#include "tessera/data/permutation.h"

namespace tessera {
namespace {

using Tokens = std::vector<int32_t>;

TokenData counting(int32_t size) {
  Tokens tokens(static_cast<size_t>(size));
  std::iota(tokens.begin(), tokens.end(), 0);
  return TokenData::of(tokens);
}

TEST(Permutation, HasEveryIndexOnce) {
  for (const int64_t n : {1, 2, 3, 4, 5, 16, 17, 63, 64, 65, 1000, 4096, 4097}) {
    std::set<int64_t> seen;
    const Permutation order(n, 7, 3);
    for (int64_t i = 0; i < n; ++i) seen.insert(order(i));
    EXPECT_EQ(int64_t(seen.size()), n);
    EXPECT_EQ(*seen.begin(), 0);
    EXPECT_EQ(*seen.rbegin(), n - 1);
  }
  const int64_t large = (int64_t(1) << 40) + 5;
  const Permutation order(large, 1, 1);
  std::set<int64_t> seen;
  for (int64_t i = 0; i < 1000; ++i) seen.insert(order(i));
  EXPECT_EQ(seen.size(), 1000u);
  EXPECT_LT(*seen.rbegin(), large);
}

TEST(Permutation, IsEvenlyRandom) {
  // Where each of 10 indices lies, over 10,000 streams: chi-squared with 9 degrees of freedom each.
  constexpr int64_t kN = 10, kStreams = 10000;
  int64_t hits[kN][kN] = {};
  for (uint64_t stream = 0; stream < kStreams; ++stream) {
    const Permutation order(kN, 42, stream);
    for (int64_t i = 0; i < kN; ++i) ++hits[i][order(i)];
  }
  for (const auto& row : hits) {
    double chi = 0;
    for (const int64_t count : row) {
      const double off = double(count) - double(kStreams) / kN;
      chi += off * off / (double(kStreams) / kN);
    }
    EXPECT_LT(chi, 33.7);  // exceeded once in 10,000
  }
}

TEST(BatchLoader, GivesWindowsAndWhatFollows) {
  BatchLoader loader(counting(10), {.batch = 2, .length = 3, .shuffle = false});
  EXPECT_EQ(loader.windows(0), 3);
  Batch batch = loader.next();
  EXPECT_EQ(batch.inputs, (Tokens{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(batch.targets, (Tokens{1, 2, 3, 4, 5, 6}));
  batch = loader.next();  // ends in the next epoch
  EXPECT_EQ(batch.inputs, (Tokens{6, 7, 8, 0, 1, 2}));
  EXPECT_EQ(batch.targets, (Tokens{7, 8, 9, 1, 2, 3}));
  EXPECT_EQ(loader.state().epoch, 1);
  EXPECT_EQ(loader.state().position, 1);
}

TEST(BatchLoader, GivesEveryWindowOfAnEpochOnce) {
  constexpr int64_t kLength = 7;
  BatchLoader loader(counting(1000), {.batch = 1, .length = kLength, .seed = 5});
  std::set<int32_t> offsets;
  std::vector<Tokens> orders;
  for (int64_t epoch = 0; epoch < 20; ++epoch) {
    Tokens begins;
    for (int64_t i = 0; i < loader.windows(epoch); ++i) {
      const Batch batch = loader.next();
      begins.push_back(batch.inputs[0]);
      for (size_t j = 0; j < kLength; ++j) {
        ASSERT_EQ(batch.inputs[j], batch.inputs[0] + int32_t(j));
        ASSERT_EQ(batch.targets[j], batch.inputs[j] + 1);
      }
    }
    EXPECT_FALSE(std::ranges::is_sorted(begins));
    orders.push_back(begins);
    std::ranges::sort(begins);
    offsets.insert(begins[0]);
    EXPECT_LT(begins[0], kLength);
    for (size_t i = 1; i < begins.size(); ++i) ASSERT_EQ(begins[i] - begins[i - 1], kLength);
    EXPECT_GT(begins.back() + 2 * kLength + 1, 1000) << "a window is left out";
  }
  EXPECT_GT(offsets.size(), 3u);
  EXPECT_NE(orders[0], orders[1]);
}

struct Row {
  bool shuffle;
  int prefetch;
};

TEST(BatchLoader, GoesOnBitForBitWhereItStopped) {
  for (const Row& row : {Row{true, 0}, {true, 1}, {true, 3}, {false, 2}}) {
    const LoaderOptions options = {
        .batch = 4, .length = 5, .shuffle = row.shuffle, .seed = 9, .prefetch = row.prefetch};
    BatchLoader whole(counting(203), options);
    std::vector<Batch> batches;
    std::vector<LoaderState> states = {whole.state()};
    for (int i = 0; i < 40; ++i) {
      batches.push_back(whole.next());
      states.push_back(whole.state());
    }
    for (size_t stop = 0; stop < batches.size(); stop += 3) {
      BatchLoader resumed(counting(203), options);
      resumed.next();
      const std::string saved = states[stop].to_json().dump();
      resumed.restore(LoaderState::from_json(Json::parse(saved, "state")));
      EXPECT_EQ(resumed.state(), states[stop]);
      for (size_t i = stop; i < batches.size(); ++i) {
        const Batch batch = resumed.next();
        ASSERT_EQ(batch.inputs, batches[i].inputs) << stop << " " << i;
        ASSERT_EQ(batch.targets, batches[i].targets);
        ASSERT_EQ(batch.after, batches[i].after);
      }
    }
  }
}

TEST(BatchLoader, DependsOnTheSeedAndNotOnPrefetching) {
  const auto first = [](int64_t seed, int prefetch) {
    BatchLoader loader(counting(5000),
                       {.batch = 8, .length = 9, .seed = seed, .prefetch = prefetch});
    return loader.next().inputs;
  };
  EXPECT_EQ(first(1, 0), first(1, 2));
  EXPECT_NE(first(1, 2), first(2, 2));
}

TEST(BatchLoader, PassesOnWhatReadingFoundWrong) {
  const TempFolder folder;
  TokenWriter writer(folder / "a.bin", ShardFormat::nanogpt);
  writer.write(Tokens{0, 1, 2, 3, 4, 5, 77, 7});
  writer.finish();
  for (const int prefetch : {0, 2}) {
    BatchLoader loader(TokenData::open({folder / "a.bin"}, 10),
                       {.batch = 1, .length = 3, .shuffle = false, .prefetch = prefetch});
    EXPECT_EQ(loader.next().inputs, (Tokens{0, 1, 2}));
    const LoaderState before = loader.state();
    for (int again = 0; again < 2; ++again) {
      EXPECT_EQ(error_text([&] { loader.next(); }),
                "tokens: '" + (folder / "a.bin").native() +
                    "': byte 12: expected a token below 10, got 77");
    }
    EXPECT_EQ(loader.state(), before);
    loader.restore({.seed = 0, .length = 3, .tokens = 8, .shuffle = false});
    EXPECT_EQ(loader.next().inputs, (Tokens{0, 1, 2}));
  }
}

TEST(BatchLoader, RefusesWhatCannotBe) {
  const auto make = [](LoaderOptions options) {
    return error_text([&] { BatchLoader(counting(10), options); });
  };
  EXPECT_EQ(make({.batch = 0}),
            "loader: expected a batch and a length of at least 1 and at most 2147483647 tokens "
            "together, got 0 and 1");
  EXPECT_EQ(make({.length = 10}), "loader: expected at least 11 tokens for windows of 10, got 10");
  EXPECT_EQ(make({.prefetch = -1}), "loader: expected 0 or more batches made ahead, got -1");
  BatchLoader(counting(10), {.length = 9}).next();

  BatchLoader loader(counting(10), {.batch = 1, .length = 3, .shuffle = false});
  LoaderState state = loader.state();
  state.seed = 1;
  EXPECT_EQ(error_text([&] { loader.restore(state); }),
            "loader: expected a state of the same data, length, seed and shuffling, "
            "{\"epoch\":0,\"position\":0,\"seed\":0,\"length\":3,\"tokens\":10,\"shuffle\":false}, "
            "got "
            "{\"epoch\":0,\"position\":0,\"seed\":1,\"length\":3,\"tokens\":10,\"shuffle\":false}");
  state = loader.state();
  state.position = 4;
  EXPECT_EQ(error_text([&] { loader.restore(state); }),
            "loader: expected a state inside an epoch, got position 4 of epoch 0");
  EXPECT_EQ(
      error_text([] { LoaderState::from_json(Json::parse("{\"epoch\": 1}", "s")); }).substr(0, 5),
      "json:");
}

}  // namespace
}  // namespace tessera
