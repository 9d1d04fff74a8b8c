// Cuts a text at the special tokens it holds.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace tessera {

// Throws for an empty one, which would be everywhere.
void check_specials(std::span<const std::string> specials);

// Calls plain(offset, part) for every part between special tokens that is not empty, and
// special(index) for every special token, in the order of the text. Where several begin at one
// place, the longest counts. REQUIRES: none of them is empty.
void cut_at_specials(std::string_view text, std::span<const std::string> specials,
                     const std::function<void(size_t, std::string_view)>& plain,
                     const std::function<void(size_t)>& special);

}  // namespace tessera
