// Copies to, from and on a device, by the backend's own three functions.
#include <cstring>

#include "tessera/bench/movers.h"
#include "tessera/bench/op_case.h"
#include "tessera/bench/suites.h"
#include "tessera/tensor/device.h"

namespace tessera::bench {

namespace {

enum class Way : uint8_t { up, down, across };
constexpr const char* kWays[] = {"host to device", "device to host", "device to device"};

struct Size {
  const char* text;
  int64_t bytes;
};
constexpr Size kSizes[] = {{"4 KiB", 1 << 12},
                           {"64 KiB", 1 << 16},
                           {"1 MiB", 1 << 20},
                           {"16 MiB", 1 << 24},
                           {"256 MiB", 1 << 28}};
constexpr int64_t kSlowBytes = 1 << 28;
constexpr int64_t kCompared = 1 << 20;

// Host memory and two buffers of one device, all of one size.
class Road {
 public:
  Road(Device device, Way way, std::shared_ptr<const std::vector<float>> data)
      : backend_(device_context(device).backend),
        way_(way),
        data_(std::move(data)),
        received_(data_->size()),
        bytes_(int64_t(4 * data_->size())),
        here_(backend_.allocate(bytes_)),
        there_(backend_.allocate(bytes_)) {
    const std::vector<float> nothing(data_->size());
    for (const auto& memory : {here_, there_}) {
      backend_.upload({memory->handle, 0}, nothing.data(), bytes_, Stream{});
    }
    if (way_ != Way::up) backend_.upload({here_->handle, 0}, data_->data(), bytes_, Stream{});
    backend_.synchronize(Stream{});
  }

  void run() {
    const BufferRef here{here_->handle, 0}, there{there_->handle, 0};
    if (way_ == Way::up) backend_.upload(here, data_->data(), bytes_, Stream{});
    if (way_ == Way::down) backend_.download(received_.data(), here, bytes_, Stream{});
    if (way_ == Way::across) backend_.copy(there, here, bytes_, Stream{});
  }

  void wait() { backend_.synchronize(Stream{}); }

  Outputs outputs() {
    run();
    if (way_ != Way::down) {
      const auto& memory = way_ == Way::up ? here_ : there_;
      backend_.download(received_.data(), {memory->handle, 0}, bytes_, Stream{});
    }
    return {received_};
  }

 private:
  Backend& backend_;
  Way way_;
  std::shared_ptr<const std::vector<float>> data_;
  std::vector<float> received_;
  int64_t bytes_;
  std::shared_ptr<Memory> here_, there_;
};

Contender copy_plainly(const std::shared_ptr<const std::vector<float>>& data) {
  const auto to = std::make_shared<std::vector<float>>(data->size());
  const auto run = [data, to] { std::memcpy(to->data(), data->data(), 4 * data->size()); };
  return {.column = std::string(kPlain), .run = run, .outputs = [run, to] {
            run();
            return Outputs{*to};
          }};
}

Contest make_contest(Way way, int64_t bytes, const Setting& setting) {
  const auto data = std::make_shared<const std::vector<float>>(make_data(bytes / 4, -1, 1, 1));
  Expected expected{{}, sample_positions(bytes / 4, kCompared)};
  for (const int64_t at : expected.positions) {
    expected.values.push_back(double((*data)[size_t(at)]));
  }
  Contest contest{{expected}, {}};
  contest.contenders.push_back(copy_plainly(data));
  contest.contenders.push_back(move_bytes({{Move::copy, bytes / 4}}));
  for (const Device device : setting.devices) {
    const auto road = std::make_shared<Road>(device, way, data);
    contest.contenders.push_back({.column = to_string(device),
                                  .run = [road] { road->run(); },
                                  .outputs = [road] { return road->outputs(); }});
    if (device.kind == DeviceKind::cpu) continue;
    contest.contenders.back().wait = [road] { road->wait(); };
  }
  return contest;
}

}  // namespace

std::vector<Case> transfer_cases() {
  std::vector<Case> cases;
  for (const Way way : {Way::up, Way::down, Way::across}) {
    for (const Size& size : kSizes) {
      Case one;
      one.suite = "transfer";
      one.name = cat(kWays[size_t(way)], " ", size.text);
      one.unit = "GB/s";
      one.amount = double(size.bytes) * 1e-9;
      one.bytes = 2 * double(size.bytes);
      one.limit = way == Way::across ? LimitKind::bytes : LimitKind::host_bytes;
      one.slow = size.bytes >= kSlowBytes;
      one.make = [way, bytes = size.bytes](const Setting& setting) {
        return make_contest(way, bytes, setting);
      };
      cases.push_back(std::move(one));
    }
  }
  return cases;
}

}  // namespace tessera::bench
