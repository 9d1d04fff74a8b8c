#include "tessera/backend/cuda/session.h"

#include <algorithm>
#include <cstdlib>
#include <exception>

#include "tessera/backend/cuda/compiler.h"
#include "tessera/backend/cuda/early_start.h"
#include "tessera/backend/cuda/kernels/kernel.h"
#include "tessera/backend/gpu/build_error.h"
#include "tessera/runtime/binary_cache.h"
#include "tessera/runtime/caching_allocator.h"
#include "tessera/runtime/compile_notice.h"
#include "tessera/runtime/counters.h"

namespace tessera::cuda {

namespace {

constexpr int64_t kStagingBytes = int64_t(32) << 20;
constexpr int kFlagsPerPage = 1024;
constexpr size_t kMostSuspects = 8;
constexpr const char* kOptions = "--std=c++17";

void* pointer(Address address) { return reinterpret_cast<void*>(address); }
Address address(BufferRef buffer) {
  return reinterpret_cast<Address>(buffer.handle) + Address(buffer.offset);
}

bool is_on(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && std::string_view(value) == "1";
}

// The context of the calling thread; asking the driver each time would cost.
thread_local ContextId t_context = nullptr;

Result set_context(ContextId context) {
  if (t_context == context) return kSuccess;
  const Result result = driver().context_set(context);
  if (result == kSuccess) t_context = context;
  return result;
}

class Recording : public gpu::GpuExecutable {
 public:
  Recording(Session& session, GraphExecId id, const std::string& kernels)
      : session_(session), id_(id), name_(cat("a recorded program (", kernels, ")")) {}
  ~Recording() override { driver().graph_exec_destroy(id_); }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  void launch(std::span<const BufferRef>, int64_t, Stream stream) const override {
    session_.launched(driver().graph_launch(id_, session_.stream(stream)), name_, stream);
  }

 private:
  Session& session_;
  GraphExecId id_;
  const std::string name_;
};

}  // namespace

struct Session::Check : gpu::IndexCheck {
  Session* session = nullptr;
  volatile int32_t* raised = nullptr;  // the flag, as the host sees it

