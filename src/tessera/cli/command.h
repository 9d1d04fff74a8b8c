// The subcommands as one table. `tessera --help`, `tessera COMMAND --help`, docs/cli.md and the
// tests that run every example follow from it.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "tessera/cli/console.h"
#include "tessera/cli/options.h"

namespace tessera::cli {

// Exit status of the process.
enum class Status : int { done = 0, failed = 1, wrong_call = 2 };

struct Command {
  std::string_view name;
  std::string_view help;                       // one line
  std::string_view operands;                   // behind the name in the usage line: "[MODEL]"
  std::span<const Option> options;             // without --profile and --help
  std::span<const std::string_view> examples;  // whole lines, "tessera explain mlp"; each succeeds
  std::string (*topics)();                     // further sections of the help; null: none
  // Writes the result to `console.out`. Returns `failed` where the result itself says so; throws
  // UsageError when called in a wrong way, Error when it cannot do its work.
  Status (*run)(const Arguments& arguments, Console& console);
};

extern const Command kBench;     // bench.cpp
extern const Command kCache;     // cache.cpp
extern const Command kCompress;  // compress.cpp
extern const Command kDevices;   // devices.cpp
extern const Command kEval;      // eval.cpp
extern const Command kExplain;   // explain.cpp
extern const Command kGenerate;  // generate.cpp
extern const Command kInfo;      // index_info.cpp
extern const Command kMaintain;  // maintain.cpp
extern const Command kSearch;    // search.cpp
extern const Command kSelftest;  // selftest.cpp
extern const Command kTrain;     // train.cpp

std::span<const Command* const> commands();

// What `tessera --help` and `tessera COMMAND --help` print.
std::string usage();
std::string usage(const Command& command);

// `words` are the arguments behind the program's name. Turns every failure into a sentence on
// `console.err`.
Status run(std::span<const std::string> words, Console& console);

}  // namespace tessera::cli
