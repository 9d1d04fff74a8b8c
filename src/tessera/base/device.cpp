#include "tessera/base/device.h"

#include <charconv>
#include <ostream>

#include "tessera/base/error.h"

namespace tessera {

namespace {

struct KindRow {
  std::string_view name, vendor;
};

constexpr KindRow kKinds[kDeviceKindCount] = {
    {"cpu", "CPU"},
    {"cuda", "CUDA"},
    {"opencl", "OpenCL"},
};

}  // namespace

std::string_view name(DeviceKind kind) { return kKinds[size_t(kind)].name; }
std::string_view vendor_name(DeviceKind kind) { return kKinds[size_t(kind)].vendor; }

Device::Device(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view word = text.substr(0, colon);
  int found = 0;
  while (found < kDeviceKindCount && kKinds[found].name != word) ++found;
  bool fits = found < kDeviceKindCount;
  if (colon != std::string_view::npos) {
    const char *begin = text.data() + colon + 1, *end = text.data() + text.size();
    const auto [last, error] = std::from_chars(begin, end, index);
    fits = fits && begin < end && error == std::errc() && last == end && *begin != '-';
  }
  if (!fits) fail("device: expected cpu, cuda:N or opencl:N, got '", text, "'");
  kind = DeviceKind(found);
}

std::string to_string(Device device) {
  if (device.kind == DeviceKind::cpu && device.index == 0) return "cpu";
  return cat(name(device.kind), ':', device.index);
}

std::ostream& operator<<(std::ostream& out, Device device) { return out << to_string(device); }

}  // namespace tessera
