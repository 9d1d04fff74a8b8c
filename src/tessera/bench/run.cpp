#include "tessera/bench/run.h"

#include <algorithm>

#include "tessera/bench/device_guard.h"

namespace tessera::bench {

namespace {

void keep_best(std::vector<Measurement>& cells, Measurement one) {
  const auto same = std::ranges::find(cells, one.column, &Measurement::column);
  if (same == cells.end()) {
    cells.push_back(std::move(one));
  } else if (one.time.median < same->time.median) {
    *same = std::move(one);
  }
}

bool has_gpu(const Setting& setting) {
  return std::ranges::any_of(setting.devices,
                             [](Device device) { return device.kind != DeviceKind::cpu; });
}

}  // namespace

Line run_case(const Case& one, const Setting& setting, const Policy& policy) {
  const DeviceGuard host((Device()));  // operands and references, also where there is a GPU
  Line line;
  line.suite = one.suite;
  line.name = one.name;
  line.unit = one.unit;
  line.amount = one.amount;
  line.limit = one.limit;
  line.flops = one.flops;
  line.bytes = one.bytes;
  line.dtype = one.dtype;
  line.epoch = one.epoch;
  line.no_device = one.needs_gpu && !has_gpu(setting);
  if (line.no_device) return line;
  const Contest contest = one.make(setting);
  line.facts = contest.facts;
  line.note = contest.note;
  for (double* work : {&line.amount, &line.flops, &line.bytes}) *work *= contest.scale;
  for (const Contender& contender : contest.contenders) {
    if (!contender.outputs) continue;
    line.checks.push_back(compare(contender.column, contender.outputs(), contest.expected));
  }
  if (!line.passed()) return line;
  std::vector<Work> works;
  for (const Contender& contender : contest.contenders) {
    works.push_back({contender.run, contender.settle_seconds, contender.wait});
  }
  Policy own = policy;
  own.most_seconds = one.most_seconds;
  const std::vector<Summary> times = measure(works, own);
  for (size_t i = 0; i < times.size(); ++i) {
    keep_best(line.cells, {contest.contenders[i].column, contest.contenders[i].by, times[i]});
  }
  return line;
}

void run_cases(std::span<const Case> cases, const Setting& setting, const Observer& observer,
               Results& results) {
  const Policy policy = setting.quick ? quick_policy() : full_policy();
  size_t number = 0;
  for (const Case& one : cases) {
    ++number;
    if (setting.quick && one.slow) {
      ++results.left_out;
      continue;
    }
    observer.starting(one, number, cases.size());
    results.lines.push_back(run_case(one, setting, policy));
    observer.finished(results.lines.back());
  }
}

}  // namespace tessera::bench
