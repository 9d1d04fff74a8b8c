#include "tessera/cli/options.h"

#include <algorithm>
#include <charconv>

#include "tessera/cli/suggest.h"

namespace tessera::cli {

namespace {

constexpr size_t kHelpColumn = 28;

template <class... Args>
[[noreturn]] void usage_error(const Args&... args) {
  throw UsageError(cat(args...));
}

bool is_choice(std::string_view choices, std::string_view word) {
  for (size_t start = 0; start <= choices.size();) {
    const size_t end = std::min(choices.find('|', start), choices.size());
    if (choices.substr(start, end - start) == word) return true;
    start = end + 1;
  }
  return false;
}

class Parser {
 public:
  Parser(std::string_view command, std::span<const Option> table,
         std::span<const std::string> words)
      : command_(command), table_(table), words_(words) {}

  Arguments parse() {
    bool options_ended = false;
    while (next_ < words_.size()) {
      const std::string& word = words_[next_++];
      if (!options_ended && word == "--") {
        options_ended = true;
      } else if (options_ended || word.size() < 2 || word[0] != '-') {
        result_.words.push_back(word);
      } else {
        parse_option(word);
      }
    }
    return std::move(result_);
  }

 private:
  void parse_option(std::string_view word) {
    const size_t equals = word.find('=');
    const bool attached = equals != std::string_view::npos;
    const std::string_view name = word.substr(0, equals);
    const auto option = std::ranges::find(table_, name, &Option::name);
    if (option == table_.end()) {
      usage_error(prefix(), "unknown option '", name, "'", did_you_mean(name, names()));
    }
    std::string value;
    if (option->value.empty()) {
      if (attached) usage_error(prefix(), name, " takes no value");
    } else {
      if (!attached && next_ == words_.size()) {
        usage_error(prefix(), name, " expects ", option->value, ", got nothing");
      }
      value = attached ? std::string(word.substr(equals + 1)) : words_[next_++];
      check_value(*option, value);
    }
    if (!option->repeats && result_.has(name)) usage_error(prefix(), name, " is given twice");
    result_.options.emplace(name, value);
  }

  void check_value(const Option& option, const std::string& value) const {
    const bool is_list = option.value.find('|') != std::string_view::npos;
    if (value.empty() || (is_list && !is_choice(option.value, value))) {
      usage_error(prefix(), option.name, " expects ", option.value, ", got '", value, "'");
    }
  }

  std::vector<std::string_view> names() const {
    std::vector<std::string_view> result;
    for (const Option& option : table_) result.push_back(option.name);
    return result;
  }

  std::string prefix() const { return command_.empty() ? "" : cat(command_, ": "); }

  std::string_view command_;  // in front of errors; empty: the program itself
  std::span<const Option> table_;
  std::span<const std::string> words_;
  size_t next_ = 0;
  Arguments result_;
};

}  // namespace

std::string Arguments::value(std::string_view option, std::string_view otherwise) const {
  const auto it = options.find(option);
  return it != options.end() ? it->second : std::string(otherwise);
}

std::vector<std::string> Arguments::values(std::string_view option) const {
  std::vector<std::string> found;
  const auto [first, last] = options.equal_range(option);
  for (auto it = first; it != last; ++it) found.push_back(it->second);
  return found;
}

double real(const Arguments& arguments, std::string_view command, std::string_view option,
            double otherwise, double low, double high) {
  if (!arguments.has(option)) return otherwise;
  const std::string text = arguments.value(option, "");
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_number = code == std::errc() && end == text.data() + text.size();
  if (!is_number || !(value >= low && value <= high)) {
    usage_error(command, ": ", option, " expects a number from ", low, " to ", high, ", got '",
                text, "'");
  }
  return value;
}

Arguments parse_arguments(std::string_view command, std::span<const Option> table,
                          std::span<const std::string> words) {
  return Parser(command, table, words).parse();
}

std::string help_line(std::string_view left, std::string_view right) {
  std::string line = cat("  ", left);
  line.resize(std::max(line.size() + 1, kHelpColumn), ' ');
  return cat(line, right, "\n");
}

std::string describe(std::span<const Option> table) {
  std::string text;
  for (const Option& option : table) {
    const std::string space = option.value.empty() ? "" : " ";
    text += help_line(cat(option.name, space, option.value), option.help);
  }
  return text;
}

}  // namespace tessera::cli
