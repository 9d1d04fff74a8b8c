// A full disk for a test.
#pragma once

#include <sys/resource.h>

#include <csignal>

namespace tessera {

// The disk of this process is full beyond `bytes` per file, for the life of this object.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    before_handler_ = std::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit = {bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, before_handler_);
  }

 private:
  rlimit before_ = {};
  void (*before_handler_)(int) = SIG_DFL;
};

}  // namespace tessera
