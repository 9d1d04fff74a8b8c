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

float least_time(Session& session, Stream stream, bool is_short,
                 const std::function<void()>& work) {
  work();
  // Short work is replayed, as programs do: launched one by one, the launch is what is measured.
  std::unique_ptr<gpu::GpuExecutable> replay;
  if (is_short && session.begin_recording(stream)) {
    std::string reason;
    for (int i = 0; i < kShortRuns; ++i) work();
    replay = session.end_recording(stream, reason);
    if (replay) replay->launch({}, 0, stream);
  }
  const Driver& d = driver();
  const StreamId queue = session.stream(stream);
  EventId begin = nullptr, end = nullptr;
  expect_success(d.event_create(&begin, 0), "creating an event");
  expect_success(d.event_create(&end, 0), "creating an event");
  float least = std::numeric_limits<float>::infinity();
  for (int round = 0; round < kRounds; ++round) {
    d.event_record(begin, queue);
    if (replay) {
      replay->launch({}, 0, stream);
    } else {
      for (int i = 0; i < (is_short ? kShortRuns : kRuns); ++i) work();
    }
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

}  // namespace tessera::cuda
