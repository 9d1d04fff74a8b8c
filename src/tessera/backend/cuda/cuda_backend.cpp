#include "tessera/backend/cuda/cuda_backend.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>

#include "tessera/backend/cuda/compiler.h"
#include "tessera/backend/cuda/kernels/attention_few.h"
#include "tessera/backend/cuda/kernels/attention_tiles.h"
#include "tessera/backend/cuda/kernels/cross_entropy.h"
#include "tessera/backend/cuda/kernels/kernel.h"
#include "tessera/backend/cuda/kernels/layer_norm_backward.h"
#include "tessera/backend/cuda/kernels/linear.h"
#include "tessera/backend/cuda/kernels/long_rows.h"
#include "tessera/backend/cuda/kernels/matmul_add.h"
#include "tessera/backend/cuda/kernels/matmul_sums.h"
#include "tessera/backend/cuda/kernels/order_rows.h"
#include "tessera/backend/cuda/kernels/product.h"
#include "tessera/backend/cuda/kernels/scan.h"
#include "tessera/backend/cuda/kernels/scatter_rows.h"
#include "tessera/backend/gpu/generated_kernel.h"
#include "tessera/backend/gpu/joined_kernel.h"
#include "tessera/backend/gpu/named_kernel.h"
#include "tessera/base/device.h"
#include "tessera/runtime/counters.h"

namespace tessera {

namespace cuda {

namespace {

constexpr int kAlignment = 256;
constexpr int kOldestCapability = 75;

// Kernels that CUDA alone has.
struct OwnKernel {
  std::string_view name;
  std::unique_ptr<gpu::GpuExecutable> (*make)(Session&, const KernelCall&);
};
template <auto kMake>
std::unique_ptr<gpu::GpuExecutable> made_by(Session& session, const KernelCall& call) {
  return kMake(session, call);
}
constexpr OwnKernel kOwnKernels[] = {
    {"custom", make_custom},
    {"layer_norm_backward", made_by<make_layer_norm_backward>},
    {"linear", made_by<make_linear>},
    {"linear_slope", made_by<make_linear>},
    {"matmul_add", made_by<make_matmul_add>},
    {"matmul_sums", made_by<make_matmul_sums>},
    {"cross_entropy", made_by<make_cross_entropy>},
    {"cumsum", made_by<make_scan>},
    {"cumprod", made_by<make_scan>},
};
// Better ones for some calls of kernels that every GPU has, or of ops that are otherwise generated;
// null for others.
constexpr OwnKernel kBetterKernels[] = {
    {"attention", made_by<make_attention_few>},
    {"attention", made_by<make_attention_tiles>},
    {"attention_backward", made_by<make_attention_tiles>},
    {"matmul", made_by<make_product>},
    {"scatter_add", made_by<make_scatter_rows>},
    {"sort", made_by<make_order_rows>},
    {"topk", made_by<make_order_rows>},
    {"softmax", made_by<make_long_rows>},
    {"layer_norm", made_by<make_long_rows>},
};

// Tables of joined kernels are parameters, of which a kernel has 32,764 bytes from CUDA 12.1 on,
// and had 4,096 before; a pointer goes beside the table.
int64_t table_words(int driver_version) {
  constexpr int64_t kNow = 32764, kBefore = 4096, kBeside = 64, kWord = 8;
  if (!nvrtc_library().nvrtc) return 0;
  int major = 0, minor = 0;
  nvrtc_library().nvrtc->version(&major, &minor);
  const bool has_more = std::min(1000 * major + 10 * minor, driver_version) >= 12010;
  return ((has_more ? kNow : kBefore) - kBeside) / kWord;
}

// The widest access: cuBLASLt has fast algorithms only where every row begins at a multiple of it.
constexpr int64_t kRowBytes = 16;

Target describe_target(const Session& session, int driver_version) {
  const DeviceInfo& info = session.info();
  Target target;
  target.device = session.device().name;
  target.description = describe(info, driver_version);
  target.memory_bytes = info.memory_bytes;
  target.alignment = kAlignment;
  for (const gpu::NamedKernelRow& row : gpu::named_kernels()) {
    target.named_kernels.emplace_back(row.name);
  }
  for (const OwnKernel& own : kOwnKernels) target.named_kernels.emplace_back(own.name);
  target.table_words = table_words(driver_version);
  if (cublaslt_library().lt) target.row_bytes = kRowBytes;
  target.orders_outputs = true;
  target.compiles_at_once = true;
  if (gpu::tuning().long_rows) {
    target.long_row_columns = kShortRow;
    target.long_row_bytes = longest_row(session.device());
  }
  return target;
}

Address address(BufferRef buffer) {
  return reinterpret_cast<Address>(buffer.handle) + Address(buffer.offset);
}

class CudaBackend : public Backend {
 public:
  CudaBackend(int index, const DeviceInfo& info, int driver_version, const std::string& name)
      : session_(index, info, name), target_(describe_target(session_, driver_version)) {}

