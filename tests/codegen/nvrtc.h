// NVIDIA's run-time compiler, which needs no GPU: what it makes of a text for an architecture.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace tessera {

struct CompiledText {
  bool compiled = false;
  std::string log;
  int registers = 0;    // the most of any entry
  int spill_bytes = 0;  // stored and loaded, of all entries
};

class Nvrtc {
 public:
  Nvrtc();  // opens the library, where it is installed
  bool is_there() const { return destroy_ != nullptr; }

  // `architecture`: "sm_90a".
  CompiledText compile(const std::string& source, const std::string& architecture) const;

 private:
  // nvrtcProgram is an opaque pointer.
  using Program = void*;
  int (*create_)(Program*, const char*, const char*, int, const char* const*,
                 const char* const*) = nullptr;
  int (*compile_)(Program, int, const char* const*) = nullptr;
  int (*log_size_)(Program, size_t*) = nullptr;
  int (*log_)(Program, char*) = nullptr;
  int (*destroy_)(Program*) = nullptr;
};

// Fills in the numbers from what ptxas says with its option -v.
void read_usage(CompiledText& text);

}  // namespace tessera
