// Notices of the library (a recompilation warning, a missing optional library). The library itself
// never prints: messages go to a sink that the program sets; without one they are dropped.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "tessera/base/error.h"

namespace tessera {

enum class LogLevel { debug, info, warning };

using LogSink = std::function<void(LogLevel, std::string_view)>;

// Replaces the sink and returns the one before. Thread safe.
LogSink set_log_sink(LogSink sink);

void log_message(LogLevel level, std::string_view text);

template <class... Args>
void log_warning(const Args&... args) {
  log_message(LogLevel::warning, cat(args...));
}

}  // namespace tessera
