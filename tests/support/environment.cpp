// Registers the backends before the first test of any executable.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "tessera/tessera.h"

// For the sanitizer that looks for leaks at the end: not where OpenCL was opened. PoCL keeps some
// of what it allocates while it compiles, and the search fails now and then while its threads end.
extern "C" int __lsan_is_turned_off();
extern "C" int __lsan_is_turned_off() {
  return ::dlopen("libOpenCL.so.1", RTLD_LAZY | RTLD_NOLOAD) != nullptr ? 1 : 0;
}

namespace tessera {
namespace {

class Environment : public ::testing::Environment {
 public:
  void SetUp() override {
    // Whose kernels are kept apart has PoCL's kept apart, too: it fails where two processes build
    // one program at a time.
    if (const char* folder = std::getenv("TESSERA_CACHE_DIR"); folder != nullptr && *folder != 0) {
      ::setenv("POCL_CACHE_DIR", (std::string(folder) + "/pocl").c_str(), 0);
    }
    ::setenv("TESSERA_DEVICE", "cpu", 0);  // the same tests with a GPU and without
    init();
  }
};

[[maybe_unused]] const auto* const kEnvironment =
    ::testing::AddGlobalTestEnvironment(new Environment);  // GoogleTest owns it

}  // namespace
}  // namespace tessera
