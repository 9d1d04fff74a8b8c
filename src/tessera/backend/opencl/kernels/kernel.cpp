#include "tessera/backend/opencl/kernels/kernel.h"

namespace tessera::opencl {

Kernel::Kernel(Session& session, std::string op, const std::string& source,
               const std::string& entry)
    : session_(session), op_(std::move(op)), program_(session.programs().get(op_, source)) {
  Status status = kSuccess;
  handle_.reset(api().create_kernel(program_->get(), entry.c_str(), &status));
  if (status != kSuccess) {
    fail(op_, ": its source has no kernel '", entry, "' for ", session.name(), ": ",
         to_text(status));
  }
}

int64_t Kernel::largest_group() const {
  size_t size = 0;
  expect_success(api().get_kernel_work_group_info(handle_.get(), session_.info().id,
                                                  kKernelGroupSize, sizeof size, &size, nullptr),
                 "asking for a group size");
  return int64_t(size);
}

void Kernel::launch(Stream stream, const gpu::Range& range, const gpu::Arguments& arguments) const {
  for (int i = 0; i < 3; ++i) {
    if (range.group[i] * range.groups[i] == 0) return;
  }
  const std::lock_guard lock(mutex_);
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Status status =
        api().set_kernel_arg(handle_.get(), uint32_t(i), arguments.bytes(i), arguments.at(i));
    if (status != kSuccess) {
      fail(op_, ": argument ", i, " does not fit its kernel: ", to_text(status));
    }
  }
  enqueue(stream, range);
}

void Kernel::enqueue(Stream stream, const gpu::Range& range) const {
  size_t items[3];
  for (int i = 0; i < 3; ++i) items[i] = range.group[i] * range.groups[i];
  const QueueId queue = session_.queue(stream);
  auto run = [&] {
    return api().enqueue_nd_range_kernel(queue, handle_.get(), 3, nullptr, items, range.group, 0,
                                         nullptr, nullptr);
  };
  Status status = run();
  if (is_out_of_memory(status)) {
    // What was released is free only when the kernels that used it are done.
    expect_success(api().finish(queue), "waiting for the device");
    status = run();
  }
  if (status != kSuccess) {
    fail(op_, ": ", session_.name(), " cannot run its kernel: ", to_text(status));
  }
}

}  // namespace tessera::opencl
