#include "tessera/base/precision.h"

#include <atomic>
#include <cstdlib>
#include <string_view>

namespace tessera {

namespace {

std::atomic<bool>& setting() {
  static std::atomic<bool> allowed = [] {
    const char* value = std::getenv("TESSERA_TF32");
    return value != nullptr && std::string_view(value) == "1";
  }();
  return allowed;
}

}  // namespace

bool allows_tf32() { return setting(); }
bool set_tf32(bool allowed) { return setting().exchange(allowed); }

}  // namespace tessera
