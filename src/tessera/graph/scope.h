// Where nodes are built, for errors, reports and profiles: a scope that the user names, and the
// line of the user's source.
//
//   Scope scope("block3/attention");   // nested scopes join with '/'
#pragma once

#include <cstdint>
#include <source_location>
#include <string>
#include <string_view>

#include "tessera/base/error.h"

namespace tessera {

class Scope {
 public:
  explicit Scope(std::string_view name,
                 std::source_location where = std::source_location::current());
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  uint32_t previous_;
};

uint32_t current_scope();                    // of this thread; 0 outside any scope
std::string scope_path(uint32_t scope);      // "mlp/fc1"; "" for 0
std::string scope_location(uint32_t scope);  // "model.cpp:42"; "" for 0

// A line of a source file; the name is a literal of the compiler's, which lives for ever.
struct SourceLine {
  const char* file = nullptr;
  uint32_t line = 0;
};

// The line that this thread's nodes are put down to; the public functions set it (tensor/tensor.h).
SourceLine current_line();
void set_current_line(SourceLine line);

// " (in mlp/fc1, model.cpp:42)", as errors end; the line is the scope's own where none is known,
// and the text is empty where neither is.
std::string origin(uint32_t scope, SourceLine line);

// Throws an Error that ends with the present origin.
template <class... Args>
[[noreturn]] void fail_here(const Args&... args) {
  fail(args..., origin(current_scope(), current_line()));
}

// f(); an Error that it throws ends with the present origin.
template <class F>
auto with_origin(F f) {
  try {
    return f();
  } catch (const Error& error) {
    fail_here(error.what());
  }
}

// Nodes built meanwhile are put down to this place: a gradient to where its op was.
class OriginGuard {
 public:
  OriginGuard(uint32_t scope, SourceLine line);
  ~OriginGuard();
  OriginGuard(const OriginGuard&) = delete;
  OriginGuard& operator=(const OriginGuard&) = delete;

 private:
  uint32_t scope_;
  SourceLine line_;
};

}  // namespace tessera
