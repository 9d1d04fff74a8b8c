// Choices by time on the device at hand. They are kept on disk, for the device and the version of
// cuBLASLt.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "tessera/backend/cuda/session.h"

namespace tessera::cuda {

// What is kept of a kind ("algorithm") for a problem, whose words say all that it depends on.
std::optional<std::string> find_measured(const Session& session, std::string_view problem,
                                         std::string_view kind);
void keep_measured(const Session& session, std::string_view problem, std::string_view kind,
                   std::string_view choice);

// Times work on a stream, to be compared with other work.
class Watch {
 public:
  // `is_short`: a run takes less time than its launch.
  Watch(Session& session, Stream stream, bool is_short);
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  // Milliseconds of some runs: the least of several rounds, infinite where the device fails. Those
  // of short work are as many with its operands in the cache as with others there.
  float least_time(const std::function<void()>& work) const;

 private:
  std::unique_ptr<gpu::GpuExecutable> recorded(const std::function<void()>& work) const;
  float least_of_rounds(const std::function<void()>& round) const;
  void fill_cache() const;

  Session& session_;
  const Stream stream_;
  const bool is_short_;
  Address others_ = 0;  // as many bytes as the cache has
};

}  // namespace tessera::cuda
