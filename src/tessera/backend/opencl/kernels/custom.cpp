// custom: a kernel that a user of the library brought along, over packed operands.
#include <algorithm>

#include "tessera/backend/gpu/named_kernel.h"
#include "tessera/backend/opencl/kernels/kernel.h"

namespace tessera::opencl {

namespace {

// Users' kernels take pointers to the first element, so an operand inside a larger buffer becomes a
// buffer of its own for the launch.
class Custom : public gpu::GpuExecutable {
 public:
  Custom(Session& session, const KernelCall& call)
      : session_(session),
        call_(call),
        kernel_(session, call.custom->name, call.custom->opencl, call.custom->name) {}

  void launch(std::span<const BufferRef> at, int64_t, Stream stream) const override {
    std::vector<Mem> parts;
    gpu::Arguments args;
    for (size_t i = 0; i < at.size(); ++i) {
      const gpu::Operand whole = gpu::operand(at[i], call_.operands[i]);
      const int64_t size = size_of(call_.operands[i].dtype);
      const int64_t bytes = numel(call_.operands[i].view.shape) * size;
      if (whole.start == 0) {
        args.add(whole.mem);
        continue;
      }
      parts.push_back(
          part(static_cast<MemId>(whole.mem), whole.start * size, std::max(bytes, size)));
      args.add(parts.back().get());
    }
    const size_t first_output = call_.operands.size() - size_t(call_.outputs);
    const int64_t n = numel(call_.operands[first_output].view.shape);
    args.add(n);
    const int64_t group = gpu::group_size(session_, std::min<int64_t>(64, kernel_.largest_group()));
    kernel_.launch(stream, gpu::range_of(n, group), args);
  }

 private:
  Mem part(MemId mem, int64_t offset, int64_t bytes) const {
    if (offset % session_.info().alignment != 0) {
      fail(call_.custom->name, ": expected operands that start at a multiple of ",
           session_.info().alignment, " bytes, got ", offset);
    }
    const Region region = {size_t(offset), size_t(bytes)};
    Status status = kSuccess;
    Mem made(api().create_sub_buffer(mem, kReadWrite, kRegion, &region, &status));
    expect_success(status, "creating a part of a buffer");
    return made;
  }

  Session& session_;
  const KernelCall call_;
  Kernel kernel_;
};

}  // namespace

std::unique_ptr<gpu::GpuExecutable> make_custom(Session& session, const KernelCall& call) {
  return std::make_unique<Custom>(session, call);
}

}  // namespace tessera::opencl
