// The tessera command: hands its arguments to a subcommand and turns failures into exit status.
//   0 done   1 failed   2 called in a wrong way
// Results go to standard output, everything else to standard error.
#include <algorithm>
#include <iostream>
#include <string_view>
#include <vector>

#include "tessera/base/log.h"
#include "tessera/cli/command.h"
#include "tessera/cli/options.h"
#include "tessera/tessera.h"

namespace tessera::cli {

namespace {

struct Command {
  std::string_view name;
  std::string_view help;
  CommandFunction* run;
};

constexpr Command kCommands[] = {
    {"explain", "show graph, kernels and memory of a built-in training step", explain},
};

constexpr Option kOptions[] = {
    {"--help", "", "this text; behind a command, what that takes"},
    {"--version", "", "the version"},
};

std::string usage() {
  std::string text = "usage: tessera COMMAND [OPTIONS]\n\ncommands:\n";
  for (const Command& command : kCommands) text += help_line(command.name, command.help);
  return text + "\noptions:\n" + describe(kOptions);
}

void run_command(std::span<const std::string> words, std::ostream& out) {
  if (words.empty()) throw UsageError("expected a command, got none");
  const auto command = std::ranges::find(kCommands, words[0], &Command::name);
  if (command != std::end(kCommands)) return command->run(words.subspan(1), out);
  if (words[0][0] != '-') throw UsageError("unknown command '" + words[0] + "'");
  const Arguments arguments = parse_arguments("", kOptions, words);
  if (!arguments.words.empty()) throw UsageError("expected a command before options");
  if (arguments.has("--help")) out << usage();
  if (arguments.has("--version")) out << "tessera " << version() << "\n";
}

void write_log(LogLevel level, std::string_view text) {
  if (level == LogLevel::warning) std::cerr << cat("tessera: warning: ", text, "\n");
}

int run(std::span<const std::string> words) {
  try {
    set_log_sink(write_log);
    init();
    run_command(words, std::cout);
    if (!std::cout.flush()) fail("cannot write to standard output");
    return 0;
  } catch (const UsageError& error) {
    std::cerr << "tessera: " << error.what() << "\ntry 'tessera --help'\n";
    return 2;
  } catch (const std::exception& error) {
    std::cerr << "tessera: " << error.what() << "\n";
    return 1;
  }
}

}  // namespace

}  // namespace tessera::cli

int main(int count, char** values) {
  const std::vector<std::string> words(values + std::min(count, 1), values + count);
  return tessera::cli::run(words);
}
