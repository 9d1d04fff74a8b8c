// Command-line options as a table.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/error.h"

namespace tessera::cli {

// The command was called in a wrong way; exit status 2.
class UsageError : public Error {
 public:
  using Error::Error;
};

struct Option {
  std::string_view name;   // "--kernels", or "-o"
  std::string_view value;  // empty: a switch; "FILE": any text; "ir|cuda": one of these words
  std::string_view help;
  bool repeats = false;  // may be given several times
};

struct Arguments {
  std::vector<std::string> words;  // those that are no options, in order
  std::multimap<std::string, std::string, std::less<>> options;  // "" for a switch

  bool has(std::string_view option) const { return options.contains(option); }
  std::string value(std::string_view option, std::string_view otherwise) const;
  std::vector<std::string> values(std::string_view option) const;  // all, in order
};

// Takes "--name value", "--name=value" and switches, in any order; "--" ends the options. Throws
// UsageError, prefixed with `command`, at an unknown option, one that is given twice but does not
// repeat, and at a wrong value.
Arguments parse_arguments(std::string_view command, std::span<const Option> table,
                          std::span<const std::string> words);

// The value of an option as a number in [low, high]; throws UsageError, with the command's name.
double real(const Arguments& arguments, std::string_view command, std::string_view option,
            double otherwise, double low, double high);

// Indented lines of the table: option, then help.
std::string describe(std::span<const Option> table);

// One line "  left   right", the right side at a fixed column.
std::string help_line(std::string_view left, std::string_view right);

}  // namespace tessera::cli
