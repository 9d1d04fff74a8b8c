// NVRTC, NVIDIA's run-time compiler, opened at run time.
//
//   TESSERA_NVRTC_LIBRARY  the library to open instead of libnvrtc.so.13 and .so.12
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace tessera::cuda {

struct Nvrtc {
  using Program = struct ProgramTag*;
  int (*version)(int* major, int* minor);
  int (*count_architectures)(int*);
  int (*architectures)(int*);
  int (*create)(Program*, const char* source, const char* name, int, const char* const*,
                const char* const*);
  int (*compile)(Program, int, const char* const*);
  int (*binary_size)(Program, size_t*);
  int (*binary)(Program, char*);
  int (*ptx_size)(Program, size_t*);
  int (*ptx)(Program, char*);
  int (*log_size)(Program, size_t*);
  int (*log)(Program, char*);
  int (*destroy)(Program*);
};

struct NvrtcLibrary {
  std::optional<Nvrtc> nvrtc;
  std::string absent;
};
const NvrtcLibrary& nvrtc_library();

// The architecture to compile for: the device's own where the compiler knows it, as machine code
// ("sm_90a"), or the best it knows below that, as text that the driver translates ("compute_90").
// Empty: the compiler knows none that the device runs.
std::string architecture_for(int major, int minor, const std::vector<int>& known);

// Groups of a cluster that code for the architecture may count on; 1: it has no clusters.
int cluster_groups(const std::string& architecture);

struct Compiled {
  std::string binary;  // empty: it does not compile
  std::string log;
};
// REQUIRES nvrtc_library().nvrtc
Compiled compile_text(const std::string& source, const std::string& architecture,
                      const std::vector<std::string>& options);

std::string compiler_version();             // "NVRTC 13.0"
std::vector<int> compiler_architectures();  // 90 is sm_90

}  // namespace tessera::cuda
