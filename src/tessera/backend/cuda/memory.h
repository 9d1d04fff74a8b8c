// Memory of a CUDA device with an address that never changes, and pinned memory of the host.
#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include "tessera/backend/cuda/driver.h"

namespace tessera::cuda {

// An address range reserved once; memory is put behind it as it is needed. What was captured in a
// graph stays valid when it grows.
class GrowingMemory {
 public:
  // Reserves nothing yet. `limit` bytes of addresses are taken at the first grow().
  GrowingMemory(DeviceNumber device, int64_t limit) : device_(device), limit_(limit) {}
  ~GrowingMemory();
  GrowingMemory(const GrowingMemory&) = delete;
  GrowingMemory& operator=(const GrowingMemory&) = delete;

  Address address() const { return address_; }
  int64_t bytes() const { return bytes_; }

  // kSuccess, or why there are fewer than `bytes` behind the address. New memory is not cleared.
  Result grow(int64_t bytes);

 private:
  struct Part {
    PhysicalId id;
    int64_t bytes;
  };

  const DeviceNumber device_;
  const int64_t limit_;
  int64_t granularity_ = 0, reserved_ = 0, bytes_ = 0;
  Address address_ = 0;
  std::vector<Part> parts_;
};

// Pinned memory that uploads go through: the caller's bytes are copied into it, and a copy to the
// device is queued that nobody waits for until its room is needed again.
class Staging {
 public:
  explicit Staging(int64_t bytes) : capacity_(bytes) {}
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  // REQUIRES: calls for one object are made by one thread at a time.
  void upload(Address to, const void* from, int64_t bytes, StreamId stream);

 private:
  struct Piece {
    int64_t end;    // in bytes ever handed out
    EventId event;  // recorded behind its copy
  };
  std::byte* take(int64_t bytes);
  EventId take_event();
  void wait_for_oldest();

  const int64_t capacity_;
  std::byte* memory_ = nullptr;
  int64_t begin_ = 0, end_ = 0;  // bytes ever freed and handed out: positions modulo capacity_
  std::deque<Piece> pieces_;
  std::vector<EventId> events_;  // free ones
};

}  // namespace tessera::cuda
