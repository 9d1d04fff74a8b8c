// The tessera command: what belongs to the process, around cli::run.
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "tessera/base/log.h"
#include "tessera/cli/command.h"

namespace {

void write_log(tessera::LogLevel level, std::string_view text) {
  std::cerr << tessera::cli::log_line(level, text, std::getenv("TESSERA_QUIET"));
}

}  // namespace

int main(int count, char** values) {
  // `tessera explain | head -1` ends quietly, also where the caller ignores the signal and a write
  // would fail instead.
  std::signal(SIGPIPE, SIG_DFL);
  tessera::set_log_sink(write_log);
  const std::vector<std::string> words(values + std::min(count, 1), values + count);
  tessera::cli::Console console = tessera::cli::process_console();
  return int(tessera::cli::run(words, console));
}
