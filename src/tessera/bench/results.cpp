#include "tessera/bench/results.h"

#include <algorithm>

namespace tessera::bench {

double Limits::best_fma() const {
  double best = 0;
  for (const Fma& rate : fma) best = std::max(best, rate.all_threads);
  return best;
}

bool Line::passed() const {
  return std::all_of(checks.begin(), checks.end(), [](const Check& c) { return c.passed(); });
}

const Measurement* Line::find(std::string_view column) const {
  const auto cell = std::ranges::find(cells, column, &Measurement::column);
  return cell == cells.end() ? nullptr : &*cell;
}

const Measurement* Line::subject() const {
  const auto cell =
      std::ranges::find_if(cells, [](const Measurement& m) { return !is_yardstick(m.column); });
  return cell == cells.end() ? nullptr : &*cell;
}

std::optional<double> Line::fact(std::string_view wanted) const {
  const auto found = std::ranges::find(facts, wanted, &Fact::name);
  if (found == facts.end()) return std::nullopt;
  return found->value;
}

std::optional<Relation> Line::ratio() const {
  const Measurement* own = subject();
  if (own == nullptr) return std::nullopt;
  for (const std::string_view column : {kLibrary, kPlain}) {
    const Measurement* other = find(column);
    if (other != nullptr) return Relation{other->time.median / own->time.median, other->column};
  }
  return std::nullopt;
}

std::optional<Relation> Line::share(const Limits& limits) const {
  const Measurement* own = subject();
  if (own == nullptr || own->column != "cpu") return std::nullopt;
  const double seconds = own->time.median;
  if (limit == LimitKind::fma && limits.best_fma() > 0) {
    return Relation{flops / seconds / limits.best_fma(), "multiply-adds"};
  }
  if (limit != LimitKind::bytes) return std::nullopt;
  const Measurement* moved = find(kBytes);
  if (moved != nullptr) return Relation{moved->time.median / seconds, "the same bytes"};
  if (limits.copy_bytes <= 0) return std::nullopt;
  return Relation{bytes / seconds / limits.copy_bytes, "copy bandwidth"};
}

std::string_view name(Verdict verdict) {
  constexpr std::string_view kNames[] = {"holds", "does not hold", "no device", "not measured"};
  return kNames[size_t(verdict)];
}

bool Results::passed() const {
  return std::all_of(lines.begin(), lines.end(), [](const Line& line) { return line.passed(); });
}

const Line* Results::find(std::string_view suite, std::string_view line) const {
  const auto found = std::ranges::find_if(
      lines, [&](const Line& known) { return known.suite == suite && known.name == line; });
  return found == lines.end() ? nullptr : &*found;
}

std::vector<std::string> Results::suites() const {
  std::vector<std::string> names;
  for (const Line& line : lines) {
    if (std::ranges::find(names, line.suite) == names.end()) names.push_back(line.suite);
  }
  return names;
}

}  // namespace tessera::bench
