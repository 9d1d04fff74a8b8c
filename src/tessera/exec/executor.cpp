#include "tessera/exec/executor.h"

#include <algorithm>

#include "tessera/base/log.h"
#include "tessera/graph/scope.h"
#include "tessera/runtime/caching_allocator.h"

namespace tessera {

namespace {

constexpr int kNotWanted = -1;

// Outputs take turns between two sets of buffers; inputs that change place make more.
constexpr size_t kMostRecordings = 8;

int base_of(const Program& program, const PlannedBuffer& buffer) {
  switch (buffer.kind) {
    case BufferKind::temporary: return 0;
    case BufferKind::external: return 1 + buffer.index;
    case BufferKind::output: return 1 + program.externals + buffer.index;
  }
  return kNotWanted;
}

// A user's kernel that evaluates a tensor would wait for itself.
class RunGuard {
 public:
  RunGuard() {
    if (t_running) fail("a tensor cannot be evaluated inside a kernel");
    t_running = true;
  }
  ~RunGuard() { t_running = false; }
  RunGuard(const RunGuard&) = delete;
  RunGuard& operator=(const RunGuard&) = delete;

 private:
  static thread_local bool t_running;
};
thread_local bool RunGuard::t_running = false;

}  // namespace

int64_t ExecContext::arena_bytes() const {
  const std::lock_guard lock(run_mutex_);
  return arena_ ? arena_->bytes : 0;
}

Executor::Executor(Program program, ExecContext& context)
    : program_(std::move(program)), context_(context) {
  check_memory();
  const HostSpan span(Profile::Kind::compile, "prepare kernels");
  context_.kernels().prepare(context_.backend(), std::span(&program_, 1));
  size_t most = 0;
  for (const Instruction& instruction : program_.instructions) {
    Step step;
    step.executable = context_.kernels().get(context_.backend(), instruction.call);
    if (instruction.call.ir) step.extent0 = instruction.call.ir->extents[0];
    step.first = int(places_.size());
    step.count = int(instruction.buffers.size());
    for (const int b : instruction.buffers) {
      if (b < 0) {
        places_.push_back({kNotWanted, 0});
      } else {
        const PlannedBuffer& buffer = program_.buffers[size_t(b)];
        places_.push_back({base_of(program_, buffer), buffer.offset});
      }
    }
    most = std::max(most, instruction.buffers.size());
    steps_.push_back(std::move(step));
  }
  bases_.resize(1 + size_t(program_.externals) + size_t(program_.outputs));
  operands_.resize(most);
}

void Executor::check_memory() const {
  const Report& report = program_.report;
  const Target& target = context_.backend().target();
  const int64_t needed = report.external_bytes + report.output_bytes + program_.arena_bytes;
  if (target.memory_bytes > 0 && needed > target.memory_bytes) {
    fail("out of memory: the program needs ", needed, " bytes on ", target.device, ", which has ",
         target.memory_bytes, "\n", to_string(report));
  }
  check_free_memory();
}

// What is there already (inputs and state, the arena of earlier programs) is not asked for again.
void Executor::check_free_memory() const {
  Backend& backend = context_.backend();
  std::optional<int64_t> free = backend.free_bytes();
  if (!free) return;
  const int64_t held = context_.arena_bytes();
  const int64_t wanted =
      program_.report.output_bytes + std::max<int64_t>(0, program_.arena_bytes - held);
  if (wanted <= *free) return;
  release_cached_memory();
  free = backend.free_bytes();
  if (wanted <= free.value_or(wanted)) return;
  const Target& target = backend.target();
  fail("out of memory: the program needs ", wanted, " more bytes on ", target.device,
       ", which has ", *free, " of ", target.memory_bytes, " free\n", to_string(program_.report));
}

void Executor::ensure_arena() {
  if (context_.arena_ && context_.arena_->bytes >= program_.arena_bytes) return;
  const auto make = [this] {
    Backend& backend = context_.backend();
    if (context_.arena_ && backend.extend(*context_.arena_, program_.arena_bytes)) return;
    context_.arena_.reset();
    context_.arena_ = backend.allocate_arena(program_.arena_bytes);
  };
  try {
    make();
  } catch (const Error&) {
    release_cached_memory();
    try {
      make();
    } catch (const Error& error) {
      fail(error.what(), ", for the temporaries of a program\n", to_string(program_.report));
    }
  }
}

void Executor::run(std::span<const Buffer> externals, std::span<const Buffer> outputs,
                   Profile* profile) {
  TESSERA_ASSERT(externals.size() == size_t(program_.externals));
  TESSERA_ASSERT(outputs.size() == size_t(program_.outputs));
  const RunGuard running;
  const std::lock_guard lock(context_.run_mutex_);
  ensure_arena();
  bases_[0] = {context_.arena_->handle, 0};
  for (size_t i = 0; i < externals.size(); ++i) bases_[1 + i] = ref(externals[i]);
  for (size_t i = 0; i < outputs.size(); ++i) bases_[1 + externals.size() + i] = ref(outputs[i]);
  const std::shared_ptr<Profile> active = profile == nullptr ? active_profile() : nullptr;
  if (active) profile = active.get();
  if (profile != nullptr) return run_profiled(*profile);
  if (records_) return replay();
  launch_all();
}

void Executor::launch_all() {
  for (size_t i = 0; i < steps_.size(); ++i) launch(i);
}

void Executor::replay() {
  auto found = std::ranges::find(recordings_, bases_, &Recording::bases);
  if (found == recordings_.end()) {
    // What is measured or made on first use is settled by the first run.
    if (recordings_.size() == kMostRecordings) recordings_.pop_back();
    recordings_.insert(recordings_.begin(), {bases_, nullptr});
    return launch_all();
  }
  std::rotate(recordings_.begin(), found, found + 1);
  Recording& here = recordings_.front();
  if (here.work == nullptr) here.work = record();
  if (here.work == nullptr) return launch_all();
  context_.backend().launch(*here.work, {}, 0, {});
}

std::shared_ptr<const Executable> Executor::record() {
  Backend& backend = context_.backend();
  records_ = backend.begin_recording({});
  if (!records_) return nullptr;
  std::string reason;
  try {
    launch_all();
  } catch (...) {
    backend.end_recording({}, reason);
    throw;
  }
  std::shared_ptr<const Executable> work = backend.end_recording({}, reason);
  if (work == nullptr) {
    records_ = false;
    log_warning(backend.target().device, ": a program of ", steps_.size(),
                " kernels is launched one by one, because it cannot be recorded: ", reason);
  }
  return work;
}

void Executor::run_profiled(Profile& profile) {
  Backend& backend = context_.backend();
  if (profile_id_ != profile.id()) {
    const std::string& device = backend.target().device;
    activities_ = {
        profile.intern({.kind = Profile::Kind::run, .label = "launch", .device = device})};
    for (size_t i = 0; i < steps_.size(); ++i) {
      activities_.push_back(profile.intern(activity_of(program_, i, backend.target())));
    }
    profile_id_ = profile.id();
  }
  const HostSpan span(profile, activities_[0]);
  for (size_t i = 0; i < steps_.size(); ++i) {
    const auto begin = Profile::Clock::now();
    launch(i);
    backend.synchronize({});
    HostSpan::add(profile, activities_[1 + i], begin, Profile::Clock::now(),
                  program_.instructions[i].bytes);
  }
}

void Executor::launch(size_t i) {
  const Step& step = steps_[i];
  for (int k = 0; k < step.count; ++k) {
    const Place& place = places_[size_t(step.first + k)];
    BufferRef operand;
    if (place.base != kNotWanted) {
      operand = bases_[size_t(place.base)];
      operand.offset += place.offset;
    }
    operands_[size_t(k)] = operand;
  }
  try {
    context_.backend().launch(*step.executable, {operands_.data(), size_t(step.count)},
                              step.extent0, {});
  } catch (const Error& error) {
    const Instruction& instruction = program_.instructions[i];
    fail(error.what(), " in kernel ", instruction.label,
         origin(instruction.scope, instruction.line));
  }
}

}  // namespace tessera
