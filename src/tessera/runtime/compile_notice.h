// One line for the user who waits while a first run compiles its kernels.
#pragma once

#include <cstdint>
#include <string_view>

namespace tessera {

// Tells once per process, by base/log.h, that kernels are being compiled for a device and where
// they are kept. A backend calls it before it compiles what binary_cache() did not hold.
void note_compilation(std::string_view device);

// While it lives, its thread prepares several kernels: note_compilation() then says how many there
// may be to compile. Batches of one thread end in reverse order.
class CompileBatch {
 public:
  explicit CompileBatch(int64_t remaining);
  ~CompileBatch();
  CompileBatch(const CompileBatch&) = delete;
  CompileBatch& operator=(const CompileBatch&) = delete;

 private:
  const int64_t remaining_;
  const CompileBatch* outer_;
  friend void note_compilation(std::string_view device);
};

}  // namespace tessera
