// tessera bench: every line checked, then timed.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tessera/bench/case.h"
#include "tessera/cli/command.h"

namespace tessera::cli {

struct BenchOptions {
  std::vector<Device> devices;
  bool quick = false;
  bool claims = false;    // judge them
  std::string json = {};  // file to write; "": none; "-": standard output, in place of the tables
  std::string html = {};  // file to write; "": none
};

// `failed` when any line is wrong.
Status run_lines(const BenchOptions& options, std::span<const bench::Case> cases, Console& console);

}  // namespace tessera::cli
