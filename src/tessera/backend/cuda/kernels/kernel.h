// A function of a module.
#pragma once

#include "tessera/backend/cuda/session.h"

namespace tessera::cuda {

class Kernel : public gpu::Kernel {
 public:
  // `op` is named in errors.
  Kernel(Session& session, std::string op, std::shared_ptr<const Module> module,
         const std::string& entry);

  int64_t largest_group() const override;
  int64_t groups_at_once(int64_t group) const override;
  void launch(Stream stream, const gpu::Range& range,
              const gpu::Arguments& arguments) const override;

 private:
  Session& session_;
  const std::string op_;
  std::shared_ptr<const Module> module_;
  FunctionId id_ = nullptr;
};

// A kernel that a user of the library brought along, over packed operands.
std::unique_ptr<gpu::GpuExecutable> make_custom(Session& session, const KernelCall& call);

}  // namespace tessera::cuda
