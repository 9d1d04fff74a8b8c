// Device: where tensors live and kernels run, by kind and number: "cpu", "cuda:0", "opencl:1".
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>

namespace tessera {

enum class DeviceKind : uint8_t { cpu, cuda, opencl };
inline constexpr int kDeviceKindCount = 3;

std::string_view name(DeviceKind kind);         // "cuda"
std::string_view vendor_name(DeviceKind kind);  // "CUDA", as it is written in sentences

struct Device {
  DeviceKind kind = DeviceKind::cpu;
  int index = 0;

  constexpr Device() = default;
  constexpr Device(DeviceKind kind_, int index_ = 0) : kind(kind_), index(index_) {}
  // "cuda" is "cuda:0". Throws Error at anything that is no device's name.
  Device(std::string_view text);
  Device(const char* text) : Device(std::string_view(text)) {}
  Device(const std::string& text) : Device(std::string_view(text)) {}

  bool operator==(const Device&) const = default;
};
std::string to_string(Device device);  // the CPU without its number
std::ostream& operator<<(std::ostream& out, Device device);

}  // namespace tessera
