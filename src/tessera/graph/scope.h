// Scope: names where nodes are built, for errors, reports and profiles.
//
//   Scope scope("block3/attention");   // nested scopes join with '/'
#pragma once

#include <cstdint>
#include <source_location>
#include <string>
#include <string_view>

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

}  // namespace tessera
