#include "tessera/cli/selftest.h"

#include <algorithm>
#include <ostream>
#include <span>

#include "tessera/backend/cpu/isa.h"
#include "tessera/base/thread_pool.h"
#include "tessera/cli/selftest_report.h"
#include "tessera/tensor/device.h"

namespace tessera::cli {

namespace {

constexpr int64_t kRoundTripBytes = int64_t(64) << 20;
constexpr int64_t kProductSize = 1024;
constexpr int kProductRuns = 9;
constexpr size_t kRowsAtOnce = 16;  // their kernels must fit the cache of an ExecContext

constexpr Option kOptions[] = {
    {"--device", "DEVICE", "cpu, cuda:N or opencl:N (default: where tensors are made)"},
    {"--quick", "", "f32 alone (where an op takes it) and nothing timed"},
    {"--json", "", "the result as a JSON document"},
};

constexpr std::string_view kExamples[] = {
    "tessera selftest",
    "tessera selftest --device cpu --quick",
    "tessera selftest --quick --json",
};

DeviceFacts facts_of(Device device, Backend& backend) {
  const Target& target = backend.target();
  const std::optional<int64_t> free = backend.free_bytes();
  DeviceFacts facts{to_string(device),
                    target.description,
                    "",
                    0,
                    target.memory_bytes,
                    free ? free : free_memory(target)};
  if (device.kind == DeviceKind::cpu) {
    facts.instruction_set = cpu::name(cpu::isa());
    facts.threads = 1 + thread_pool().workers();
  }
  return facts;
}

// The device that --device names, from now on the default one: that is where ops then run.
Device choose_device(const Arguments& arguments) {
  if (!arguments.has("--device")) return default_device();
  Device device;
  try {
    device = Device(arguments.value("--device", ""));
  } catch (const Error& error) {
    throw UsageError(cat("selftest: ", error.what()));
  }
  set_default_device(device);
  return device;
}

class Selftest {
 public:
  Selftest(const SelftestOptions& options, const Evaluate& evaluate, Console& console)
      : options_(options),
        evaluate_(evaluate),
        backend_(device_context(options.device).backend),
        console_(console),
        progress_(console) {}

  Status run() {
    report_.timed = !options_.quick;
    report_.device = facts_of(options_.device, backend_);
    print(device_text(report_.device));
    progress_.show("memory");
    report_.memory = check_memory(backend_, kRoundTripBytes);
    print(memory_text(report_.memory, report_.timed, console_));
    report_.small = check_small_product();
    print(small_product_text(report_.small, console_));
    check_ops();
    if (!options_.quick) check_large();
    if (options_.json) print_result(selftest_json(report_));
    return report_.passed() ? Status::done : Status::failed;
  }

 private:
  void check_ops() {
    print(ops_header());
    const auto dtypes_of = options_.quick ? first_dtype : dtypes_taken;
    for (const Row& row : rows()) {
      progress_.show(cat("op ", report_.ops.size() + 1, "/", rows().size(), " ", name(row.op)));
      if (report_.ops.size() % kRowsAtOnce == 0) prepare_rows(report_.ops.size(), dtypes_of);
      report_.ops.push_back(check_op(row, dtypes_of(row), evaluate_));
      print(op_text(report_.ops.back(), console_));
    }
    print(ops_summary(report_, console_));
  }

  // The kernels of several rows are compiled side by side where that is faster.
  void prepare_rows(size_t first, std::vector<DType> (*dtypes_of)(const Row&)) {
    if (!backend_.target().compiles_at_once) return;
    const std::span<const Row> left = std::span(rows()).subspan(first);
    prepare_ops(left.first(std::min(kRowsAtOnce, left.size())), dtypes_of);
  }

  void check_large() {
    progress_.show(cat("matmul ", kProductSize));
    report_.large = check_large_product(kProductSize, kProductRuns);
    print(large_product_text(*report_.large, console_));
  }

  // With --json the one document at the end is the result.
  void print(const std::string& text) {
    if (!options_.json) print_result(text);
  }
  void print_result(const std::string& text) {
    progress_.clear();
    console_.out << text;
  }

  const SelftestOptions options_;
  const Evaluate& evaluate_;
  Backend& backend_;
  Console& console_;
  Progress progress_;
  SelftestReport report_;
};

Status run_selftest(const Arguments& arguments, Console& console) {
  if (!arguments.words.empty()) {
    throw UsageError(cat("selftest: expected options alone, got '", arguments.words[0], "'"));
  }
  const SelftestOptions options{choose_device(arguments), arguments.has("--quick"),
                                arguments.has("--json")};
  return selftest(options, evaluate_on_device, console);
}

}  // namespace

Status selftest(const SelftestOptions& options, const Evaluate& evaluate, Console& console) {
  return Selftest(options, evaluate, console).run();
}

constexpr Command kSelftest = {"selftest",  "test a device: memory, every op, and a large product",
                               "",          kOptions,
                               kExamples,   nullptr,
                               run_selftest};

}  // namespace tessera::cli
