#include "tessera/cli/bench.h"

#include <algorithm>
#include <ostream>

#include "tessera/bench/claims.h"
#include "tessera/bench/html.h"
#include "tessera/bench/json.h"
#include "tessera/bench/limits.h"
#include "tessera/bench/run.h"
#include "tessera/bench/suites.h"
#include "tessera/bench/text.h"
#include "tessera/cli/lattice_bench.h"
#include "tessera/cli/suggest.h"
#include "tessera/cli/version.h"
#include "tessera/io/atomic_file.h"
#include "tessera/runtime/registry.h"
#include "tessera/tensor/device.h"
#include "tessera/tessera.h"

namespace tessera::cli {

namespace {

using bench::Results;

constexpr Option kOptions[] = {
    {"--device", "LIST", "devices with a column, such as cpu,opencl:0 (default: all but OpenCL's)"},
    {"--json", "FILE", "write the results as a JSON document; -: to standard output, no tables"},
    {"--html", "FILE", "write a page with charts that needs no network"},
    {"--quick", "", "few samples, and without the lines that take long"},
    {"--small", "", "lattice: 1,000 vectors of 64 dimensions alone"},
    {"--large", "", "lattice: 10,000 vectors of 128 dimensions alone"},
};

// It has no lines that are checked and timed, so it is no suite of bench/.
constexpr std::string_view kLattice = "lattice";

constexpr std::string_view kExamples[] = {
    "tessera bench transfer --quick",
    "tessera bench elementwise --quick --device cpu",
    "tessera bench transfer --quick --json -",
    "tessera bench lattice --small",
};

std::string topics() {
  std::string text = "suites (default: all):\n";
  for (const bench::Suite& suite : bench::suites()) text += help_line(suite.name, suite.help);
  return cat(text, "\nby itself:\n",
             help_line(kLattice, "vectors compressed: training, times, sizes and their recall"));
}

void check_suites(const std::vector<std::string>& words) {
  std::string list;
  std::vector<std::string_view> names;
  for (const bench::Suite& suite : bench::suites()) {
    list += cat(list.empty() ? "" : "|", suite.name);
    names.push_back(suite.name);
  }
  names.push_back(kLattice);
  for (const std::string& word : words) {
    if (std::ranges::find(names, word) == names.end()) {
      throw UsageError(cat("bench: expected ", list, "|", kLattice, ", got '", word, "'",
                           did_you_mean(word, names)));
    }
    if (word == kLattice && words.size() > 1) throw UsageError("bench: lattice runs by itself");
  }
}

void add_device(const std::string& name, std::vector<Device>& devices) {
  try {
    const Device device(name);
    if (std::ranges::find(devices, device) != devices.end()) fail("device ", name, " comes twice");
    devices.push_back(device);
  } catch (const Error& error) {
    throw UsageError(cat("bench: ", error.what()));
  }
}

// Whether there are devices of its kind.
bool is_present(Device device) { return why_absent(device.kind).empty(); }

// Throws where no device is there, or fewer of its kind than its number says.
std::vector<Device> choose_devices(const Arguments& arguments) {
  std::vector<Device> devices;
  if (!arguments.has("--device")) {
    // An OpenCL device may be this very CPU, many times slower: only where it is asked for.
    devices = available_devices();
    std::erase_if(devices, [](Device device) { return device.kind == DeviceKind::opencl; });
  } else {
    const std::string list = arguments.value("--device", "");
    for (size_t start = 0; start <= list.size();) {
      const size_t end = std::min(list.find(',', start), list.size());
      add_device(list.substr(start, end - start), devices);
      start = end + 1;
    }
  }
  // What is asked for and cannot be there has columns that say so, if there is anything to compare.
  const bool has_any = std::ranges::any_of(devices, is_present);
  for (const Device device : devices) {
    if (!has_any || is_present(device)) device_context(device);
  }
  return devices;
}

// Before minutes of work: that the files can be written, and are two.
void check_files(const BenchOptions& options) {
  if (!options.json.empty() && options.json == options.html) {
    throw UsageError(cat("bench: --json and --html are one file, '", options.json, "'"));
  }
  if (options.html == "-") throw UsageError("bench: --html expects a file, got '-'");
  if (!options.json.empty() && options.json != "-") AtomicFile{options.json};
  if (!options.html.empty()) AtomicFile{options.html};
}

class Bench {
 public:
  Bench(const BenchOptions& options, Console& console)
      : options_(options), console_(console), progress_(console) {}

