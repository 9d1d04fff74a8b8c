#include "tessera/backend/cuda/kernels/measured.h"

#include <algorithm>
#include <limits>

#include "tessera/backend/cuda/cublaslt.h"
#include "tessera/runtime/binary_cache.h"

namespace tessera::cuda {

namespace {

constexpr int kRuns = 5, kShortRuns = 20, kRounds = 3;

struct Place {
  std::string version, device;
};

Place place_of(const Session& session) {
  return {cat(cublaslt_library().lt->version()),
          cat(session.info().name, ", ", session.info().multiprocessors)};
}

}  // namespace

std::optional<std::string> find_measured(const Session& session, std::string_view problem,
                                         std::string_view kind) {
  const Place place = place_of(session);
  return binary_cache().find({problem, kind, place.version, place.device});
}

void keep_measured(const Session& session, std::string_view problem, std::string_view kind,
                   std::string_view choice) {
  const Place place = place_of(session);
  binary_cache().store({problem, kind, place.version, place.device}, choice);
}

Watch::Watch(Session& session, Stream stream, bool is_short)
    : session_(session), stream_(stream), is_short_(is_short) {
  const auto bytes = size_t(session.info().cache_bytes);
  session.enter();
  // Without room for it, operands are in the cache always.
  if (is_short && bytes > 0 && driver().mem_alloc(&others_, bytes) != kSuccess) others_ = 0;
  if (others_ != 0) driver().fill(others_, 0, bytes / 4, session.stream(stream));
}

Watch::~Watch() {
  if (others_ != 0) driver().mem_free(others_);  // waits
}

float Watch::least_time(const std::function<void()>& work) const {
  work();
  const auto some_runs = [&] {
    for (int i = 0; i < (is_short_ ? kShortRuns : kRuns); ++i) work();
  };
  if (!is_short_) return least_of_rounds(some_runs);
  // Short work is replayed, as programs do: launched one by one, the launch is what is measured.
  const auto replay = recorded(some_runs);
  if (!replay) return least_of_rounds(some_runs);
  const float near = least_of_rounds([&] { replay->launch({}, 0, stream_); });
  if (others_ == 0) return near;
  const auto far_replay = recorded([&] {
    for (int i = 0; i < kShortRuns; ++i) {
      fill_cache();
      work();
    }
  });
  if (!far_replay) return near;
  return near + least_of_rounds([&] { far_replay->launch({}, 0, stream_); });
}

std::unique_ptr<gpu::GpuExecutable> Watch::recorded(const std::function<void()>& work) const {
  if (!session_.begin_recording(stream_)) return nullptr;
  std::string reason;
  work();
  auto replay = session_.end_recording(stream_, reason);
  if (replay) replay->launch({}, 0, stream_);
  return replay;
}

float Watch::least_of_rounds(const std::function<void()>& round) const {
  const Driver& d = driver();
  const StreamId queue = session_.stream(stream_);
  EventId begin = nullptr, end = nullptr;
  expect_success(d.event_create(&begin, 0), "creating an event");
  expect_success(d.event_create(&end, 0), "creating an event");
  float least = std::numeric_limits<float>::infinity();
  for (int i = 0; i < kRounds; ++i) {
    d.event_record(begin, queue);
    round();
    d.event_record(end, queue);
    float milliseconds = 0;
    if (d.event_synchronize(end) != kSuccess) break;
    d.event_elapsed(&milliseconds, begin, end);
    least = std::min(least, milliseconds);
  }
  d.event_destroy(begin);
  d.event_destroy(end);
  return least;
}

void Watch::fill_cache() const {
  const int64_t half = session_.info().cache_bytes / 2;
  session_.launched(
      driver().copy(others_, others_ + Address(half), size_t(half), session_.stream(stream_)),
      "a copy", stream_);
}

}  // namespace tessera::cuda
