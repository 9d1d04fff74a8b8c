#include <algorithm>
#include <iomanip>
#include <ostream>
#include <sstream>
#include <thread>

#include "tessera/backend/cpu/isa.h"
#include "tessera/backend/cuda/devices.h"
#include "tessera/cli/command.h"
#include "tessera/io/json.h"
#include "tessera/runtime/registry.h"

namespace tessera::cli {

namespace {

constexpr Option kOptions[] = {
    {"--json", "", "the result as a JSON document"},
};

constexpr std::string_view kExamples[] = {
    "tessera devices",
    "tessera devices --json",
};

struct Found {
  std::string name;         // "opencl:0"
  std::string description;  // in words, with the driver
  int64_t memory_bytes = 0;
  std::string unusable;  // why; empty: tensors can be there
};

struct Missing {
  DeviceKind kind;
  std::string reason, remedy;
};

// What to do about an absence whose reason ends so.
struct Remedy {
  DeviceKind kind;
  std::string_view reason, text;
};
constexpr Remedy kRemedies[] = {
    {DeviceKind::opencl, "not found", "apt-get install ocl-icd-libopencl1 pocl-opencl-icd"},
    {DeviceKind::opencl, "no platform",
     "apt-get install pocl-opencl-icd (for the CPU), or the OpenCL driver of the GPU's maker"},
    {DeviceKind::opencl, "no device of OpenCL 1.2 and up",
     "apt-get install pocl-opencl-icd (for the CPU), or the OpenCL driver of the GPU's maker"},
    {DeviceKind::cuda, "not found",
     "with an NVIDIA card: apt-get install nvidia-driver (Debian, non-free), ubuntu-drivers "
     "install (Ubuntu)"},
    {DeviceKind::cuda, "no device",
     "nvidia-smi says whether the driver sees a card; a container needs to be given it"},
};

std::string remedy(DeviceKind kind, const std::string& reason) {
  for (const Remedy& row : kRemedies) {
    if (row.kind == kind && reason.ends_with(row.reason)) return std::string(row.text);
  }
  return "";
}

struct Report {
  std::vector<Found> found;
  std::vector<Missing> missing;

  void add_missing(DeviceKind kind, const std::string& reason) {
    missing.push_back({kind, reason, remedy(kind, reason)});
  }
};

void add_devices_of_backends(Report& report) {
  for (const Device device : available_devices()) {
    Found found{to_string(device), "", 0, ""};
    try {
      const Target& target = backend(device).target();
      found.description = target.description;
      found.memory_bytes = target.memory_bytes;
    } catch (const Error& error) {
      found.unusable = error.what();
    }
    report.found.push_back(std::move(found));
  }
}

// Cards that the driver knows and the backend cannot use.
void add_cuda_devices_of_driver(Report& report) {
  const cuda::Devices& devices = cuda::devices();
  for (size_t i = 0; i < devices.list.size(); ++i) {
    const cuda::DeviceInfo& info = devices.list[i];
    report.found.push_back({to_string(Device(DeviceKind::cuda, int(i))),
                            cuda::describe(info, devices.driver), info.memory_bytes,
                            why_absent(DeviceKind::cuda)});
  }
}

Report look() {
  Report report;
  add_devices_of_backends(report);
  for (const DeviceKind kind : {DeviceKind::cuda, DeviceKind::opencl}) {
    const std::string absent = why_absent(kind);
    if (absent.empty()) continue;
    if (kind == DeviceKind::cuda && !cuda::devices().list.empty()) {
      add_cuda_devices_of_driver(report);
    } else {
      report.add_missing(kind, absent);
    }
  }
  return report;
}

std::string gib(int64_t bytes) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(1) << double(bytes) / double(1 << 30) << " GiB";
  return out.str();
}

std::string instruction_sets() {
  std::string text;
  for (const cpu::Isa isa : cpu::available_isas()) {
    text += cat(text.empty() ? "" : ", ", cpu::name(isa), isa == cpu::isa() ? " (in use)" : "");
  }
  return text;
}

std::string line(std::string label, std::string_view text) {
  label.resize(12, ' ');
  return cat(label, text, "\n");
}

std::string to_text(const Report& report) {
  std::string text;
  for (const Found& found : report.found) {
    text += line(found.name, found.description.empty() ? "cannot be used" : found.description);
    if (found.memory_bytes > 0) text += line("", "memory: " + gib(found.memory_bytes));
    if (found.name == "cpu") {
      text += line("", cat("logical processors: ", std::thread::hardware_concurrency(),
                           ", instruction sets: ", instruction_sets()));
    }
    if (!found.unusable.empty()) text += line("", "not used: " + found.unusable);
  }
  for (const Missing& missing : report.missing) {
    text += cat("no ", vendor_name(missing.kind), " device: ", missing.reason,
                missing.remedy.empty() ? "" : ": ", missing.remedy, "\n");
  }
  return text;
}

std::string to_json(const Report& report) {
  Json devices = Json::array(), absent = Json::array();
  for (const Found& found : report.found) {
    Json device = Json().set("name", found.name);
    device.set("description", found.description).set("memory_bytes", found.memory_bytes);
    if (found.name == "cpu") {
      Json sets = Json::array();
      for (const cpu::Isa isa : cpu::available_isas()) sets.push(cpu::name(isa));
      device.set("logical_processors", std::thread::hardware_concurrency());
      device.set("instruction_sets", sets).set("instruction_set", cpu::name(cpu::isa()));
    }
    device.set("usable", found.unusable.empty());
    if (!found.unusable.empty()) device.set("reason", found.unusable);
    devices.push(device);
  }
  for (const Missing& missing : report.missing) {
    absent.push(Json()
                    .set("kind", name(missing.kind))
                    .set("reason", missing.reason)
                    .set("remedy", missing.remedy.empty() ? Json() : Json(missing.remedy)));
  }
  return Json().set("devices", devices).set("absent", absent).dump(2) + "\n";
}

Status run_devices(const Arguments& arguments, Console& console) {
  if (!arguments.words.empty()) {
    throw UsageError(cat("devices: expected options alone, got '", arguments.words[0], "'"));
  }
  const Report report = look();
  console.out << (arguments.has("--json") ? to_json(report) : to_text(report));
  return Status::done;
}

}  // namespace

constexpr Command kDevices = {"devices",  "list the devices there are, and why others are not",
                              "",         kOptions,
                              kExamples,  nullptr,
                              run_devices};

}  // namespace tessera::cli
