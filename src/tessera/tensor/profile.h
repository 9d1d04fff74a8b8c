// Profiling of a region: time by kernel and scope, what the host did in between, and memory.
//
//   ProfileGuard guard;
//   step(x, y);
//   std::cout << to_string(guard.profile());       // a table, longest first
//   write_trace(guard.profile(), "trace.json");    // for chrome://tracing and Perfetto
//
// Every thread adds to the profile. Kernels are waited for one by one, so that each has its time; a
// step is a little slower than without. What the plain style has not computed yet is not in it:
// read a result, or flush(), before the guard ends.
#pragma once

#include <filesystem>
#include <memory>

#include "tessera/exec/profile.h"

namespace tessera {

// Makes a new profile the active one of the process; the one before is back afterwards. Guards end
// in the reverse order of their beginning.
class ProfileGuard {
 public:
  ProfileGuard();
  ~ProfileGuard() { stop(); }
  ProfileGuard(const ProfileGuard&) = delete;
  ProfileGuard& operator=(const ProfileGuard&) = delete;

  // Ends it early; the profile can still be read.
  void stop();

  const Profile& profile() const { return *profile_; }

 private:
  std::shared_ptr<Profile> profile_, outer_;
  bool stopped_ = false;
};

// Writes all events in Chrome's trace format: a track for each thread of the host, one for each
// device, and the bytes of temporaries alive in each device's arena as a counter. Replaces the file
// all at once; throws when it cannot be written.
void write_trace(const Profile& profile, const std::filesystem::path& path);

}  // namespace tessera
