#include "tessera/cli/explain_json.h"

#include "tessera/graph/scope.h"
#include "tessera/io/json.h"

namespace tessera::cli {

namespace {

Json to_json(const Report& report) {
  Json peak = Json::array();
  for (const MemoryItem& item : report.at_peak) {
    peak.push(Json().set("label", item.label).set("bytes", item.bytes).set("scope", item.scope));
  }
  Json timeline = Json::array(), by_scope = Json::array();
  for (const int64_t bytes : report.timeline) timeline.push(bytes);
  for (const ScopeBytes& item : report.peak_by_scope) {
    by_scope.push(Json().set("scope", item.scope).set("bytes", item.bytes));
  }
  return Json()
      .set("nodes", report.nodes)
      .set("kernels", report.kernels)
      .set("generated", report.generated)
      .set("copies", report.copies)
      .set("donated", report.donated)
      .set("rematerialized", report.rematerialized)
      .set("recomputed", report.recomputed)
      .set("bytes_moved", report.bytes_moved)
      .set("external_bytes", report.external_bytes)
      .set("output_bytes", report.output_bytes)
      .set("temporary_bytes", report.temporary_bytes)
      .set("peak_bytes", report.peak_bytes)
      .set("peak_kernel", report.peak_at)
      .set("at_peak", std::move(peak))
      .set("peak_by_scope", std::move(by_scope))
      .set("timeline", std::move(timeline));
}

Json to_json(const Instruction& instruction) {
  Json shape = Json::array();
  const OperandView& result = instruction.call.operands.back();
  for (const int64_t extent : result.view.shape) shape.push(extent);
  return Json()
      .set("label", instruction.label)
      .set("generated", instruction.call.ir != nullptr)
      .set("scope", scope_path(instruction.scope))
      .set("dtype", name(result.dtype))
      .set("shape", std::move(shape))
      .set("bytes", instruction.bytes);
}

}  // namespace

std::string explain_json(std::string_view model, const Program& program) {
  Json kernels = Json::array();
  for (const Instruction& instruction : program.instructions) kernels.push(to_json(instruction));
  return Json()
             .set("model", model)
             .set("report", to_json(program.report))
             .set("kernels", std::move(kernels))
             .dump(2) +
         "\n";
}

}  // namespace tessera::cli
