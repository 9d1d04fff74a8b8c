// Profile: where the time of a stretch of work went. Executors add every kernel, the layers above
// them what the host does in between; whoever profiles reads rows, a table, or all events.
//
// One profile at a time is active in the process (tensor/profile.h has the guard that users take).
// While none is, a span and a run cost one relaxed load each. All of it is thread safe.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "tessera/compile/compile.h"

namespace tessera {

class Profile {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr size_t kMaxEvents = 1'000'000;

  enum class Kind : uint8_t { kernel, run, compile, transfer, trace };

  // What took time, once or many times.
  struct Activity {
    Kind kind = Kind::kernel;
    std::string label;
    std::string device = {};    // of a kernel or a run: "cpu"
    std::string scope = {};     // "mlp/fc1"
    std::string place = {};     // "model.cpp:42"
    std::string operands = {};  // "f32(8, 64), f32(64, 10) -> f32(8, 10)"
    int64_t arena_bytes = 0;    // of temporaries alive while it runs
    double flops = 0;           // of one call; 0: not known
  };

  struct Event {
    int activity;         // index into Contents::activities
    int thread;           // of the host: 0, 1, … in order of appearance
    int64_t begin;        // ns since the profile began
    int64_t nanoseconds;  // what nests inside included
    int64_t bytes;        // moved
  };

  // Time by kernel and scope, or by what the host did. No time is in two rows: a span's row leaves
  // out the kernels and spans inside.
  struct Row {
    Kind kind;
    std::string label, scope;
    int64_t calls = 0, nanoseconds = 0, bytes = 0;
    double flops = 0;
  };

  struct Contents {
    std::vector<Activity> activities;
    std::vector<Event> events;  // in the order in which they ended
    int64_t dropped = 0;        // events that were no longer kept, only added to rows
    int threads = 0;
    int64_t nanoseconds = 0;  // wall time
  };

  explicit Profile(size_t max_events = kMaxEvents);

  uint64_t id() const { return id_; }  // never used twice

  // The index of an equal activity, added where there is none.
  int intern(const Activity& activity);

  // `inside` is the part of the time that other events hold.
  void add(int activity, Clock::time_point begin, Clock::time_point end, int64_t bytes,
           int64_t inside = 0);

  // Ends the wall time, the first time it is called.
  void stop();

  int64_t dropped() const;        // Contents::dropped
  int64_t nanoseconds() const;    // wall time until now or until stop()
  std::vector<Row> rows() const;  // in order of first appearance
  Contents contents() const;      // a copy

 private:
  struct Total {
    int64_t calls = 0, nanoseconds = 0, bytes = 0;
  };

  int64_t wall() const;  // REQUIRES mutex_
  int thread_number();   // REQUIRES mutex_

  const uint64_t id_;
  const size_t max_events_;
  const Clock::time_point begin_ = Clock::now();
  mutable std::mutex mutex_;
  std::unordered_map<std::string, int> index_;  // of activities_, by all their text and numbers
  std::vector<Total> totals_;                   // per activity
  std::unordered_map<std::thread::id, int> threads_;
  int64_t stopped_ = -1;
  Contents contents_;
};

// The rows as a table, longest time first, with the host's remaining time as a row of its own.
std::string to_string(const Profile& profile);

// The active profile, or null. Replacing it returns the one before; whoever got it meanwhile keeps
// it alive.
namespace detail {
extern std::atomic<bool> profiling;
}
inline bool is_profiling() { return detail::profiling.load(std::memory_order_relaxed); }
std::shared_ptr<Profile> active_profile();
std::shared_ptr<Profile> set_active_profile(std::shared_ptr<Profile> profile);

// The time from here to the end of the block, as an event of the host. `label` must be a literal.
class HostSpan {
 public:
  // Of the active profile; nothing where there is none.
  HostSpan(Profile::Kind kind, const char* label, int64_t bytes = 0) {
    if (is_profiling()) begin_active(kind, label, bytes);
  }
  // Of a profile and one of its activities.
  HostSpan(Profile& profile, int activity) { begin(profile, activity, 0); }
  ~HostSpan() {
    if (profile_ != nullptr) end();
  }
  HostSpan(const HostSpan&) = delete;
  HostSpan& operator=(const HostSpan&) = delete;

  // An event that lies inside the innermost span of this thread.
  static void add(Profile& profile, int activity, Profile::Clock::time_point begin,
                  Profile::Clock::time_point end, int64_t bytes);

 private:
  void begin_active(Profile::Kind kind, const char* label, int64_t bytes);
  void begin(Profile& profile, int activity, int64_t bytes);
  void end() noexcept;

  std::shared_ptr<Profile> owned_;
  Profile* profile_ = nullptr;
  HostSpan* outer_ = nullptr;
  int activity_ = 0;
  Profile::Clock::time_point begin_;
  int64_t bytes_ = 0, inside_ = 0;
};

// compile_graph; while a profile is active, with each pass as an event.
Program compile_profiled(const GraphFunction& function, const Target& target,
                         const CompileOptions& options);

// An instruction as an activity. `at` is its index.
Profile::Activity activity_of(const Program& program, size_t at, const Target& target);

}  // namespace tessera
