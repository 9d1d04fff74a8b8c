#include "tessera/backend/cuda/kernels/kernel.h"

#include <algorithm>

#include "tessera/backend/gpu/named_kernel.h"

namespace tessera::cuda {

namespace {

class Custom : public gpu::GpuExecutable {
 public:
  Custom(Session& session, const KernelCall& call)
      : session_(session),
        call_(call),
        kernel_(session.build(call.custom->name, call.custom->cuda, call.custom->name)) {}

  void launch(std::span<const BufferRef> at, int64_t, Stream stream) const override {
    gpu::Arguments arguments;
    for (size_t i = 0; i < at.size(); ++i) {
      const gpu::Operand operand = gpu::operand(at[i], call_.operands[i]);
      const int64_t offset = operand.start * size_of(call_.operands[i].dtype);
      arguments.add(static_cast<std::byte*>(operand.mem) + offset);
    }
    const size_t first_output = call_.operands.size() - size_t(call_.outputs);
    const int64_t n = numel(call_.operands[first_output].view.shape);
    arguments.add(n);
    const int64_t group =
        std::min<int64_t>(gpu::group_size(session_, 256), kernel_->largest_group());
    kernel_->launch(stream, gpu::range_of(n, group), arguments);
  }

 private:
  Session& session_;
  const KernelCall call_;
  std::unique_ptr<gpu::Kernel> kernel_;
};

}  // namespace

Kernel::Kernel(Session& session, std::string op, std::shared_ptr<const Module> module,
               const std::string& entry)
    : session_(session), op_(std::move(op)), module_(std::move(module)) {
  const Result result = driver().module_function(&id_, module_->id(), entry.c_str());
  if (result != kSuccess) {
    fail(op_, ": its source has no kernel '", entry, "' for ", session.device().name, ": ",
         to_text(result));
  }
}

int64_t Kernel::largest_group() const {
  int size = 0;
  session_.enter();
  expect_success(driver().function_attribute(&size, kFunctionLargestGroup, id_),
                 "asking for a group size");
  return size;
}

int64_t Kernel::groups_at_once(int64_t group) const {
  int count = 0;
  session_.enter();
  expect_success(driver().occupancy(&count, id_, int(group), 0), "asking for an occupancy");
  return std::max(count, 1);
}

void Kernel::launch(Stream stream, const gpu::Range& range, const gpu::Arguments& arguments) const {
  for (int i = 0; i < 3; ++i) {
    if (range.group[i] * range.groups[i] == 0) return;
  }
  std::vector<void*> values;
  values.reserve(arguments.size());
  for (size_t i = 0; i < arguments.size(); ++i) {
    values.push_back(const_cast<void*>(arguments.at(i)));  // the driver reads them
  }
  const auto size = [](size_t x) { return unsigned(x); };
  if (range.local_bytes > 0) {
    expect_success(
        driver().set_function_attribute(id_, kFunctionDynamicShared, int(range.local_bytes)),
        "asking for shared memory");
    // So that as many groups as fit are there at once; only a hint.
    driver().set_function_attribute(id_, kFunctionSharedShare, 100);
  }
  const LaunchAttribute starts_early;
  const LaunchConfig config = {
      {size(range.groups[0]), size(range.groups[1]), size(range.groups[2])},
      {size(range.group[0]), size(range.group[1]), size(range.group[2])},
      size(range.local_bytes),
      session_.stream(stream),
      &starts_early,
      session_.starts_early() ? 1u : 0u};
  const Result result = driver().launch(&config, id_, values.data(), nullptr);
  session_.launched(result, op_, stream);
}

std::unique_ptr<gpu::GpuExecutable> make_custom(Session& session, const KernelCall& call) {
  return std::make_unique<Custom>(session, call);
}

}  // namespace tessera::cuda
