// A KernelIR rendered, compiled and ready to launch.
#pragma once

#include <array>
#include <mutex>

#include "tessera/backend/gpu/session.h"
#include "tessera/codegen/render.h"

namespace tessera::gpu {

struct BuiltKernel {
  RenderedKernel rendered;
  std::unique_ptr<Kernel> kernel, fold;
};

// Groups are as large as the device and the kernel's registers allow; the other options are the
// caller's promises.
std::unique_ptr<BuiltKernel> build_generated(Session& session, const KernelIR& ir,
                                             RenderOptions promises);

// Handles themselves are aligned.
bool are_aligned(std::span<const BufferRef> operands);
inline constexpr int kOperandAlignment = 16;

// About how many groups a kernel whose rows are split should have.
int64_t groups_wanted(const Session& session);

// How many groups run at once, as lanes and local memory allow.
int64_t groups_at_once(const DeviceTraits& device, const RenderedKernel& rendered);

void* address(BufferRef buffer);  // of a device that has_addresses
Range range_of_groups(int64_t groups, const RenderedKernel& rendered);

class GeneratedKernel : public GpuExecutable {
 public:
  GeneratedKernel(Session& session, const KernelIR& ir);

  void launch(std::span<const BufferRef> operands, int64_t extent0, Stream stream) const override;

 private:
  // What may be promised about a launch: see RenderOptions.
  struct Promises {
    bool aligned, narrow, split;
  };

  Promises promises(int64_t extent0, bool aligned) const;
  const BuiltKernel& variant(const Promises& promises) const;  // compiled on first use

  Session& session_;
  const KernelIR ir_;
  const int64_t groups_wanted_;
  std::shared_ptr<const IndexCheck> check_;  // null where no load is indexed
  mutable std::mutex mutex_;
  mutable std::array<std::unique_ptr<BuiltKernel>, 8> variants_;
};

}  // namespace tessera::gpu
