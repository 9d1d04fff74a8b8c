// One CUDA device in use: its context, a stream per Stream, and what is compiled for it.
//
//   TESSERA_CUDA_SYNC  1: every kernel is waited for, so that a fault names the one that caused it
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tessera/backend/cuda/devices.h"
#include "tessera/backend/cuda/memory.h"
#include "tessera/backend/gpu/session.h"

namespace tessera::cuda {

// A compiled module. It goes with the last kernel of it.
class Module {
 public:
  explicit Module(ModuleId id) : id_(id) {}
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  ModuleId id() const { return id_; }

 private:
  ModuleId id_;
};

// The latest of the kernels that a fault may come from.
class Suspects {
 public:
  void add(const std::string& op);
  void clear();
  std::string text() const;  // "gelu, softmax"

 private:
  std::vector<std::string> names_;
  bool had_more_ = false;
};

// Thread safe, as backends are.
class Session : public gpu::Session {
 public:
  Session(int index, const DeviceInfo& info, std::string name);  // "cuda:0"
  ~Session() override;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const DeviceInfo& info() const { return info_; }
  const std::string& architecture() const { return architecture_; }  // "sm_90a"

  bool starts_early() const { return info_.major >= 9; }  // early_start.h

  // Makes the device's context that of the calling thread. Throws when the device is lost.
  void enter() const;

  StreamId stream(Stream stream) { return lane(stream).id; }

  Address allocate(int64_t bytes);  // throws when the device has no more
  void free(Address address);       // waits for what may use it
  void wait();                      // until every stream is empty; faults are met elsewhere
  std::unique_ptr<GrowingMemory> reserve(int64_t bytes);  // with so many bytes behind it already
  void say_out_of_memory(int64_t bytes) const;            // throws
  int64_t free_bytes() const;

  void upload(Address to, const void* from, int64_t bytes, Stream stream);
  void download(void* to, Address from, int64_t bytes, Stream stream);  // waits

  // Waits until the stream is empty. Throws when a kernel met an index out of range, or failed.
  void finish(Stream stream);

  // What is launched between the two is kept, not run. end_recording gives null and says why in
  // `reason` where the work cannot be recorded. False: every kernel is waited for, none is kept.
  bool begin_recording(Stream stream);
  std::unique_ptr<gpu::GpuExecutable> end_recording(Stream stream, std::string& reason);

  // Called behind every launch.
  void launched(Result result, const std::string& op, Stream stream);

  const gpu::DeviceTraits& device() const override { return traits_; }
  std::unique_ptr<gpu::Kernel> build(const std::string& op, const std::string& source,
                                     const std::string& entry) override;
  void* workspace(Stream stream, int64_t bytes) override;
  void copy(BufferRef to, BufferRef from, int64_t bytes, Stream stream) override;
  std::shared_ptr<const gpu::IndexCheck> make_check(std::string op, std::string what,
                                                    std::string range) override;
  void watch(Stream, const std::shared_ptr<const gpu::IndexCheck>&) override {}

 private:
  struct Check;
  struct Lane {
    StreamId id = nullptr;
    std::unique_ptr<GrowingMemory> workspace;
    std::unique_ptr<Staging> staging;
    Suspects launched;  // since the last wait
    bool recording = false;
    Suspects recorded;
  };

  Lane& lane(Stream stream);  // stays where it is; calls on one stream are ordered by the caller
  std::shared_ptr<const Module> module(const std::string& op, const std::string& source);
  std::shared_ptr<const Module> make_module(const std::string& op, const std::string& source) const;
  std::shared_ptr<const Module> load(const std::string& binary) const;  // null where refused
  std::string compile(const std::string& op, const std::string& source) const;
  void say_lost(Result result, const std::string& op, const Lane& lane);  // throws
  void raise_checks();

  const DeviceInfo info_;
  gpu::DeviceTraits traits_;
  DeviceNumber number_ = 0;
  ContextId context_ = nullptr;
  std::string architecture_;
  const bool waits_always_;
  std::atomic<bool> lost_{false};

  std::mutex mutex_;  // of what follows
  std::map<int, Lane> lanes_;
  std::unordered_map<std::string, std::weak_ptr<const Module>> modules_;  // by source
  std::unordered_set<std::string> building_;  // sources: other threads wait for them
  std::condition_variable built_;

  // Flags of checks lie in the host's memory, where the device writes them and a look costs
  // nothing.
  std::mutex check_mutex_;
  std::vector<void*> flag_pages_;
  std::vector<int32_t*> free_flags_;
  std::vector<Check*> checks_;
};

}  // namespace tessera::cuda
