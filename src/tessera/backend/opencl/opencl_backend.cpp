#include "tessera/backend/opencl/opencl_backend.h"

#include <algorithm>

#include "tessera/backend/gpu/generated_kernel.h"
#include "tessera/backend/gpu/named_kernel.h"
#include "tessera/backend/opencl/kernels/clblast.h"
#include "tessera/base/device.h"
#include "tessera/runtime/counters.h"

namespace tessera {

namespace opencl {

namespace {

Target describe_target(const DeviceInfo& info, const std::string& name) {
  Target target;
  target.device = name;
  target.description = describe(info);
  target.memory_bytes = info.memory_bytes;
  target.alignment = info.alignment;
  for (const gpu::NamedKernelRow& row : gpu::named_kernels()) {
    target.named_kernels.emplace_back(row.name);
  }
  target.named_kernels.emplace_back("custom");
  target.orders_outputs = true;
  return target;
}

bool uses_f64(const KernelCall& call) {
  auto is_f64 = [](const auto& x) { return x.dtype == DType::f64; };
  if (call.ir == nullptr) return std::any_of(call.operands.begin(), call.operands.end(), is_f64);
  return std::any_of(call.ir->operands.begin(), call.ir->operands.end(), is_f64) ||
         std::any_of(call.ir->insts.begin(), call.ir->insts.end(), is_f64);
}

MemId mem(BufferRef buffer) { return static_cast<MemId>(buffer.handle); }

class OpenClBackend : public Backend {
 public:
  OpenClBackend(const DeviceInfo& info, const std::string& name)
      : session_(info, name), target_(describe_target(info, name)) {}

  const Target& target() const override { return target_; }

  std::shared_ptr<Memory> allocate(int64_t bytes) override {
    TESSERA_ASSERT(bytes >= 0);
    Mem made = session_.allocate(bytes);
    counters().add_allocation(bytes);
    return std::make_shared<Memory>(this, made.release(), bytes, false);
  }

  void release(Memory& memory) override {
    counters().add_release(memory.bytes);
    session_.count_release(memory.bytes);
    Release()(static_cast<MemId>(memory.handle));
  }

  void upload(BufferRef to, const void* from, int64_t bytes, Stream stream) override {
    if (bytes <= 0) return;
    const Status status =
        api().enqueue_write_buffer(session_.queue(stream), mem(to), kTrue, size_t(to.offset),
                                   size_t(bytes), from, 0, nullptr, nullptr);
    expect_success(status, "an upload");
  }

  void download(void* to, BufferRef from, int64_t bytes, Stream stream) override {
    session_.finish(stream);
    if (bytes <= 0) return;
    const Status status =
        api().enqueue_read_buffer(session_.queue(stream), mem(from), kTrue, size_t(from.offset),
                                  size_t(bytes), to, 0, nullptr, nullptr);
    expect_success(status, "a download");
  }

  void copy(BufferRef to, BufferRef from, int64_t bytes, Stream stream) override {
    if (bytes > 0) session_.copy(to, from, bytes, stream);
  }

  std::unique_ptr<Executable> compile(const KernelCall& call) override {
    counters().compiles.fetch_add(1, std::memory_order_relaxed);
    if (!session_.info().has_f64 && uses_f64(call)) {
      fail(call.ir ? call.ir->name : call.kernel, ": f64 is not available on ", session_.name(),
           " (", target_.description, "): cast to f32, or compute on another device");
    }
    if (call.ir) return std::make_unique<gpu::GeneratedKernel>(session_, *call.ir);
    if (call.kernel == "custom") return make_custom(session_, call);
    if (auto product = make_clblast(session_, call)) return product;
    return gpu::make_named_kernel(session_, call);
  }

  void launch(const Executable& executable, std::span<const BufferRef> operands, int64_t extent0,
              Stream stream) override {
    counters().launches.fetch_add(1, std::memory_order_relaxed);
    static_cast<const gpu::GpuExecutable&>(executable).launch(operands, extent0, stream);
  }

  void synchronize(Stream stream) override { session_.finish(stream); }

 private:
  Session session_;
  Target target_;
};

}  // namespace

std::unique_ptr<Backend> make_backend(const DeviceInfo& info, const std::string& name) {
  return std::make_unique<OpenClBackend>(info, name);
}

}  // namespace opencl

int opencl_device_count() { return int(opencl::devices().list.size()); }

std::string opencl_absent() { return opencl::devices().absent; }

std::unique_ptr<Backend> make_opencl_backend(int index) {
  return opencl::make_backend(opencl::devices().list[size_t(index)],
                              to_string(Device(DeviceKind::opencl, index)));
}

}  // namespace tessera
