// What a mistyped word was meant to be.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tessera::cli {

// How many letters must be added, removed, replaced or swapped with their neighbour.
int edit_distance(std::string_view a, std::string_view b);

// "; did you mean 'explain'?" with the candidate nearest to `word`: one it begins, or one that is
// at most a third of its letters away. Empty when there is none.
std::string did_you_mean(std::string_view word, const std::vector<std::string_view>& candidates);

}  // namespace tessera::cli
