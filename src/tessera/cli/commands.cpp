// The table of commands, their help, and the dispatch that turns failures into exit status.
#include <algorithm>
#include <ostream>

#include "tessera/cli/command.h"
#include "tessera/cli/profile.h"
#include "tessera/cli/suggest.h"
#include "tessera/cli/version.h"
#include "tessera/tessera.h"

namespace tessera::cli {

namespace {

constexpr const Command* kCommands[] = {&kBench,    &kCache,   &kCompress, &kDevices,
                                        &kEval,     &kExplain, &kGenerate, &kInfo,
                                        &kMaintain, &kSearch,  &kSelftest, &kTrain};

// Behind every command.
constexpr Option kCommon[] = {
    {"--profile", "FILE", "write a Chrome trace to FILE and a table of kernels to standard error"},
    {"--help", "", "this text"},
};

constexpr Option kOptions[] = {
    {"--help", "", "this text; behind a command, what that takes"},
    {"--version", "", "version, compiler, build type and backends"},
    {"--json", "", "with --version: the same as a JSON document"},
};

std::string name_of(const Command* command) { return std::string(command->name); }

const Command& find_command(const std::string& word) {
  const auto command = std::ranges::find(kCommands, word, name_of);
  if (command != std::end(kCommands)) return **command;
  std::vector<std::string_view> names;
  for (const Command* known : kCommands) names.push_back(known->name);
  throw UsageError(cat("unknown command '", word, "'", did_you_mean(word, names)));
}

Status run_options(std::span<const std::string> words, Console& console) {
  const Arguments arguments = parse_arguments("", kOptions, words);
  if (!arguments.words.empty()) throw UsageError("expected a command before options");
  if (arguments.has("--help")) {
    console.out << usage();
  } else if (arguments.has("--version")) {
    console.out << (arguments.has("--json") ? version_json() : version_text());
  } else {
    throw UsageError("--json expects a command or --version before it");
  }
  return Status::done;
}

Status run_command(const Command& command, std::span<const std::string> words, Console& console) {
  std::vector<Option> options(command.options.begin(), command.options.end());
  options.insert(options.end(), std::begin(kCommon), std::end(kCommon));
  const Arguments arguments = parse_arguments(command.name, options, words);
  if (arguments.has("--help")) {
    console.out << usage(command);
    return Status::done;
  }
  if (!arguments.has("--profile")) return command.run(arguments, console);
  CommandProfile profile(arguments.value("--profile", ""));
  const Status status = command.run(arguments, console);
  profile.finish(console);
  return status;
}

// Runs what `words` ask for; `command` is then its name, for a hint at the right help.
Status dispatch(std::span<const std::string> words, Console& console, std::string_view& command) {
  if (words.empty()) throw UsageError("expected a command, got none");
  if (words[0].starts_with('-')) return run_options(words, console);
  const Command& found = find_command(words[0]);
  command = found.name;
  return run_command(found, words.subspan(1), console);
}

}  // namespace

std::span<const Command* const> commands() { return kCommands; }

std::string usage() {
  std::string list;
  for (const Command* command : kCommands) list += help_line(command->name, command->help);
  return cat("usage: tessera COMMAND [OPTIONS]\n\ncommands:\n", list, "\noptions:\n",
             describe(kOptions), "\nexit status: 0 done, 1 failed, 2 called in a wrong way\n");
}

std::string usage(const Command& command) {
  const std::string operands = command.operands.empty() ? "" : cat(command.operands, " ");
  const std::string topics = command.topics == nullptr ? "" : cat("\n", command.topics());
  std::string examples;
  for (const std::string_view example : command.examples) examples += cat("  ", example, "\n");
  return cat("usage: tessera ", command.name, " ", operands, "[OPTIONS]\n\n", command.help, "\n",
             topics, "\noptions:\n", describe(command.options), describe(kCommon), "\nexamples:\n",
             examples);
}

Status run(std::span<const std::string> words, Console& console) {
  std::string_view command;
  try {
    init();
    const Status status = dispatch(words, console, command);
    if (!console.out.flush()) fail("cannot write to standard output");
    return status;
  } catch (const UsageError& error) {
    console.err << "tessera: " << error.what() << "\ntry 'tessera "
                << (command.empty() ? "" : cat(command, " ")) << "--help'\n";
    return Status::wrong_call;
  } catch (const std::exception& error) {
    console.err << "tessera: " << error.what() << "\n";
    return Status::failed;
  }
}

}  // namespace tessera::cli
