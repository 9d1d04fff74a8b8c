// Before main(): the libraries to open are read once.
#include <cstdlib>

namespace {

[[maybe_unused]] const bool kStandIn = [] {
  ::setenv("TESSERA_CUDA_LIBRARY", STAND_IN_DRIVER, 1);
  ::setenv("TESSERA_NVRTC_LIBRARY", STAND_IN_COMPILER, 1);
  return true;
}();

}  // namespace
