// Where a command writes: results to `out`, everything else to `err`.
#pragma once

#include <filesystem>
#include <iosfwd>
#include <string>
#include <string_view>

#include "tessera/base/log.h"

namespace tessera::cli {

enum class Color { red, green };

struct Console {
  std::ostream& out;
  std::ostream& err;
  bool colors = false;    // `out` is a terminal that shows colours
  bool progress = false;  // `err` is a terminal on which a line can be written over

  // `text` in a colour where there are colours, else as it is.
  std::string colored(std::string_view text, Color color) const;
};

// Of this process: standard output and standard error. Colours need a terminal, a TERM other than
// "dumb", and no NO_COLOR; progress needs the first two.
Console process_console();

// A result as a file, all at once.
void write_result(const std::filesystem::path& path, std::string_view text);

// One line on a terminal that is written over, and gone with this object. Silent elsewhere.
class Progress {
 public:
  explicit Progress(Console& console) : console_(console) {}
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void show(std::string_view text);
  void clear();  // before something else is written

 private:
  Console& console_;
  bool shown_ = false;
};

// Whether a stream shows colours, or a line that is written over. The strings are the environment's
// NO_COLOR and TERM; null: unset.
bool shows_progress(bool is_terminal, const char* term);
bool shows_colors(bool is_terminal, const char* term, const char* no_color);

// What standard error shows of a message of the library; empty: nothing. `quiet` is the
// environment's TESSERA_QUIET, which leaves warnings alone; null or empty: unset.
std::string log_line(LogLevel level, std::string_view text, const char* quiet);

}  // namespace tessera::cli
