// A file descriptor that closes itself, and the one form of the system's errors.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include "tessera/base/error.h"

namespace tessera {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() { close(); }
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  // False when the system reports a delayed write error. The descriptor is gone either way.
  bool close() {
    const int fd = std::exchange(fd_, -1);
    return fd < 0 || ::close(fd) == 0;
  }

 private:
  int fd_;
};

// Writes all of `bytes` from byte `at` of the file on. 0 or the system's error code.
inline int write_at(const Descriptor& file, int64_t at, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(file.get(), bytes.data(), bytes.size(), off_t(at));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    bytes = bytes.subspan(size_t(written));
    at += written;
  }
  return 0;
}

// `doing` is "map: cannot read" or the like.
[[noreturn]] inline void fail_system(std::string_view doing, const std::filesystem::path& path,
                                     int code) {
  fail(doing, " '", path.native(), "': ", std::generic_category().message(code));
}

}  // namespace tessera
