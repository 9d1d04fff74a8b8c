#include "tessera/cli/console.h"

#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <span>
#include <string>

#include "tessera/io/atomic_file.h"

namespace tessera::cli {

bool shows_progress(bool is_terminal, const char* term) {
  const std::string_view kind = term == nullptr ? "" : term;
  return is_terminal && !kind.empty() && kind != "dumb";
}

// An empty NO_COLOR counts as unset: no-color.org.
bool shows_colors(bool is_terminal, const char* term, const char* no_color) {
  return shows_progress(is_terminal, term) && (no_color == nullptr || *no_color == '\0');
}

std::string log_line(LogLevel level, std::string_view text, const char* quiet) {
  if (level == LogLevel::warning) return cat("tessera: warning: ", text, "\n");
  const bool shown = level == LogLevel::info && (quiet == nullptr || *quiet == '\0');
  return shown ? cat("tessera: ", text, "\n") : "";
}

Console process_console() {
  const char* term = std::getenv("TERM");
  Console console{std::cout, std::cerr};
  console.colors = shows_colors(::isatty(STDOUT_FILENO) == 1, term, std::getenv("NO_COLOR"));
  console.progress = shows_progress(::isatty(STDERR_FILENO) == 1, term);
  return console;
}

std::string Console::colored(std::string_view text, Color color) const {
  if (!colors) return std::string(text);
  return cat(color == Color::red ? "\x1b[31m" : "\x1b[32m", text, "\x1b[0m");
}

void write_result(const std::filesystem::path& path, std::string_view text) {
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

void Progress::show(std::string_view text) {
  if (!console_.progress) return;
  console_.err << "\r\x1b[K" << text << std::flush;
  shown_ = true;
}

void Progress::clear() {
  if (shown_) console_.err << "\r\x1b[K" << std::flush;
  shown_ = false;
}

}  // namespace tessera::cli
