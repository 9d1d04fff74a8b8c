// A joined kernel (kernel/kernel_call.h), rendered, compiled and ready to launch. Its table goes
// along with each launch as a parameter, so that nothing is uploaded and a recording keeps it.
#pragma once

#include <array>
#include <mutex>
#include <vector>

#include "tessera/backend/gpu/generated_kernel.h"

namespace tessera::gpu {

class JoinedKernel : public GpuExecutable {
 public:
  // REQUIRES a device that has_addresses.
  JoinedKernel(Session& session, const KernelCall& call);

  void launch(std::span<const BufferRef> operands, int64_t extent0, Stream stream) const override;

 private:
  const BuiltKernel& variant(bool aligned) const;  // compiled on first use
  std::vector<KernelPart> parts_of(std::span<const BufferRef> operands, const BuiltKernel& built,
                                   Stream stream) const;
  void give_groups(std::vector<KernelPart>& parts, const RenderedKernel& rendered) const;
  void run(const Kernel& kernel, const RenderedKernel& rendered, std::span<const KernelPart> parts,
           Stream stream) const;

  Session& session_;
  const KernelCall call_;
  std::vector<int64_t> splits_;  // of each part's rows
  RenderOptions promises_;
  mutable std::mutex mutex_;
  mutable std::array<std::unique_ptr<BuiltKernel>, 2> variants_;
};

}  // namespace tessera::gpu