  const Target& target() const override { return target_; }

  std::shared_ptr<Memory> allocate(int64_t bytes) override {
    TESSERA_ASSERT(bytes >= 0);
    const Address made = session_.allocate(bytes);
    counters().add_allocation(bytes);
    return std::make_shared<Memory>(this, reinterpret_cast<void*>(made), bytes, false);
  }

  std::shared_ptr<Memory> allocate_arena(int64_t bytes) override {
    std::unique_ptr<GrowingMemory> made = session_.reserve(std::max<int64_t>(bytes, 1));
    void* const handle = reinterpret_cast<void*>(made->address());
    {
      const std::lock_guard lock(mutex_);
      arenas_[handle] = std::move(made);
    }
    counters().add_allocation(bytes);
    return std::make_shared<Memory>(this, handle, bytes, false);
  }

  bool extend(Memory& memory, int64_t bytes) override {
    const std::lock_guard lock(mutex_);
    const auto arena = arenas_.find(memory.handle);
    if (arena == arenas_.end()) return false;
    session_.enter();
    if (arena->second->grow(bytes) != kSuccess) session_.say_out_of_memory(bytes);
    counters().add_allocation(bytes - memory.bytes);
    memory.bytes = bytes;
    return true;
  }

  std::optional<int64_t> free_bytes() override { return session_.free_bytes(); }

  void release(Memory& memory) override {
    counters().add_release(memory.bytes);
    const std::lock_guard lock(mutex_);
    if (arenas_.contains(memory.handle)) {
      session_.wait();  // unmapping does not
      arenas_.erase(memory.handle);
    } else {
      session_.free(reinterpret_cast<Address>(memory.handle));
    }
  }

  void upload(BufferRef to, const void* from, int64_t bytes, Stream stream) override {
    if (bytes > 0) session_.upload(address(to), from, bytes, stream);
  }

  void download(void* to, BufferRef from, int64_t bytes, Stream stream) override {
    session_.download(to, address(from), bytes, stream);
  }

  void copy(BufferRef to, BufferRef from, int64_t bytes, Stream stream) override {
    if (bytes > 0) session_.copy(to, from, bytes, stream);
  }

  std::unique_ptr<Executable> compile(const KernelCall& call) override {
    counters().compiles.fetch_add(1, std::memory_order_relaxed);
    session_.enter();
    if (!call.parts.empty()) return std::make_unique<gpu::JoinedKernel>(session_, call);
    if (call.ir) return std::make_unique<gpu::GeneratedKernel>(session_, *call.ir);
    for (const OwnKernel& own : kOwnKernels) {
      if (own.name == call.kernel) return own.make(session_, call);
    }
    for (const OwnKernel& better : kBetterKernels) {
      if (better.name != call.kernel) continue;
      if (auto made = better.make(session_, call)) return made;
    }
    return gpu::make_named_kernel(session_, call);
  }

  void launch(const Executable& executable, std::span<const BufferRef> operands, int64_t extent0,
              Stream stream) override {
    counters().launches.fetch_add(1, std::memory_order_relaxed);
    static_cast<const gpu::GpuExecutable&>(executable).launch(operands, extent0, stream);
  }

  bool begin_recording(Stream stream) override { return session_.begin_recording(stream); }

  std::unique_ptr<Executable> end_recording(Stream stream, std::string& reason) override {
    return session_.end_recording(stream, reason);
  }

  void synchronize(Stream stream) override { session_.finish(stream); }

 private:
  Session session_;
  Target target_;
  std::mutex mutex_;
  std::unordered_map<void*, std::unique_ptr<GrowingMemory>> arenas_;  // by their address
};

}  // namespace

}  // namespace cuda

int cuda_device_count() { return cuda_absent().empty() ? int(cuda::devices().list.size()) : 0; }

std::string cuda_absent() {
  const cuda::Devices& found = cuda::devices();
  if (!found.absent.empty()) return found.absent;
  if (!cuda::driver_library().driver) return cuda::driver_library().absent;
  for (const cuda::DeviceInfo& info : found.list) {
    if (10 * info.major + info.minor >= cuda::kOldestCapability) return "";
  }
  return cat(found.list[0].name, " has compute capability ", found.list[0].major, ".",
             found.list[0].minor, ", 7.5 or more is needed");
}

std::unique_ptr<Backend> make_cuda_backend(int index) {
  const cuda::Devices& found = cuda::devices();
  return std::make_unique<cuda::CudaBackend>(index, found.list[size_t(index)], found.driver,
                                             to_string(Device(DeviceKind::cuda, index)));
}

}  // namespace tessera
