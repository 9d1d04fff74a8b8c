#include "tessera/bench/results.h"

#include <algorithm>

namespace tessera::bench {

double Limits::best_fma() const {
  double best = 0;
  for (const Fma& rate : fma) best = std::max(best, rate.all_threads);
  return best;
}

double Limits::OfDevice::product_flops(DType dtype) const {
  double best = 0;
  for (const Product& product : products) {
    if (product.dtype == dtype) best = std::max(best, product.flops);
  }
  return best;
}

const Limits::OfDevice* Limits::find(std::string_view device) const {
  const auto found = std::ranges::find(devices, device, &OfDevice::device);
  return found == devices.end() ? nullptr : &*found;
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

std::optional<double> Line::epoch_seconds(const Measurement& cell) const {
  if (epoch <= 0) return std::nullopt;
  return epoch / rate(cell);
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

std::optional<Relation> Line::share(const Limits& limits, const Measurement& cell) const {
  const bool is_cpu = cell.column == "cpu";
  const Limits::OfDevice* device = limits.find(cell.column);
  if (!is_cpu && device == nullptr) return std::nullopt;
  const double seconds = cell.time.median;
  if (limit == LimitKind::fma) {
    // On the CPU, products of half types run by instructions whose limit is not measured.
    const double own = dtype == DType::f32 ? limits.best_fma() : 0;
    const double most = is_cpu ? own : device->product_flops(dtype);
    if (most <= 0) return std::nullopt;
    const std::string to = is_cpu ? "multiply-adds" : cat("products of ", tessera::name(dtype));
    return Relation{flops / seconds / most, to};
  }
  if (limit == LimitKind::none || (limit == LimitKind::host_bytes && !is_cpu)) return std::nullopt;
  const Measurement* moved = is_cpu ? find(kBytes) : nullptr;
  if (moved != nullptr) return Relation{moved->time.median / seconds, "the same bytes"};
  const double most = is_cpu ? limits.copy_bytes : device->copy_bytes;
  if (most <= 0) return std::nullopt;
  return Relation{bytes / seconds / most, "copy bandwidth"};
}

std::optional<Relation> Line::share(const Limits& limits) const {
  const Measurement* own = subject();
  return own == nullptr ? std::nullopt : share(limits, *own);
}

std::string_view name(Verdict verdict) {
  constexpr std::string_view kNames[] = {"holds", "does not hold", "no device", "not measured"};
  return kNames[size_t(verdict)];
}

bool Results::passed() const {
  return std::all_of(lines.begin(), lines.end(), [](const Line& line) { return line.passed(); });
}

bool Results::is_absent(std::string_view column) const {
  return std::ranges::any_of(absent, [&](const AbsentDevice& one) {
    return column == one.device || column == one.device + std::string(kTransfers);
  });
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
