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

// Into how many parts a launch on the session's device splits its rows.
int64_t splits_of(const Session& session, const KernelIR& ir, int64_t extent0);

// What is chosen by measuring; benchmarks try other values, before anything is compiled.
struct Tuning {
  int map_turns = 1;  // RenderOptions::turns of maps
  // Of a split kernel: twice what runs at once of sums, which need registers for 5 groups.
  int64_t groups_per_unit = 10;
  int64_t split_points = 2 * kSplitPoints;
  int64_t cluster_groups = 8;  // at most, where a device has as many
  bool long_rows = true;       // by kernels of their own, where a backend has them
};
Tuning& tuning();

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
  std::shared_ptr<const IndexCheck> check_;  // null where no load is indexed
  mutable std::mutex mutex_;
  mutable std::array<std::unique_ptr<BuiltKernel>, 8> variants_;
};

}  // namespace tessera::gpu
