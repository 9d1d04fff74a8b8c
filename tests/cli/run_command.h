// Runs the built `tessera` in a process of its own.
#pragma once

#include <string>
#include <vector>

namespace tessera {

struct CommandResult {
  int status = -1;  // of exit; -1 when a signal ended the process
  int signal = 0;   // that ended it
  std::string out, err;
};

using Words = std::vector<std::string>;

// "NAME=value" takes the place of what the test's own environment says; "NAME" alone removes it.
using Environment = std::vector<std::string>;

CommandResult run_command(const Words& arguments, const Environment& environment = {});

// Standard output goes to this file instead, and `out` stays empty.
CommandResult run_into(const std::string& path, const Words& arguments);

// Standard output is a pipe that nobody reads. With `ignored`, the caller ignores SIGPIPE.
CommandResult run_into_closed_pipe(const Words& arguments, bool ignored);

// Standard output and standard error are one terminal; what it shows is in `out`.
CommandResult run_in_terminal(const Words& arguments, const Environment& environment);

}  // namespace tessera
