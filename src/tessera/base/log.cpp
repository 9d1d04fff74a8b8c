#include "tessera/base/log.h"

#include <mutex>
#include <utility>

namespace tessera {

namespace {

struct Log {
  // Held while a sink runs: once set_log_sink returns, the sink before is no longer running and may
  // be destroyed. Recursive, so that a sink may log or replace itself.
  std::recursive_mutex mutex;
  LogSink sink;
};

// Never destroyed: a destructor that runs at exit may still log.
Log& global_log() {
  static Log* log = new Log;
  return *log;
}

}  // namespace

LogSink set_log_sink(LogSink sink) {
  Log& log = global_log();
  const std::lock_guard lock(log.mutex);
  return std::exchange(log.sink, std::move(sink));
}

void log_message(LogLevel level, std::string_view text) {
  Log& log = global_log();
  const std::lock_guard lock(log.mutex);
  const LogSink sink = log.sink;  // a copy: the sink may replace itself while it runs
  if (sink) sink(level, text);
}

}  // namespace tessera
