#include "tessera/bench/json.h"

#include "tessera/io/json.h"

namespace tessera::bench {

namespace {

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(); }

Json number(const std::optional<double>& value) { return value ? number(*value) : Json(); }

Json to_json(const Machine& machine) {
  return Json()
      .set("cpu", machine.cpu)
      .set("description", machine.description)
      .set("instruction_set", machine.isa)
      .set("threads", machine.threads)
      .set("compiler", machine.compiler)
      .set("version", machine.version);
}

Json to_json(const Limits::OfDevice& device) {
  Json products = Json::array();
  for (const Limits::Product& product : device.products) {
    products.push(Json()
                      .set("dtype", name(product.dtype))
                      .set("extent", product.extent)
                      .set("flops", number(product.flops)));
  }
  return Json()
      .set("device", device.device)
      .set("description", device.description)
      .set("copy_bytes", number(device.copy_bytes))
      .set("products", std::move(products));
}

Json to_json(const Limits& limits) {
  Json fma = Json::array();
  for (const Limits::Fma& rate : limits.fma) {
    fma.push(Json()
                 .set("instruction_set", rate.isa)
                 .set("one_thread_flops", number(rate.one_thread))
                 .set("all_threads_flops", number(rate.all_threads)));
  }
  Json devices = Json::array();
  for (const Limits::OfDevice& device : limits.devices) devices.push(to_json(device));
  return Json()
      .set("fma", std::move(fma))
      .set("copy_bytes", number(limits.copy_bytes))
      .set("copy_past_caches", limits.copy_past)
      .set("add_bytes", number(limits.add_bytes))
      .set("add_past_caches", limits.add_past)
      .set("devices", std::move(devices));
}

Json to_json(const Check& check) {
  return Json()
      .set("column", check.column)
      .set("error", number(check.error))
      .set("tolerance", number(check.tolerance))
      .set("elements", check.elements)
      .set("passed", check.passed());
}

Json to_json(const std::optional<Relation>& relation) {
  if (!relation) return {};
  return Json().set("value", number(relation->value)).set("to", relation->to);
}

Json to_json(const Measurement& cell, const Line& line, const Limits& limits) {
  return Json()
      .set("column", cell.column)
      .set("by", cell.by)
      .set("median", number(cell.time.median))
      .set("least", number(cell.time.least))
      .set("p10", number(cell.time.p10))
      .set("p90", number(cell.time.p90))
      .set("spread", number(cell.time.spread()))
      .set("noisy", cell.time.is_noisy())
      .set("samples", cell.time.samples)
      .set("batch", cell.time.batch)
      .set("rate", number(line.rate(cell)))
      .set("share", to_json(line.share(limits, cell)))
      .set("epoch_seconds", number(line.epoch_seconds(cell)));
}

Json to_json(const Line& line, const Limits& limits) {
  constexpr const char* kLimits[] = {"none", "fma", "bytes", "host_bytes"};
  Json checks = Json::array(), cells = Json::array(), facts = Json::object();
  for (const Check& check : line.checks) checks.push(to_json(check));
  for (const Measurement& cell : line.cells) cells.push(to_json(cell, line, limits));
  for (const Fact& fact : line.facts) facts.set(fact.name, number(fact.value));
  return Json()
      .set("suite", line.suite)
      .set("name", line.name)
      .set("passed", line.passed())
      .set("unit", line.unit)
      .set("amount", number(line.amount))
      .set("flops", number(line.flops))
      .set("bytes", number(line.bytes))
      .set("limit", kLimits[size_t(line.limit)])
      .set("dtype", name(line.dtype))
      .set("no_device", line.no_device)
      .set("note", line.note)
      .set("checks", std::move(checks))
      .set("times", std::move(cells))
      .set("facts", std::move(facts))
      .set("ratio", to_json(line.ratio()))
      .set("share", to_json(line.share(limits)));
}

}  // namespace

std::string to_json(const Results& results) {
  Json devices = Json::array(), absent = Json::array(), lines = Json::array(),
       claims = Json::array();
  for (const std::string& device : results.devices) devices.push(device);
  for (const AbsentDevice& one : results.absent) {
    absent.push(Json().set("device", one.device).set("reason", one.reason));
  }
  for (const Line& line : results.lines) lines.push(to_json(line, results.limits));
  for (const Claim& claim : results.claims) {
    claims.push(Json()
                    .set("statement", claim.statement)
                    .set("measured", claim.measured)
                    .set("verdict", name(claim.verdict)));
  }
  return Json()
             .set("format", kJsonFormat)
             .set("machine", to_json(results.machine))
             .set("devices", std::move(devices))
             .set("absent", std::move(absent))
             .set("quick", results.quick)
             .set("left_out", results.left_out)
             .set("limits", to_json(results.limits))
             .set("lines", std::move(lines))
             .set("claims", std::move(claims))
             .set("passed", results.passed())
             .dump(2) +
         "\n";
}

}  // namespace tessera::bench