  ~Check() override {
    const std::lock_guard lock(session->check_mutex_);
    std::erase(session->checks_, this);
    session->free_flags_.push_back(const_cast<int32_t*>(raised));
  }
};

void Suspects::add(const std::string& op) {
  if (std::ranges::find(names_, op) != names_.end()) return;
  if (names_.size() == kMostSuspects) {
    names_.erase(names_.begin());
    had_more_ = true;
  }
  names_.push_back(op);
}

void Suspects::clear() {
  names_.clear();
  had_more_ = false;
}

std::string Suspects::text() const {
  std::string text = had_more_ ? "…" : "";
  for (const std::string& name : names_) text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "nothing" : text;
}

Module::~Module() { driver().module_unload(id_); }

Session::Session(int index, const DeviceInfo& info, std::string name)
    : info_(info), waits_always_(is_on("TESSERA_CUDA_SYNC")) {
  const Driver& d = driver();
  expect_success(d.init(0), "starting the driver");
  expect_success(d.device_get(&number_, index), "opening the device");
  expect_success(d.context_retain(&context_, number_), "creating a context");
  int largest_group = 0, shared = 0, asked = 0, lanes = 0, clusters = 0;
  d.device_attribute(&largest_group, kLargestGroup, number_);
  d.device_attribute(&shared, kSharedBytes, number_);
  d.device_attribute(&asked, kSharedBytesOptIn, number_);
  d.device_attribute(&lanes, kLanesPerMultiprocessor, number_);
  d.device_attribute(&clusters, kHasClusters, number_);
  const int64_t row = std::max<int64_t>(0, int64_t(asked) - gpu::kFoldBytes);
  traits_ = {std::move(name), &cuda_dialect(), true, info.multiprocessors, shared, row,
             largest_group,   asked,           lanes};
  if (nvrtc_library().nvrtc) {
    architecture_ = architecture_for(info.major, info.minor, compiler_architectures());
  }
  if (clusters != 0) traits_.cluster_groups = cluster_groups(architecture_);
}

Session::~Session() {
  // The primary context is the process's: it is not given back, as other libraries may use it.
  set_context(context_);
  for (auto& [index, lane] : lanes_) {
    driver().stream_synchronize(lane.id);
    lane.staging.reset();
    lane.workspace.reset();
    driver().stream_destroy(lane.id);
  }
  for (void* page : flag_pages_) driver().host_free(page);
}

void Session::enter() const {
  if (lost_) fail(traits_.name, ": the device was lost to an earlier fault of a kernel");
  expect_success(set_context(context_), "entering the context");
}

Session::Lane& Session::lane(Stream stream) {
  enter();
  const std::lock_guard lock(mutex_);
  Lane& lane = lanes_[stream.index];
  if (lane.id == nullptr) {
    expect_success(driver().stream_create(&lane.id, kStreamNonBlocking), "creating a stream");
    lane.staging = std::make_unique<Staging>(kStagingBytes);
    lane.workspace = std::make_unique<GrowingMemory>(number_, info_.memory_bytes);
  }
  return lane;
}

void Session::say_out_of_memory(int64_t bytes) const {
  size_t free = 0, total = 0;
  driver().mem_info(&free, &total);
  fail(traits_.name, ": out of memory: asked for ", bytes, " bytes; ", free, " of ", total,
       " are free");
}

int64_t Session::free_bytes() const {
  enter();
  size_t free = 0, total = 0;
  expect_success(driver().mem_info(&free, &total), "asking for free memory");
  return int64_t(free);
}

Address Session::allocate(int64_t bytes) {
  enter();
  Address made = 0;
  const Result result = driver().mem_alloc(&made, size_t(std::max<int64_t>(bytes, 1)));
  if (result == kOutOfMemory) say_out_of_memory(bytes);
  expect_success(result, "an allocation");
  return made;
}

void Session::free(Address address) {
  set_context(context_);
  const Result result = driver().mem_free(address);
  if (!lost_) expect_success(result, "freeing memory");
}

void Session::wait() {
  set_context(context_);
  const std::lock_guard lock(mutex_);
  for (auto& [index, lane] : lanes_) driver().stream_synchronize(lane.id);
}

std::unique_ptr<GrowingMemory> Session::reserve(int64_t bytes) {
  enter();
  auto made = std::make_unique<GrowingMemory>(number_, info_.memory_bytes);
  const Result result = made->grow(bytes);
  if (result == kOutOfMemory) say_out_of_memory(bytes);
  expect_success(result, "reserving memory");
  return made;
}

void Session::upload(Address to, const void* from, int64_t bytes, Stream stream) {
  Lane& here = lane(stream);
  here.staging->upload(to, from, bytes, here.id);
}

void Session::download(void* to, Address from, int64_t bytes, Stream stream) {
  Lane& here = lane(stream);
  if (bytes > 0) {
    launched(driver().copy_to_host(to, from, size_t(bytes), here.id), "a download", stream);
  }
  finish(stream);
}

void Session::copy(BufferRef to, BufferRef from, int64_t bytes, Stream stream) {
  Lane& here = lane(stream);
  launched(driver().copy(address(to), address(from), size_t(bytes), here.id), "a copy", stream);
}

void Session::launched(Result result, const std::string& op, Stream stream) {
  Lane& here = lane(stream);
  if (result != kSuccess) say_lost(result, op, here);
  (here.recording ? here.recorded : here.launched).add(op);
  if (!waits_always_) return;
  if (const Result after = driver().stream_synchronize(here.id)) say_lost(after, op, here);
  here.launched.clear();
}

// Faults (an illegal address and its kin) leave a context that answers nothing but the same error.
// It is met when somebody waits, behind any number of kernels.
void Session::say_lost(Result result, const std::string& op, const Lane& here) {
  constexpr Result kFirstFault = 700, kLastFault = 719;
  const bool is_fault = (result >= kFirstFault && result <= kLastFault) || result == 214;
  if (!is_fault || waits_always_) {
    lost_ = lost_ || is_fault;
    fail(op, ": ", traits_.name, " reports: ", to_text(result));
  }
  lost_ = true;
  fail(op, ": ", traits_.name, " reports: ", to_text(result),
       "; launched before: ", here.launched.text(),
       "; TESSERA_CUDA_SYNC=1 finds the kernel at fault");
}

void Session::finish(Stream stream) {
  counters().synchronizations.fetch_add(1, std::memory_order_relaxed);
  Lane& here = lane(stream);
  if (const Result result = driver().stream_synchronize(here.id)) {
    say_lost(result, "waiting for the device", here);
  }
  here.launched.clear();
  raise_checks();
}

void Session::raise_checks() {
  std::string op, what, range;
  {
    const std::lock_guard lock(check_mutex_);
    for (Check* check : checks_) {
      if (*check->raised == 0) continue;
      *check->raised = 0;
      if (!op.empty()) continue;
      op = check->op;
      what = check->what;
      range = check->range;
    }
  }
  if (!op.empty()) fail(op, ": ", what, " out of range ", range);
}

std::shared_ptr<const gpu::IndexCheck> Session::make_check(std::string op, std::string what,
                                                           std::string range) {
  enter();
  const std::lock_guard lock(check_mutex_);
  if (free_flags_.empty()) {
    void* page = nullptr;
    expect_success(driver().host_alloc(&page, kFlagsPerPage * sizeof(int32_t), kHostMapped),
                   "pinning memory");
    flag_pages_.push_back(page);
    for (int i = kFlagsPerPage - 1; i >= 0; --i) {
      free_flags_.push_back(static_cast<int32_t*>(page) + i);
    }
  }
  int32_t* const flag = free_flags_.back();
  Address on_device = 0;
  expect_success(driver().host_address(&on_device, flag, 0), "finding a flag's address");
  free_flags_.pop_back();
  auto check = std::make_shared<Check>();
  check->session = this;
  check->raised = flag;
  *flag = 0;
  check->flag = pointer(on_device);
  check->op = std::move(op);
  check->what = std::move(what);
  check->range = std::move(range);
  checks_.push_back(check.get());
  return check;
}

void* Session::workspace(Stream stream, int64_t bytes) {
  Lane& here = lane(stream);
  if (here.workspace->grow(bytes) != kSuccess) {
    release_cached_memory();
    const Result result = here.workspace->grow(bytes);
    if (result == kOutOfMemory) say_out_of_memory(bytes);
    expect_success(result, "growing the workspace");
  }
  return pointer(here.workspace->address());
}

bool Session::begin_recording(Stream stream) {
  if (waits_always_) return false;
  Lane& here = lane(stream);
  expect_success(driver().begin_capture(here.id, kCaptureRelaxed), "recording");
  here.recording = true;
  here.recorded.clear();
  return true;
}

std::unique_ptr<gpu::GpuExecutable> Session::end_recording(Stream stream, std::string& reason) {
  Lane& here = lane(stream);
  here.recording = false;
  GraphId graph = nullptr;
  GraphExecId exec = nullptr;
  Result result = driver().end_capture(here.id, &graph);
  if (result == kSuccess) result = driver().graph_instantiate(&exec, graph, 0);
  if (graph != nullptr) driver().graph_destroy(graph);
  if (result == kSuccess) return std::make_unique<Recording>(*this, exec, here.recorded.text());
  reason = to_text(result);
  return nullptr;
}

std::string Session::compile(const std::string& op, const std::string& source) const {
  if (!nvrtc_library().nvrtc) {
    fail(op, ": kernels for ", traits_.name,
         " need NVIDIA's run-time compiler: ", nvrtc_library().absent);
  }
  if (architecture_.empty()) {
    fail(op, ": ", compiler_version(), " knows no architecture of ", traits_.name,
         " (compute capability ", info_.major, ".", info_.minor, ")");
  }
  const std::string text = starts_early() ? with_early_start(source) : source;
  Compiled compiled = compile_text(text, architecture_, {kOptions});
  if (compiled.binary.empty()) {
    fail(op, ": the kernel does not compile for ", traits_.name, " (", info_.name, ", ",
         architecture_, ", ", compiler_version(), "): ", gpu::first_error(compiled.log),
         "; its source is kept in ", gpu::keep_source(op, source, ".cu"));
  }
  return std::move(compiled.binary);
}

std::shared_ptr<const Module> Session::load(const std::string& binary) const {
  enter();
  ModuleId id = nullptr;
  if (driver().module_load(&id, binary.c_str()) != kSuccess) return nullptr;
  return std::make_shared<const Module>(id);
}

std::shared_ptr<const Module> Session::make_module(const std::string& op,
                                                   const std::string& source) const {
  const std::string compiler = nvrtc_library().nvrtc ? compiler_version() : "";
  const std::string options = cat(kOptions, starts_early() ? " early start" : "");
  const BinaryKey key = {source, options, compiler, architecture_};
  const Descriptor turn = binary_cache().wait_turn(key);
  if (const std::optional<std::string> binary = binary_cache().find(key)) {
    if (auto made = load(*binary)) return made;
    binary_cache().drop(key, "the driver refuses it");
  }
  note_compilation(cat(traits_.name, " (", info_.name, ")"));
  const std::string binary = compile(op, source);
  auto made = load(binary);
  if (!made) fail(op, ": ", traits_.name, " does not take the kernel that was compiled for it");
  binary_cache().store(key, binary);
  return made;
}

std::shared_ptr<const Module> Session::module(const std::string& op, const std::string& source) {
  std::unique_lock lock(mutex_);
  built_.wait(lock, [&] { return !building_.contains(source); });
  if (const auto found = modules_.find(source); found != modules_.end()) {
    if (auto module = found->second.lock()) return module;
  }
  building_.insert(source);
  // Built without the lock: it may take long.
  lock.unlock();
  std::shared_ptr<const Module> made;
  std::exception_ptr error;
  try {
    made = make_module(op, source);
  } catch (...) {
    error = std::current_exception();
  }
  lock.lock();
  building_.erase(source);
  built_.notify_all();
  if (error) std::rethrow_exception(error);
  std::erase_if(modules_, [](const auto& entry) { return entry.second.expired(); });
  modules_[source] = made;
  return made;
}

std::unique_ptr<gpu::Kernel> Session::build(const std::string& op, const std::string& source,
                                            const std::string& entry) {
  return std::make_unique<Kernel>(*this, op, module(op, source), entry);
}

}  // namespace tessera::cuda
