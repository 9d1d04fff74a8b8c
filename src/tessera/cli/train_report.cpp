#include "tessera/cli/train_report.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iomanip>
#include <map>
#include <span>
#include <sstream>

#include "tessera/bench/format.h"
#include "tessera/bench/html.h"
#include "tessera/bench/limits.h"
#include "tessera/bench/svg.h"
#include "tessera/cli/lattice_words.h"

namespace tessera::cli {

namespace {

constexpr size_t kScopes = 6;    // that the table of memory names
constexpr size_t kPoints = 800;  // of a curve at most; losses of more steps are averaged

std::string row(std::string_view label, int64_t bytes) {
  std::ostringstream out;
  out << "  " << std::left << std::setw(28) << label << std::right << std::setw(12)
      << size_text(bytes) << '\n';
  return out.str();
}

// By the first two parts of their paths, "gpt/h.0", largest first.
std::vector<ScopeBytes> folded(const std::vector<ScopeBytes>& scopes) {
  std::map<std::string, int64_t> bytes;
  for (const ScopeBytes& one : scopes) {
    const size_t first = one.scope.find('/');
    const size_t second = first == std::string::npos ? first : one.scope.find('/', first + 1);
    bytes[one.scope.substr(0, second)] += one.bytes;
  }
  std::vector<ScopeBytes> result;
  for (const auto& [scope, sum] : bytes) result.push_back({scope, sum});
  std::ranges::stable_sort(result, std::greater(), &ScopeBytes::bytes);
  return result;
}

std::string clock_text(double seconds) {
  const auto whole = int64_t(std::ceil(std::max(seconds, 0.0)));
  std::ostringstream out;
  out << std::setfill('0');
  if (whole >= 3600) out << whole / 3600 << ':' << std::setw(2);
  out << whole / 60 % 60 << ':' << std::setw(2) << whole % 60;
  return out.str();
}

bench::Curve training_curve(const std::vector<StepRecord>& records) {
  bench::Curve curve{"own", "training", {}};
  const size_t group = (records.size() + kPoints - 1) / kPoints;
  for (size_t first = 0; first < records.size(); first += group) {
    const size_t end = std::min(first + group, records.size());
    double sum = 0;
    for (size_t i = first; i < end; ++i) sum += records[i].loss;
    curve.points.push_back({double(records[end - 1].step), sum / double(end - first)});
  }
  return curve;
}

}  // namespace

std::string memory_table(const MemoryPlan& plan) {
  std::string text = "memory of a step\n";
  text += row("parameters", plan.parameters);
  text += row("optimiser", plan.optimizer);
  if (plan.sums > 0) text += row("sums of gradients", plan.sums);
  if (plan.averages > 0) text += row("averages", plan.averages);
  text += row("batches and results", plan.batches);
  text += row("temporaries", plan.temporaries);
  const std::vector<ScopeBytes> scopes = folded(plan.peak_by_scope);
  for (size_t i = 0; i < std::min(kScopes, scopes.size()); ++i) {
    const ScopeBytes& item = scopes[i];
    text += row(cat("  ", item.scope.empty() ? "(no scope)" : item.scope), item.bytes);
  }
  return text + row("in all", plan.total());
}

double measured_peak(Device device, DType dtype) {
  if (device.kind == DeviceKind::cpu) return bench::measure_limits(true).best_fma();
  return bench::measure_device(device, true, std::span(&dtype, 1)).product_flops(dtype);
}

std::string progress_line(const StepRecord& now, const StepRecord& before, const Rates& rates,
                          int64_t memory) {
  const double steps = double(now.step - before.step);
  const double per_step = steps > 0 ? (now.seconds - before.seconds) / steps : 0;
  const double tokens = per_step > 0 ? rates.tokens_per_step / per_step : 0;
  std::ostringstream out;
  out << "step " << now.step << "/" << rates.steps << std::fixed << std::setprecision(4)
      << "  loss " << now.loss;
  if (now.eval_loss) out << "  eval " << *now.eval_loss;
  out << "  lr " << std::defaultfloat << std::setprecision(3) << now.lr << "  "
      << bench::rate_text(tokens, "tokens/s");
  if (rates.peak > 0) {
    out << "  " << bench::percent_text(tokens * rates.flops_per_token / rates.peak) << " of "
        << bench::rate_text(rates.peak / 1e9, "GFLOP/s");
  }
  out << "  " << size_text(memory) << "  " << clock_text(per_step * double(rates.steps - now.step))
      << " left";
  return out.str();
}

std::string loss_page(const std::vector<StepRecord>& records, const std::string& title) {
  std::vector<bench::Curve> curves = {training_curve(records)};
  bench::Curve held_out{"library", "held out", {}};
  for (const StepRecord& record : records) {
    if (record.eval_loss) held_out.points.push_back({double(record.step), *record.eval_loss});
  }
  if (!held_out.points.empty()) curves.push_back(std::move(held_out));
  return bench::page(cat("Loss of ", title), bench::line_chart("loss over steps", "steps", curves));
}

}  // namespace tessera::cli
