// Before main(): the libraries to open are read once, and so is the number of threads, which
// compile side by side.
#include <cstdlib>

namespace {

[[maybe_unused]] const bool kStandIn = [] {
  ::setenv("TESSERA_CUDA_LIBRARY", STAND_IN_DRIVER, 1);
  ::setenv("TESSERA_NVRTC_LIBRARY", STAND_IN_COMPILER, 0);
  ::setenv("TESSERA_CUBLASLT_LIBRARY", STAND_IN_PRODUCTS, 0);
  ::setenv("TESSERA_THREADS", "4", 1);
  return true;
}();

}  // namespace
