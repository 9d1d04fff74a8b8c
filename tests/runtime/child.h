// Work in a process of its own.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

namespace tessera {

// The child exits with what `work` returns, or with 100 when it throws.
inline pid_t start_child(const std::function<int()>& work) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  int status = 100;
  try {
    status = work();
  } catch (...) {
  }
  ::_exit(status);
}

// Its exit status; -1 when a signal ended it.
inline int wait_for_child(pid_t child) {
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace tessera
