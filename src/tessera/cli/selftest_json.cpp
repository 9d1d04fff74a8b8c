#include <cmath>

#include "tessera/cli/selftest_report.h"
#include "tessera/io/json.h"

namespace tessera::cli {

namespace {

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(); }

Json numbers(const std::vector<float>& values) {
  Json list = Json::array();
  for (const float value : values) list.push(number(double(value)));
  return list;
}

Json to_json(const DeviceFacts& device) {
  Json document;
  document.set("name", device.name).set("description", device.description);
  if (!device.instruction_set.empty()) {
    document.set("instruction_set", device.instruction_set).set("threads", device.threads);
  }
  document.set("memory_bytes", device.memory_bytes);
  if (device.free_bytes) document.set("free_bytes", *device.free_bytes);
  return document;
}

Json to_json(const MemoryCheck& check, bool timed) {
  Json document;
  document.set("bytes", check.bytes);
  if (timed) {
    document.set("upload_seconds", check.upload_seconds)
        .set("copy_seconds", check.copy_seconds)
        .set("download_seconds", check.download_seconds);
  }
  return document.set("passed", check.passed());
}

Json to_json(const SmallProduct& check) {
  return Json()
      .set("a", numbers(check.a))
      .set("b", numbers(check.b))
      .set("product", numbers(check.actual))
      .set("passed", check.passed());
}

Json to_json(const OpCheck& check) {
  Json dtypes = Json::array();
  for (const DType dtype : check.dtypes) dtypes.push(name(dtype));
  Json document;
  document.set("op", name(check.op))
      .set("dtypes", std::move(dtypes))
      .set("cases", check.cases)
      .set("max_error", number(check.max_error))
      .set("mean_error", number(check.mean_error()))
      .set("tolerance", number(check.tolerance))
      .set("passed", check.passed());
  if (!check.passed()) document.set("failure", check.failure);
  return document;
}

Json to_json(const LargeProduct& check) {
  return Json()
      .set("size", check.size)
      .set("seconds", check.seconds)
      .set("gflops", number(check.gflops()))
      .set("samples", check.samples)
      .set("max_error", number(check.max_error))
      .set("mean_error", number(check.mean_error))
      .set("tolerance", number(check.tolerance))
      .set("passed", check.passed());
}

}  // namespace

std::string selftest_json(const SelftestReport& report) {
  Json ops = Json::array();
  for (const OpCheck& check : report.ops) ops.push(to_json(check));
  Json document;
  document.set("device", to_json(report.device))
      .set("round_trip", to_json(report.memory, report.timed))
      .set("product", to_json(report.small))
      .set("ops", std::move(ops))
      .set("ops_passed", report.ops_passed());
  if (report.large) document.set("matmul", to_json(*report.large));
  return document.set("passed", report.passed()).dump(2) + "\n";
}

}  // namespace tessera::cli
