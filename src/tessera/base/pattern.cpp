#include "tessera/base/pattern.h"

namespace tessera {

bool matches_pattern(std::string_view pattern, std::string_view text) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == text;
  if (!text.starts_with(pattern.substr(0, star))) return false;
  pattern.remove_prefix(star + 1);
  text.remove_prefix(star);
  // The earliest place for each part between stars leaves the most for the others.
  while (true) {
    const size_t next = pattern.find('*');
    if (next == std::string_view::npos) return text.ends_with(pattern);
    const size_t found = text.find(pattern.substr(0, next));
    if (found == std::string_view::npos) return false;
    text.remove_prefix(found + next);
    pattern.remove_prefix(next + 1);
  }
}

}  // namespace tessera
