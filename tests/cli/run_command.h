// Runs the built `tessera` in a process of its own.
#pragma once

#include <string>
#include <vector>

namespace tessera {

struct CommandResult {
  int status = -1;  // of exit; -1 when the process did not end by itself
  std::string out, err;
};

// With `stdout_path`, standard output goes there instead, and `out` stays empty.
CommandResult run_command(const std::vector<std::string>& arguments,
                          const std::string& stdout_path = "");

}  // namespace tessera
