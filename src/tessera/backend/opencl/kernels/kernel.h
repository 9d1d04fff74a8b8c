// A function of an OpenCL program.
#pragma once

#include <mutex>

#include "tessera/backend/opencl/session.h"

namespace tessera::opencl {

// Thread safe: a launch holds the kernel.
class Kernel : public gpu::Kernel {
 public:
  // `op` is named in errors.
  Kernel(Session& session, std::string op, const std::string& source, const std::string& entry);

  int64_t largest_group() const override;
  int64_t groups_at_once(int64_t) const override { return 1; }  // OpenCL does not tell
  void launch(Stream stream, const gpu::Range& range,
              const gpu::Arguments& arguments) const override;

 private:
  void enqueue(Stream stream, const gpu::Range& range) const;

  Session& session_;
  const std::string op_;
  std::shared_ptr<const Program> program_;
  KernelHandle handle_;
  mutable std::mutex mutex_;
};

// A kernel that a user of the library brought along, over packed operands.
std::unique_ptr<gpu::GpuExecutable> make_custom(Session& session, const KernelCall& call);

}  // namespace tessera::opencl
