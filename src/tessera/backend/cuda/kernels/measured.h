// Choices by time on the device at hand. They are kept on disk, for the device and the version of
// cuBLASLt.
#pragma once

#include <functional>
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

// Milliseconds that some runs of `work` take, to be compared with those of other work: the least of
// several rounds, infinite where the device fails. `is_short`: a run takes less time than its
// launch.
float least_time(Session& session, Stream stream, bool is_short, const std::function<void()>& work);

}  // namespace tessera::cuda
