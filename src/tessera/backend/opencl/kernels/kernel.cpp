#include "tessera/backend/opencl/kernels/kernel.h"

namespace tessera::opencl {

Operand operand(BufferRef buffer, const OperandView& view) {
  const int64_t size = size_of(view.dtype);
  TESSERA_ASSERT(buffer.offset % size == 0);
  if (buffer.handle == nullptr) return {};
  return {static_cast<MemId>(buffer.handle), buffer.offset / size + view.view.offset};
}

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

void Kernel::Launch::set(const void* value, size_t bytes) {
  const Status status = api().set_kernel_arg(kernel_.handle_.get(), count_, bytes, value);
  if (status != kSuccess) {
    fail(kernel_.op_, ": argument ", count_, " does not fit its kernel: ", to_text(status));
  }
  ++count_;
}

void Kernel::Launch::run(const Range& range) {
  size_t items[3];
  for (int i = 0; i < 3; ++i) {
    items[i] = range.group[i] * range.groups[i];
    if (items[i] == 0) return;
  }
  Session& session = kernel_.session_;
  const QueueId queue = session.queue(stream_);
  auto enqueue = [&] {
    return api().enqueue_nd_range_kernel(queue, kernel_.handle_.get(), 3, nullptr, items,
                                         range.group, 0, nullptr, nullptr);
  };
  Status status = enqueue();
  if (is_out_of_memory(status)) {
    // What was released is free only when the kernels that used it are done.
    expect_success(api().finish(queue), "waiting for the device");
    status = enqueue();
  }
  if (status != kSuccess) {
    fail(kernel_.op_, ": ", session.name(), " cannot run its kernel: ", to_text(status));
  }
}

}  // namespace tessera::opencl
