#include "tessera/data/special_tokens.h"

#include <algorithm>
#include <vector>

#include "tessera/base/error.h"

namespace tessera {

void check_specials(std::span<const std::string> specials) {
  for (const std::string& special : specials) {
    if (special.empty()) fail("specials: expected special tokens of some text, got an empty one");
  }
}

void cut_at_specials(std::string_view text, std::span<const std::string> specials,
                     const std::function<void(size_t, std::string_view)>& plain,
                     const std::function<void(size_t)>& special) {
  std::vector<size_t> next(specials.size());  // where each occurs from `at` on
  for (size_t i = 0; i < specials.size(); ++i) next[i] = text.find(specials[i]);
  for (size_t at = 0; at < text.size();) {
    size_t begin = std::string_view::npos, found = 0;
    for (size_t i = 0; i < specials.size(); ++i) {
      if (next[i] != std::string_view::npos && next[i] < at) next[i] = text.find(specials[i], at);
      const bool longer = next[i] == begin && specials[i].size() > specials[found].size();
      if (next[i] < begin || (longer && begin != std::string_view::npos)) {
        begin = next[i];
        found = i;
      }
    }
    const size_t end = std::min(begin, text.size());
    if (end > at) plain(at, text.substr(at, end - at));
    if (begin == std::string_view::npos) return;
    special(found);
    at = begin + specials[found].size();
  }
}

}  // namespace tessera
