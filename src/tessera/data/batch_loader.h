// Batches of a token sequence for training: windows of T tokens and, for each, the token after it.
//
// An epoch cuts the sequence into windows that follow one another and gives each once: in order,
// or shuffled by the seed, and then also cut from another place in every epoch. A batch that begins
// in one epoch may end in the next. What comes is a function of the data, the options and the
// position alone: a loader that is restored from state() goes on bit for bit.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tessera/data/token_data.h"
#include "tessera/io/json.h"

namespace tessera {

struct LoaderOptions {
  int64_t batch = 1;   // B
  int64_t length = 1;  // T
  bool shuffle = true;
  int64_t seed = 0;
  int prefetch = 2;  // batches made ahead, by a thread of their own; 0: none, and no thread
};

// Where a loader stands: after so many windows of this epoch. The other numbers tell whether it is
// the same sequence of windows.
struct LoaderState {
  int64_t epoch = 0, position = 0;
  int64_t seed = 0, length = 0, tokens = 0;
  bool shuffle = true;

  bool operator==(const LoaderState&) const = default;

  Json to_json() const;
  static LoaderState from_json(const Json& json);  // throws for a member that is absent or wrong
};

struct Batch {
  std::vector<int32_t> inputs;   // (B, T)
  std::vector<int32_t> targets;  // (B, T): what follows each input
  LoaderState after;             // the state of the loader when this was the last batch
};

class BatchLoader {
 public:
  // Throws where the data has no window: fewer than T + 1 tokens.
  BatchLoader(TokenData data, LoaderOptions options);
  ~BatchLoader();
  BatchLoader(const BatchLoader&) = delete;
  BatchLoader& operator=(const BatchLoader&) = delete;

  // The next batch. There is always one. Not for several threads at once. An error of reading is
  // thrown here, by the call that would have given the batch, and by every later one.
  Batch next();

  // After the batch that next() gave last.
  const LoaderState& state() const;
  // Goes on from there. The batch size may differ from then; throws where the data, T, the seed or
  // shuffling does, or where there is no such position.
  void restore(const LoaderState& state);

  // Of an epoch: with shuffling, the place it is cut from may cost one.
  int64_t windows(int64_t epoch) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tessera
