#include "tessera/bench/training.h"

#include <memory>

#include "tessera/bench/device_guard.h"
#include "tessera/tensor/compiled.h"

namespace tessera::bench {

namespace {

template <class F>
Outputs losses_of(F&& step) {
  Outputs outputs(1);
  for (int i = 0; i < kCheckedSteps; ++i) outputs[0].push_back(float(step()));
  return outputs;
}

Contender contender(const TrainingLine& line, Device device, bool from_host) {
  const DeviceGuard guard(device);
  const auto training = std::make_shared<Training>(line.make());
  Backend& backend = device_context(device).backend;
  const auto step = [training, device, from_host] {
    const DeviceGuard inner(device);
    const EagerGuard compiled(false);
    return training->step(from_host);
  };
  // Reading the loss is part of the way back to the host.
  const auto run = [step, from_host] {
    const Tensor loss = step();
    if (from_host) loss.item();
  };
  Contender made{.column = cat(device, from_host ? kTransfers : ""), .run = run, .outputs = [step] {
                   return losses_of([&] { return step().item(); });
                 }};
  if (device.kind != DeviceKind::cpu) made.wait = [&backend] { backend.synchronize(Stream{}); };
  return made;
}

Contest make_contest(const TrainingLine& line, const Setting& setting) {
  Expected expected{line.losses()};
  expected.tolerance = line.tolerance;
  expected.unit = Unit::element;
  Contest contest{{expected}, {}};
  if (line.plain) {
    const std::function<double()> step = line.plain();
    contest.contenders.push_back({.column = std::string(kPlain),
                                  .run = [step] { step(); },
                                  .outputs = [step] { return losses_of(step); }});
  }
  for (const Device device : setting.devices) {
    contest.contenders.push_back(contender(line, device, false));
    if (device.kind == DeviceKind::cpu) continue;
    contest.contenders.push_back(contender(line, device, true));
  }
  return contest;
}

}  // namespace

Case to_case(TrainingLine line) {
  Case one;
  one.suite = "step";
  one.name = line.name;
  one.unit = line.unit;
  one.amount = line.amount;
  one.flops = line.flops;
  one.limit = LimitKind::fma;
  one.slow = line.slow;
  one.make = [line = std::move(line)](const Setting& setting) {
    return make_contest(line, setting);
  };
  return one;
}

}  // namespace tessera::bench
