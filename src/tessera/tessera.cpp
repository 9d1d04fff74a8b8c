#include "tessera/tessera.h"

#include "tessera/backend/cpu/cpu_backend.h"
#include "tessera/backend/cuda/cuda_backend.h"
#include "tessera/backend/opencl/opencl_backend.h"
#include "tessera/runtime/registry.h"

namespace tessera {

void init() {
  register_backend(DeviceKind::cpu, {[] { return 1; }, [](int) { return make_cpu_backend(); }});
  register_backend(DeviceKind::cuda, {cuda_device_count, make_cuda_backend, cuda_absent});
  register_backend(DeviceKind::opencl, {opencl_device_count, make_opencl_backend, opencl_absent});
}

const char* version() { return TESSERA_VERSION; }

}  // namespace tessera
