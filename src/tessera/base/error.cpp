#include "tessera/base/error.h"

#include <cstdio>
#include <cstdlib>

namespace tessera {

void assertion_failed(const char* expression, const char* file, int line) {
  // The one place below cli/ that writes: the process is about to die of a bug.
  std::fprintf(stderr, "tessera: assertion failed: %s (%s:%d)\n", expression, file, line);
  std::abort();
}

}  // namespace tessera
