// One OpenCL device in use: its context, an in-order queue per stream, and what is built for it.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tessera/backend/opencl/devices.h"
#include "tessera/backend/opencl/kernels/programs.h"
#include "tessera/runtime/backend.h"

namespace tessera::opencl {

// A flag that a kernel raises when it meets an index out of range, and what that means.
struct IndexCheck {
  Mem flag;                     // i32, 0
  std::string op, what, range;  // "gather", "an index is", "[0, 5)"
};

// Thread safe, as backends are.
class Session {
 public:
  Session(const DeviceInfo& info, std::string name);  // "opencl:0"
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const DeviceInfo& info() const { return info_; }
  const std::string& name() const { return name_; }

  QueueId queue(Stream stream) { return lane(stream).queue; }

  // Throws when the device has no more. Drivers reserve memory when it is first used, which is
  // therefore done at once: a full device is met here and not by some later kernel.
  Mem allocate(int64_t bytes);
  void count_release(int64_t bytes) { allocated_ -= bytes; }

  // Room for what a kernel leaves for its next part; the next call for the stream may take it.
  MemId workspace(Stream stream, int64_t bytes);

  Programs& programs() { return programs_; }

  std::shared_ptr<const IndexCheck> make_check(std::string op, std::string what, std::string range);
  // The stream's next finish() looks at the check.
  void watch(Stream stream, const std::shared_ptr<const IndexCheck>& check);

  // Waits until the stream is empty. Throws when a kernel met an index out of range.
  void finish(Stream stream);

 private:
  struct Lane {
    QueueId queue = nullptr;
    Mem workspace;
    int64_t workspace_bytes = 0;
    std::vector<std::shared_ptr<const IndexCheck>> checks;  // in the order of launches
  };

  Lane& lane(Stream stream);  // stays where it is; calls on one stream are ordered by the caller

  const DeviceInfo info_;
  const std::string name_;
  const ContextId context_;
  Programs programs_;
  std::atomic<int64_t> allocated_{0};
  std::mutex mutex_;
  std::map<int, Lane> lanes_;
};

}  // namespace tessera::opencl
