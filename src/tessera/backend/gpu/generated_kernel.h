// A KernelIR rendered, compiled and ready to launch.
#pragma once

#include <array>
#include <mutex>

#include "tessera/backend/gpu/session.h"
#include "tessera/codegen/render.h"

namespace tessera::gpu {

class GeneratedKernel : public GpuExecutable {
 public:
  GeneratedKernel(Session& session, const KernelIR& ir);

  void launch(std::span<const BufferRef> operands, int64_t extent0, Stream stream) const override;

 private:
  // What may be promised about a launch: see RenderOptions.
  struct Promises {
    bool aligned, narrow, split;
  };
  struct Variant {
    RenderedKernel rendered;
    std::unique_ptr<Kernel> kernel, fold;
  };

  Promises promises(int64_t extent0, bool aligned) const;
  const Variant& variant(const Promises& promises) const;  // compiled on first use
  std::unique_ptr<Variant> compile(const Promises& promises) const;

  Session& session_;
  const KernelIR ir_;
  const int64_t groups_wanted_;
  std::shared_ptr<const IndexCheck> check_;  // null where no load is indexed
  mutable std::mutex mutex_;
  mutable std::array<std::unique_ptr<Variant>, 8> variants_;
};

}  // namespace tessera::gpu
