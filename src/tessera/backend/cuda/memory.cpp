#include "tessera/backend/cuda/memory.h"

#include <algorithm>
#include <cstring>

#include "tessera/base/error.h"

namespace tessera::cuda {

namespace {

int64_t round_up(int64_t bytes, int64_t to) { return (bytes + to - 1) / to * to; }

}  // namespace

GrowingMemory::~GrowingMemory() {
  if (address_ == 0) return;
  const Driver& d = driver();
  if (bytes_ > 0) d.mem_unmap(address_, size_t(bytes_));
  for (const Part& part : parts_) d.mem_release(part.id);
  d.address_free(address_, size_t(reserved_));
}

Result GrowingMemory::grow(int64_t wanted) {
  if (wanted <= bytes_) return kSuccess;
  const Driver& d = driver();
  AllocationKind kind;
  kind.location.id = device_;
  if (address_ == 0) {
    size_t granularity = 0;
    if (const Result result = d.mem_granularity(&granularity, &kind, 0)) return result;
    granularity_ = int64_t(granularity);
    reserved_ = round_up(std::max(limit_, wanted), granularity_);
    Address made = 0;
    if (const Result result = d.address_reserve(&made, size_t(reserved_), 0, 0, 0)) return result;
    address_ = made;
  }
  const int64_t added = round_up(wanted, granularity_) - bytes_;
  if (bytes_ + added > reserved_) return kOutOfMemory;
  PhysicalId id = 0;
  if (const Result result = d.mem_create(&id, size_t(added), &kind, 0)) return result;
  const Address at = address_ + Address(bytes_);
  Access access;
  access.location = kind.location;
  Result result = d.mem_map(at, size_t(added), 0, id, 0);
  if (result == kSuccess) {
    result = d.mem_access(at, size_t(added), &access, 1);
    if (result != kSuccess) d.mem_unmap(at, size_t(added));
  }
  if (result != kSuccess) {
    d.mem_release(id);
    return result;
  }
  parts_.push_back({id, added});
  bytes_ += added;
  return kSuccess;
}

Staging::~Staging() {
  while (!pieces_.empty()) wait_for_oldest();
  for (const EventId event : events_) driver().event_destroy(event);
  if (memory_ != nullptr) driver().host_free(memory_);
}

void Staging::wait_for_oldest() {
  const Piece piece = pieces_.front();
  driver().event_synchronize(piece.event);  // a fault shows at the next synchronisation
  events_.push_back(piece.event);
  begin_ = piece.end;
  pieces_.pop_front();
}

EventId Staging::take_event() {
  if (events_.empty()) {
    EventId event = nullptr;
    expect_success(driver().event_create(&event, kEventWithoutTiming), "creating an event");
    return event;
  }
  const EventId event = events_.back();
  events_.pop_back();
  return event;
}

// Room in one piece: what is left at the end of the ring is skipped where it is too small.
std::byte* Staging::take(int64_t bytes) {
  if (memory_ == nullptr) {
    void* made = nullptr;
    expect_success(driver().host_alloc(&made, size_t(capacity_), 0), "pinning memory");
    memory_ = static_cast<std::byte*>(made);
  }
  const int64_t left = capacity_ - end_ % capacity_;
  if (left < bytes) end_ += left;
  while (end_ + bytes - begin_ > capacity_) {
    if (pieces_.empty()) {
      begin_ = end_;
    } else {
      wait_for_oldest();
    }
  }
  std::byte* const at = memory_ + end_ % capacity_;
  end_ += bytes;
  return at;
}

void Staging::upload(Address to, const void* from, int64_t bytes, StreamId stream) {
  const auto* source = static_cast<const std::byte*>(from);
  const int64_t largest = capacity_ / 4;  // so that copies overlap with filling the next piece
  while (bytes > 0) {
    const int64_t part = std::min(bytes, largest);
    std::byte* const room = take(part);
    std::memcpy(room, source, size_t(part));
    expect_success(driver().copy_to_device(to, room, size_t(part), stream), "an upload");
    const EventId event = take_event();
    expect_success(driver().event_record(event, stream), "recording an event");
    pieces_.push_back({end_, event});
    to += Address(part);
    source += part;
    bytes -= part;
  }
}

}  // namespace tessera::cuda
