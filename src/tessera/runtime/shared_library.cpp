#include "tessera/runtime/shared_library.h"

#include <dlfcn.h>

namespace tessera {

std::optional<SharedLibrary> SharedLibrary::open(std::span<const char* const> names) {
  for (const char* name : names) {
    if (void* handle = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return SharedLibrary(name, handle);
  }
  return std::nullopt;
}

void* SharedLibrary::find(const char* symbol) const { return dlsym(handle_, symbol); }

}  // namespace tessera
