#include "tessera/data/batch_loader.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <limits>
#include <mutex>
#include <thread>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/data/permutation.h"

namespace tessera {

namespace {

// The windows of one epoch.
class Epoch {
 public:
  Epoch(const LoaderState& state, int64_t number)
      : shuffle_(state.shuffle),
        length_(state.length),
        offset_(offset_of(state, number)),
        count_((state.tokens - 1 - offset_) / length_),
        order_(count_, uint64_t(state.seed), 2 * uint64_t(number)) {}

  int64_t count() const { return count_; }
  // The first token of the window that comes at a position.
  int64_t begin(int64_t position) const {
    return offset_ + length_ * (shuffle_ ? order_(position) : position);
  }

 private:
  // Streams 2e are orders, 2e + 1 offsets.
  static int64_t offset_of(const LoaderState& state, int64_t number) {
    if (!state.shuffle) return 0;
    const auto bits = philox(uint64_t(state.seed), 0, 2 * uint64_t(number) + 1);
    const int64_t places = std::min(state.length, state.tokens - state.length);
    return int64_t((uint64_t(bits[0]) << 32 | bits[1]) % uint64_t(places));
  }

  bool shuffle_;
  int64_t length_, offset_, count_;
  Permutation order_;
};

}  // namespace

Json LoaderState::to_json() const {
  Json json = Json::object();
  json.set("epoch", epoch).set("position", position).set("seed", seed);
  json.set("length", length).set("tokens", tokens).set("shuffle", shuffle);
  return json;
}

LoaderState LoaderState::from_json(const Json& json) {
  return {.epoch = json.get<int64_t>("epoch"),
          .position = json.get<int64_t>("position"),
          .seed = json.get<int64_t>("seed"),
          .length = json.get<int64_t>("length"),
          .tokens = json.get<int64_t>("tokens"),
          .shuffle = json.get<bool>("shuffle")};
}

struct BatchLoader::State {
  State(TokenData given, LoaderOptions chosen);
  ~State() { stop(); }

  Batch make(const LoaderState& from) const;
  void start();
  void stop();
  void work(LoaderState from);

  TokenData data;
  LoaderOptions options;
  LoaderState given_out;  // after the last batch that next() gave

  std::thread worker;  // not there when options.prefetch is 0
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Batch> ready;
  std::exception_ptr error;
  bool stopping = false;
};

BatchLoader::State::State(TokenData from, LoaderOptions chosen)
    : data(std::move(from)), options(chosen) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  if (options.batch < 1 || options.length < 1 || options.batch > kMost / options.length) {
    fail("loader: expected a batch and a length of at least 1 and at most ", kMost,
         " tokens together, got ", options.batch, " and ", options.length);
  }
  if (options.prefetch < 0) {
    fail("loader: expected 0 or more batches made ahead, got ", options.prefetch);
  }
  if (data.size() <= options.length) {
    fail("loader: expected at least ", options.length + 1, " tokens for windows of ",
         options.length, ", got ", data.size());
  }
  given_out = {.seed = options.seed,
               .length = options.length,
               .tokens = data.size(),
               .shuffle = options.shuffle};
  start();
}

Batch BatchLoader::State::make(const LoaderState& from) const {
  const auto length = size_t(options.length), size = size_t(options.batch) * length;
  Batch batch{std::vector<int32_t>(size), std::vector<int32_t>(size), from};
  LoaderState& at = batch.after;
  Epoch epoch(at, at.epoch);
  std::vector<int32_t> window(length + 1);
  for (size_t row = 0; row < size; row += length) {
    if (at.position == epoch.count()) {
      at.position = 0;
      ++at.epoch;
      epoch = Epoch(at, at.epoch);
    }
    data.read(epoch.begin(at.position++), window);
    std::copy_n(window.begin(), length, batch.inputs.begin() + ptrdiff_t(row));
    std::copy_n(window.begin() + 1, length, batch.targets.begin() + ptrdiff_t(row));
  }
  return batch;
}

void BatchLoader::State::start() {
  if (options.prefetch > 0) worker = std::thread([this, from = given_out] { work(from); });
}

void BatchLoader::State::stop() {
  {
    const std::lock_guard lock(mutex);
    stopping = true;
  }
  changed.notify_all();
  if (worker.joinable()) worker.join();
  stopping = false;
  ready.clear();
  error = nullptr;
}

void BatchLoader::State::work(LoaderState from) {
  try {
    for (;;) {
      Batch batch = make(from);
      from = batch.after;
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return stopping || int(ready.size()) < options.prefetch; });
      if (stopping) return;
      ready.push_back(std::move(batch));
      changed.notify_all();
    }
  } catch (...) {
    const std::lock_guard lock(mutex);
    error = std::current_exception();
    changed.notify_all();
  }
}

BatchLoader::BatchLoader(TokenData data, LoaderOptions options)
    : state_(std::make_unique<State>(std::move(data), options)) {}

BatchLoader::~BatchLoader() = default;

Batch BatchLoader::next() {
  State& s = *state_;
  Batch batch;
  if (s.options.prefetch == 0) {
    batch = s.make(s.given_out);
  } else {
    std::unique_lock lock(s.mutex);
    s.changed.wait(lock, [&] { return !s.ready.empty() || s.error; });
    if (s.ready.empty()) std::rethrow_exception(s.error);
    batch = std::move(s.ready.front());
    s.ready.pop_front();
    s.changed.notify_all();
  }
  s.given_out = batch.after;
  return batch;
}

const LoaderState& BatchLoader::state() const { return state_->given_out; }

void BatchLoader::restore(const LoaderState& state) {
  LoaderState same = state_->given_out;
  same.epoch = state.epoch;
  same.position = state.position;
  if (state != same) {
    fail("loader: expected a state of the same data, length, seed and shuffling, ",
         same.to_json().dump(), ", got ", state.to_json().dump());
  }
  if (state.epoch < 0 || state.position < 0 || state.position > windows(state.epoch)) {
    fail("loader: expected a state inside an epoch, got position ", state.position, " of epoch ",
         state.epoch);
  }
  state_->stop();
  state_->given_out = state;
  state_->start();
}

int64_t BatchLoader::windows(int64_t epoch) const {
  return Epoch(state_->given_out, epoch).count();
}

}  // namespace tessera
