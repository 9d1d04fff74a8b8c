// How failures are told apart.
//   A user's mistake    -> tessera::Error, thrown by fail(); the text says what was expected and
//   got. A bug in Tessera    -> TESSERA_ASSERT, which aborts with file and line. An expected
//   absence -> std::optional.
// Nothing below cli/ prints or exits.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

namespace tessera {

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Joins anything that has an operator<< or a to_string found by argument-dependent lookup.
template <class... Args>
std::string cat(const Args&... args) {
  std::ostringstream out;
  [[maybe_unused]] auto put = [&out](const auto& arg) {
    if constexpr (requires { out << arg; }) {
      out << arg;
    } else {
      out << to_string(arg);
    }
  };
  (put(args), ...);
  return out.str();
}

template <class... Args>
[[noreturn]] void fail(const Args&... args) {
  throw Error(cat(args...));
}

// Aborts: a broken invariant of our own, never a user's mistake.
[[noreturn]] void assertion_failed(const char* expression, const char* file, int line);

}  // namespace tessera

#define TESSERA_ASSERT(expression)     \
  ((expression) ? static_cast<void>(0) \
                : ::tessera::assertion_failed(#expression, __FILE__, __LINE__))
