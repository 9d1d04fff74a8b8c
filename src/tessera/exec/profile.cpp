#include "tessera/exec/profile.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "tessera/graph/scope.h"

namespace tessera {

namespace {

int64_t ns_between(Profile::Clock::time_point begin, Profile::Clock::time_point end) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(end - begin).count();
}

uint64_t next_id() {
  static std::atomic<uint64_t> next{1};
  return next.fetch_add(1);
}

std::string key_of(const Profile::Activity& a) {
  return cat(int(a.kind), '\n', a.label, '\n', a.device, '\n', a.scope, '\n', a.place, '\n',
             a.operands, '\n', a.arena_bytes, '\n', a.flops);
}

struct Active {
  std::mutex mutex;
  std::shared_ptr<Profile> profile;
};

// Never destroyed: threads may still evaluate while the process ends.
Active& active() {
  static auto* instance = new Active;
  return *instance;
}

thread_local HostSpan* t_innermost = nullptr;

std::string place_of(uint32_t scope, SourceLine line) {
  if (line.file == nullptr) return scope_location(scope);
  const std::string_view path = line.file;
  return cat(path.substr(path.rfind('/') + 1), ':', line.line);
}

// Known for matrix products alone: a multiplication and an addition for every term.
double flops_of(const KernelCall& call) {
  if (!call.kernel.starts_with("matmul")) return 0;
  const Dims& a = call.operands[0].view.shape;  // (…, M, K)
  const Dims& c = call.operands[call.operands.size() - size_t(call.outputs)].view.shape;
  return a.rank() < 2 ? 0 : 2.0 * double(numel(c)) * double(a[a.rank() - 1]);
}

// Of a joined kernel, those of its first part.
std::string operands_of(const KernelCall& call) {
  std::string text;
  const size_t inputs = call.operands.size() - size_t(call.outputs);
  const char* separator = "";
  for (size_t i = 0; i < call.operands.size(); ++i) {
    if (i == inputs) text += text.empty() ? "-> " : " -> ";
    if (i == inputs) separator = "";
    if (part_operand(call, i).part > 0) continue;
    text += cat(separator, call.operands[i].dtype, call.operands[i].view.shape);
    separator = ", ";
  }
  if (!call.parts.empty()) text += cat("; and ", call.parts.size() - 1, " more");
  return text;
}

}  // namespace

std::atomic<bool> detail::profiling{false};

Profile::Profile(size_t max_events) : id_(next_id()), max_events_(max_events) {}

int Profile::intern(const Activity& activity) {
  std::string key = key_of(activity);
  const std::lock_guard lock(mutex_);
  const auto [it, added] = index_.emplace(std::move(key), int(totals_.size()));
  if (added) {
    contents_.activities.push_back(activity);
    totals_.emplace_back();
  }
  return it->second;
}

int Profile::thread_number() {
  const auto [it, added] = threads_.emplace(std::this_thread::get_id(), contents_.threads);
  if (added) ++contents_.threads;
  return it->second;
}

void Profile::add(int activity, Clock::time_point begin, Clock::time_point end, int64_t bytes,
                  int64_t inside) {
  const std::lock_guard lock(mutex_);
  const int64_t nanoseconds = ns_between(begin, end);
  Total& total = totals_[size_t(activity)];
  ++total.calls;
  total.nanoseconds += nanoseconds - inside;
  total.bytes += bytes;
  const int thread = thread_number();
  if (contents_.events.size() < max_events_) {
    contents_.events.push_back({activity, thread, ns_between(begin_, begin), nanoseconds, bytes});
  } else {
    ++contents_.dropped;
  }
}

void Profile::stop() {
  const std::lock_guard lock(mutex_);
  if (stopped_ < 0) stopped_ = wall();
}

int64_t Profile::wall() const {
  return stopped_ >= 0 ? stopped_ : ns_between(begin_, Clock::now());
}

int64_t Profile::nanoseconds() const {
  const std::lock_guard lock(mutex_);
  return wall();
}

int64_t Profile::dropped() const {
  const std::lock_guard lock(mutex_);
  return contents_.dropped;
}

