#include "tessera/backend/opencl/session.h"

#include <algorithm>

#include "tessera/backend/opencl/kernels/kernel.h"
#include "tessera/runtime/caching_allocator.h"
#include "tessera/runtime/counters.h"

namespace tessera::opencl {

namespace {

MemId mem(void* handle) { return static_cast<MemId>(handle); }

void clear_flag(QueueId queue, const gpu::IndexCheck& check) {
  const int32_t clear = 0;
  expect_success(api().enqueue_write_buffer(queue, mem(check.flag), kTrue, 0, sizeof clear, &clear,
                                            0, nullptr, nullptr),
                 "clearing a flag");
}

// A row in local memory must pay on any device: so much every GPU has.
int64_t row_bytes_of(const DeviceInfo& info) {
  constexpr int64_t kMost = 48 << 10;
  return std::max<int64_t>(0, std::min(info.local_bytes, kMost) - gpu::kFoldBytes);
}

ContextId make_context(DeviceId device) {
  Status status = kSuccess;
  const ContextId context = api().create_context(nullptr, 1, &device, nullptr, nullptr, &status);
  expect_success(status, "creating a context");
  return context;
}

}  // namespace

Session::Session(const DeviceInfo& info, std::string name)
    : info_(info),
      device_{std::move(name),    &opencl_dialect(), false, info.compute_units, info.local_bytes,
              row_bytes_of(info), info.largest_group},
      context_(make_context(info.id)),
      programs_(context_, info, device_.name) {}

Session::~Session() {
  for (const auto& [index, lane] : lanes_) {
    api().finish(lane.queue);
    api().release_command_queue(lane.queue);
  }
  api().release_context(context_);
}

Session::Lane& Session::lane(Stream stream) {
  const std::lock_guard lock(mutex_);
  Lane& lane = lanes_[stream.index];
  if (lane.queue == nullptr) {
    Status status = kSuccess;
    lane.queue = api().create_command_queue(context_, info_.id, 0, &status);
    expect_success(status, "creating a queue");
  }
  return lane;
}

Mem Session::allocate(int64_t bytes) {
  constexpr int64_t kWord = 4;
  const int64_t size = std::max<int64_t>((bytes + kWord - 1) / kWord * kWord, info_.alignment);
#ifdef NDEBUG
  const int64_t filled = kWord;
#else
  const int64_t filled = size;  // with NaN: what is read before it is written shows
#endif
  constexpr uint32_t kPattern = 0xFBFBFBFB;
  // Some drivers lend more than there is.
  Status status = size > info_.memory_bytes - allocated_ ? kAllocationFailure : kSuccess;
  Mem mem;
  if (status == kSuccess) {
    mem.reset(api().create_buffer(context_, kReadWrite, size_t(size), nullptr, &status));
  }
  if (status == kSuccess) {
    status = api().enqueue_fill_buffer(queue({}), mem.get(), &kPattern, sizeof kPattern, 0,
                                       size_t(filled), 0, nullptr, nullptr);
    // Another stream may write first.
    if (status == kSuccess) status = api().finish(queue({}));
  }
  if (is_out_of_memory(status)) {
    const int64_t free = std::max<int64_t>(0, info_.memory_bytes - allocated_);
    fail(name(), ": out of memory: asked for ", bytes, " bytes; ", free, " of ", info_.memory_bytes,
         " are free, and one buffer may have ", info_.largest_buffer);
  }
  expect_success(status, "creating a buffer");
  allocated_ += bytes;
  return mem;
}

std::unique_ptr<gpu::Kernel> Session::build(const std::string& op, const std::string& source,
                                            const std::string& entry) {
  return std::make_unique<Kernel>(*this, op, source, entry);
}

void Session::copy(BufferRef to, BufferRef from, int64_t bytes, Stream stream) {
  expect_success(api().enqueue_copy_buffer(queue(stream), mem(from.handle), mem(to.handle),
                                           size_t(from.offset), size_t(to.offset), size_t(bytes), 0,
                                           nullptr, nullptr),
                 "a copy");
}

void* Session::workspace(Stream stream, int64_t bytes) {
  Lane& here = lane(stream);
  if (here.workspace_bytes < bytes) {
    allocated_ -= std::exchange(here.workspace_bytes, 0);
    here.workspace.reset();  // kernels that are still queued keep what they use
    try {
      here.workspace = allocate(bytes);
    } catch (const Error&) {
      release_cached_memory();
      here.workspace = allocate(bytes);
    }
    here.workspace_bytes = bytes;
  }
  return here.workspace.get();
}

std::shared_ptr<const gpu::IndexCheck> Session::make_check(std::string op, std::string what,
                                                           std::string range) {
  auto check = std::make_shared<IndexCheck>();
  check->mem = allocate(sizeof(int32_t));
  check->flag = check->mem.get();
  check->op = std::move(op);
  check->what = std::move(what);
  check->range = std::move(range);
  clear_flag(queue({}), *check);
  return check;
}

void Session::watch(Stream stream, const std::shared_ptr<const gpu::IndexCheck>& check) {
  auto& checks = lane(stream).checks;
  const std::lock_guard lock(mutex_);
  if (std::find(checks.begin(), checks.end(), check) == checks.end()) checks.push_back(check);
}

void Session::finish(Stream stream) {
  counters().synchronizations.fetch_add(1, std::memory_order_relaxed);
  Lane& here = lane(stream);
  const QueueId queue = here.queue;
  expect_success(api().finish(queue), "waiting for the device");
  std::unique_lock lock(mutex_);
  const auto checks = std::exchange(here.checks, {});
  lock.unlock();
  const gpu::IndexCheck* first = nullptr;
  for (const auto& check : checks) {
    int32_t raised = 0;
    expect_success(api().enqueue_read_buffer(queue, mem(check->flag), kTrue, 0, sizeof raised,
                                             &raised, 0, nullptr, nullptr),
                   "reading a flag");
    if (raised == 0) continue;
    if (first == nullptr) first = check.get();
    clear_flag(queue, *check);
  }
  if (first != nullptr) fail(first->op, ": ", first->what, " out of range ", first->range);
}

}  // namespace tessera::opencl
