#include "tessera/cli/suggest.h"

#include <algorithm>

#include "tessera/base/error.h"

namespace tessera::cli {

namespace {

constexpr int kShortestStart = 3;  // letters that say enough to complete a word from

// Without the dashes of an option.
size_t letters(std::string_view word) {
  return word.size() - std::min(word.size(), word.find_first_not_of('-'));
}

}  // namespace

int edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<int>> cost(a.size() + 1, std::vector<int>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) cost[i][0] = int(i);
  for (size_t j = 0; j <= b.size(); ++j) cost[0][j] = int(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      const int replaced = cost[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
      }
    }
  }
  return cost[a.size()][b.size()];
}

std::string did_you_mean(std::string_view word, const std::vector<std::string_view>& candidates) {
  const int written = int(letters(word));
  int least = std::min(written, 1 + std::max(1, written / 3));
  std::string_view nearest;
  for (const std::string_view candidate : candidates) {
    const bool begun = written >= kShortestStart && candidate.starts_with(word);
    const int distance = begun ? 0 : edit_distance(word, candidate);
    if (distance >= least) continue;
    nearest = candidate;
    least = distance;
  }
  return nearest.empty() ? "" : cat("; did you mean '", nearest, "'?");
}

}  // namespace tessera::cli