std::vector<Profile::Row> Profile::rows() const {
  const std::lock_guard lock(mutex_);
  std::vector<Row> rows;
  std::map<std::tuple<Kind, std::string, std::string>, size_t> index;
  for (size_t i = 0; i < totals_.size(); ++i) {
    const Activity& activity = contents_.activities[i];
    const Total& total = totals_[i];
    if (total.calls == 0) continue;
    const auto [it, added] =
        index.emplace(std::tuple(activity.kind, activity.label, activity.scope), rows.size());
    if (added) rows.push_back({activity.kind, activity.label, activity.scope});
    Row& row = rows[it->second];
    row.calls += total.calls;
    row.nanoseconds += total.nanoseconds;
    row.bytes += total.bytes;
    row.flops += activity.flops * double(total.calls);
  }
  return rows;
}

Profile::Contents Profile::contents() const {
  const std::lock_guard lock(mutex_);
  Contents copy = contents_;
  copy.nanoseconds = wall();
  return copy;
}

std::shared_ptr<Profile> active_profile() {
  if (!is_profiling()) return nullptr;
  Active& a = active();
  const std::lock_guard lock(a.mutex);
  return a.profile;
}

std::shared_ptr<Profile> set_active_profile(std::shared_ptr<Profile> profile) {
  Active& a = active();
  const std::lock_guard lock(a.mutex);
  detail::profiling.store(profile != nullptr, std::memory_order_relaxed);
  return std::exchange(a.profile, std::move(profile));
}

void HostSpan::begin_active(Profile::Kind kind, const char* label, int64_t bytes) {
  owned_ = active_profile();
  if (owned_ == nullptr) return;
  begin(*owned_, owned_->intern({.kind = kind, .label = label}), bytes);
}

void HostSpan::begin(Profile& profile, int activity, int64_t bytes) {
  profile_ = &profile;
  activity_ = activity;
  bytes_ = bytes;
  outer_ = std::exchange(t_innermost, this);
  begin_ = Profile::Clock::now();
}

void HostSpan::end() noexcept {
  const auto now = Profile::Clock::now();
  t_innermost = outer_;
  if (outer_ != nullptr && outer_->profile_ == profile_) outer_->inside_ += ns_between(begin_, now);
  try {
    profile_->add(activity_, begin_, now, bytes_, inside_);
  } catch (const std::bad_alloc&) {
    // Without memory for one more event: better no event than no program.
  }
}

void HostSpan::add(Profile& profile, int activity, Profile::Clock::time_point begin,
                   Profile::Clock::time_point end, int64_t bytes) {
  if (t_innermost != nullptr && t_innermost->profile_ == &profile) {
    t_innermost->inside_ += ns_between(begin, end);
  }
  profile.add(activity, begin, end, bytes);
}

Program compile_profiled(const GraphFunction& function, const Target& target,
                         const CompileOptions& options) {
  const std::shared_ptr<Profile> profile = active_profile();
  if (profile == nullptr) return compile_graph(function, target, options);
  auto begin = Profile::Clock::now();
  Program program = compile_graph(function, target, options);
  for (const PassTime& time : program.report.passes) {
    const int pass = profile->intern({.kind = Profile::Kind::compile, .label = time.pass});
    const auto end = begin + std::chrono::nanoseconds(time.nanoseconds);
    HostSpan::add(*profile, pass, begin, end, 0);
    begin = end;
  }
  return program;
}

Profile::Activity activity_of(const Program& program, size_t at, const Target& target) {
  const Instruction& instruction = program.instructions[at];
  const std::vector<int64_t>& timeline = program.report.timeline;
  return {.kind = Profile::Kind::kernel,
          .label = instruction.label,
          .device = target.device,
          .scope = scope_path(instruction.scope),
          .place = place_of(instruction.scope, instruction.line),
          .operands = operands_of(instruction.call),
          .arena_bytes = at < timeline.size() ? timeline[at] : 0,
          .flops = flops_of(instruction.call)};
}

}  // namespace tessera
