#pragma once

#include <string_view>

namespace tessera {

// Whether all of `text` fits the pattern, in which '*' stands for any characters, also for none.
bool matches_pattern(std::string_view pattern, std::string_view text);

}  // namespace tessera
