// Registers the backends before the first test of any executable.
#include <gtest/gtest.h>

#include "tessera/tessera.h"

namespace tessera {
namespace {

class Environment : public ::testing::Environment {
 public:
  void SetUp() override { init(); }
};

[[maybe_unused]] const auto* const kEnvironment =
    ::testing::AddGlobalTestEnvironment(new Environment);  // GoogleTest owns it

}  // namespace
}  // namespace tessera
