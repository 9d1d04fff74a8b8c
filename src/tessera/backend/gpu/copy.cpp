// copy: x -> y.
#include "tessera/backend/gpu/view_copy.h"

namespace tessera::gpu {

namespace {

class Copy : public GpuExecutable {
 public:
  Copy(Session& session, const KernelCall& call)
      : call_(call), copy_(session, call.operands[0], call.operands[1]) {}

  void launch(std::span<const BufferRef> at, int64_t, Stream stream) const override {
    copy_.run(operand(at[0], call_.operands[0]), operand(at[1], call_.operands[1]), stream);
  }

 private:
  const KernelCall call_;
  ViewCopy copy_;
};

}  // namespace

std::unique_ptr<GpuExecutable> make_copy(Session& session, const KernelCall& call) {
  return std::make_unique<Copy>(session, call);
}

}  // namespace tessera::gpu
