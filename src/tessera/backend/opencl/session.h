// One OpenCL device in use: its context, an in-order queue per stream, and what is built for it.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tessera/backend/gpu/session.h"
#include "tessera/backend/opencl/devices.h"
#include "tessera/backend/opencl/kernels/programs.h"

namespace tessera::opencl {

struct IndexCheck : gpu::IndexCheck {
  Mem mem;  // the flag's
};

// Thread safe, as backends are.
class Session : public gpu::Session {
 public:
  Session(const DeviceInfo& info, std::string name);  // "opencl:0"
  ~Session() override;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const DeviceInfo& info() const { return info_; }
  const std::string& name() const { return device_.name; }
  const gpu::DeviceTraits& device() const override { return device_; }

  QueueId queue(Stream stream) { return lane(stream).queue; }

  // Throws when the device has no more. Drivers reserve memory when it is first used, which is
  // therefore done at once: a full device is met here and not by some later kernel.
  Mem allocate(int64_t bytes);
  void count_release(int64_t bytes) { allocated_ -= bytes; }

  std::unique_ptr<gpu::Kernel> build(const std::string& op, const std::string& source,
                                     const std::string& entry) override;
  void* workspace(Stream stream, int64_t bytes) override;
  void copy(BufferRef to, BufferRef from, int64_t bytes, Stream stream) override;
  std::shared_ptr<const gpu::IndexCheck> make_check(std::string op, std::string what,
                                                    std::string range) override;
  void watch(Stream stream, const std::shared_ptr<const gpu::IndexCheck>& check) override;

  Programs& programs() { return programs_; }

  // Waits until the stream is empty. Throws when a kernel met an index out of range.
  void finish(Stream stream);

 private:
  struct Lane {
    QueueId queue = nullptr;
    Mem workspace;
    int64_t workspace_bytes = 0;
    std::vector<std::shared_ptr<const gpu::IndexCheck>> checks;  // in the order of launches
  };

  Lane& lane(Stream stream);  // stays where it is; calls on one stream are ordered by the caller

  const DeviceInfo info_;
  const gpu::DeviceTraits device_;
  const ContextId context_;
  Programs programs_;
  std::atomic<int64_t> allocated_{0};
  std::mutex mutex_;
  std::map<int, Lane> lanes_;
};

}  // namespace tessera::opencl
