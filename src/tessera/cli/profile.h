// `--profile FILE`, which every command takes.
#pragma once

#include <string>

#include "tessera/cli/console.h"
#include "tessera/tensor/profile.h"

namespace tessera::cli {

// Profiles from its construction to finish(), or to its end.
class CommandProfile {
 public:
  // Throws where `file` cannot be written: better before the work than after it.
  explicit CommandProfile(std::string file);

  // Writes the trace, then the table to `console.err`.
  void finish(Console& console);

 private:
  std::string file_;
  ProfileGuard guard_;
};

}  // namespace tessera::cli
