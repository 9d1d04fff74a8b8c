// A library opened at run time: absent is an expected case, not an error.
#pragma once

#include <optional>
#include <span>
#include <string>

namespace tessera {

class SharedLibrary {
 public:
  // The first of `names` that the loader finds. It stays loaded until the process ends.
  static std::optional<SharedLibrary> open(std::span<const char* const> names);

  const std::string& name() const { return name_; }

  // The function called `symbol` as an F*, or nullptr.
  template <class F>
  F* function(const char* symbol) const {
    return reinterpret_cast<F*>(find(symbol));
  }

 private:
  SharedLibrary(std::string name, void* handle) : name_(std::move(name)), handle_(handle) {}
  void* find(const char* symbol) const;

  std::string name_;
  void* handle_;
};

}  // namespace tessera
