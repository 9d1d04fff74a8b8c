#include "tessera/cli/profile.h"

#include <ostream>
#include <utility>

#include "tessera/io/atomic_file.h"

namespace tessera::cli {

namespace {

// Nothing of it stays: a command that a closed pipe ends must leave no file behind.
std::string writable(std::string file) {
  const AtomicFile probe(file);
  return file;
}

}  // namespace

CommandProfile::CommandProfile(std::string file) : file_(writable(std::move(file))) {}

void CommandProfile::finish(Console& console) {
  guard_.stop();
  write_trace(guard_.profile(), file_);
  console.err << to_string(guard_.profile());
}

}  // namespace tessera::cli
