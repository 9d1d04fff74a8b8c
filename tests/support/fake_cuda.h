// A library that answers like libcuda.so.1, compiled by the host's compiler.
#pragma once

#include <cstdlib>
#include <filesystem>

#include "io/temp_folder.h"
#include "tessera/base/error.h"

namespace tessera {

// In `folder`: cuInit() returns `init`, and there are `count` devices.
inline std::filesystem::path make_fake_cuda(const TempFolder& folder, int init, int count) {
  const std::string source = (folder / "fake_cuda.cpp").native();
  const std::string library = (folder / "libfake_cuda.so").native();
  write_text(source, cat(R"(
extern "C" {
int cuInit(unsigned) { return )",
                         init, R"(; }
int cuDriverGetVersion(int* version) { *version = 12080; return 0; }
int cuDeviceGetCount(int* count) { *count = )",
                         count, R"(; return 0; }
int cuDeviceGet(int* device, int index) { *device = 7 + index; return 0; }
int cuDeviceGetName(char* name, int, int device) {
  const char text[] = {'C', 'a', 'r', 'd', ' ', char('0' + device), 0};
  for (int i = 0; i < 7; ++i) name[i] = text[i];
  return 0;
}
int cuDeviceTotalMem_v2(unsigned long* bytes, int device) { *bytes = 1ul << (23 + device); return 0; }
int cuDeviceGetAttribute(int* value, int what, int) {
  *value = what == 16 ? 132 : what == 75 ? 9 : what == 76 ? 1 : -1;
  return 0;
}
}
)"));
  const std::string command =
      cat(TESSERA_HOST_CXX, " -shared -fPIC -o '", library, "' '", source, "'");
  TESSERA_ASSERT(std::system(command.c_str()) == 0);
  return library;
}

}  // namespace tessera
