// Registers the backends before the first test of any executable.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "tessera/tessera.h"

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
