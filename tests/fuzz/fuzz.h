// What the fuzz targets share. A target is one function over any bytes, by libFuzzer's name for it:
// tests/fuzz/CMakeLists.txt links it with libFuzzer or with replay.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace tessera {

inline void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "fuzz: %s\n", what);
  std::abort();
}

// Reads every byte, so that the address sanitizer sees a span that leaves the input.
inline void touch(std::span<const std::byte> bytes) {
  unsigned sum = 0;
  for (const std::byte b : bytes) sum += unsigned(b);
  volatile unsigned sink = sum;
  static_cast<void>(sink);
}

}  // namespace tessera