  Status run(std::span<const bench::Case> cases) {
    results_.quick = options_.quick;
    for (const Device device : options_.devices) add_column(device);
    results_.machine = bench::describe_machine();
    results_.machine.compiler = compiler();
    results_.machine.version = version();
    print(machine_text(results_));
    progress_.show("limits of the machine");
    results_.limits = bench::measure_limits(options_.quick);
    for (const Device device : present_) {
      if (device.kind == DeviceKind::cpu) continue;
      progress_.show(cat("limits of ", device));
      results_.limits.devices.push_back(bench::measure_device(device, options_.quick));
    }
    print(limits_text(results_.limits));
    run_cases(cases, {present_, options_.quick}, observer(), results_);
    if (options_.claims) {
      results_.claims = bench::judge_claims(results_);
      print(claims_text(results_.claims));
    }
    print(footer_text(results_));
    write_files();
    return results_.passed() ? Status::done : Status::failed;
  }

 private:
  void add_column(Device device) {
    results_.devices.push_back(to_string(device));
    if (is_present(device)) {
      present_.push_back(device);
    } else {
      results_.absent.push_back({to_string(device), why_absent(device.kind)});
    }
  }

  bench::Observer observer() {
    return {[this](const bench::Case& one, size_t number, size_t count) {
              progress_.show(cat(number, "/", count, " ", one.suite, ": ", one.name));
            },
            [this](const bench::Line& line) {
              if (line.suite != suite_) print(bench::header_text(line.suite, results_.devices));
              suite_ = line.suite;
              print(line_text(line, results_));
            }};
  }

  void write_files() {
    if (options_.json == "-") {
      progress_.clear();
      console_.out << to_json(results_);
    } else if (!options_.json.empty()) {
      write_result(options_.json, to_json(results_));
    }
    if (!options_.html.empty()) write_result(options_.html, to_html(results_));
  }

  // Each line as soon as it is known: a run takes minutes.
  void print(const std::string& text) {
    if (options_.json == "-") return;
    progress_.clear();
    console_.out << text << std::flush;
  }

  const BenchOptions& options_;
  Console& console_;
  Progress progress_;
  Results results_;
  std::vector<Device> present_;
  std::string suite_;
};

Status run_bench(const Arguments& arguments, Console& console) {
  check_suites(arguments.words);
  const std::vector<std::string>& asked = arguments.words;
  if (std::ranges::find(asked, kLattice) != asked.end()) {
    return run_lattice_bench(arguments, console);
  }
  for (const std::string_view option : {"--small", "--large"}) {
    if (arguments.has(option)) throw UsageError(cat("bench: only lattice takes ", option));
  }
  BenchOptions options;
  options.devices = choose_devices(arguments);
  options.quick = arguments.has("--quick");
  options.claims = asked.empty() || std::ranges::find(asked, "claims") != asked.end();
  options.json = arguments.value("--json", "");
  options.html = arguments.value("--html", "");
  check_files(options);
  return run_lines(options, bench::chosen_cases(bench::all_cases(), asked), console);
}

}  // namespace

Status run_lines(const BenchOptions& options, std::span<const bench::Case> cases,
                 Console& console) {
  return Bench(options, console).run(cases);
}

constexpr Command kBench = {"bench",       "measure speed: every line checked, then timed",
                            "[SUITE ...]", kOptions,
                            kExamples,     topics,
                            run_bench};

}  // namespace tessera::cli
