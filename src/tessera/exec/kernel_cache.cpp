#include "tessera/exec/kernel_cache.h"

#include <atomic>
#include <bit>
#include <exception>
#include <limits>
#include <unordered_set>

#include "tessera/base/precision.h"
#include "tessera/base/thread_pool.h"
#include "tessera/runtime/compile_notice.h"

namespace tessera {

namespace {

// Of work that several threads do, what the first part in order to fail threw. Parts behind it need
// not be done, those in front of it must.
class FirstFailure {
 public:
  bool is_before(int64_t part) const { return at_ < part; }

  void add(int64_t part) {
    const std::lock_guard lock(mutex_);
    if (is_before(part)) return;
    at_ = part;
    error_ = std::current_exception();
  }

  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::atomic<int64_t> at_{std::numeric_limits<int64_t>::max()};
  std::mutex mutex_;
  std::exception_ptr error_;
};

}  // namespace

std::string kernel_key(const KernelCall& call) {
  if (call.ir) {
    std::string text = "ir " + key(*call.ir);
    for (const int64_t extent : call.parts) text += cat(' ', extent);
    return text;
  }
  std::string text =
      cat(call.kernel, ' ', call.attrs.axis, ' ', std::bit_cast<uint64_t>(call.attrs.scalar), ' ',
          std::bit_cast<uint64_t>(call.attrs.rate), ' ', call.outputs);
  if (allows_tf32()) text += " tf32";
  // Definitions are never freed, so an address names one.
  if (call.custom) text += cat(' ', static_cast<const void*>(call.custom.get()));
  for (const OperandView& operand : call.operands) {
    text += cat(' ', operand.dtype, operand.view.shape, operand.view.strides, operand.view.offset);
  }
  return text;
}

std::shared_ptr<const Executable> KernelCache::get(Backend& backend, const KernelCall& call) {
  std::string key = kernel_key(call);
  {
    const std::lock_guard lock(mutex_);
    if (const auto it = index_.find(key); it != index_.end()) {
      entries_.splice(entries_.begin(), entries_, it->second);
      return it->second->executable;
    }
  }
  // Compiled without the lock: it may take long. Two threads may then compile the same kernel once
  // each; the second result is dropped.
  std::shared_ptr<const Executable> executable = backend.compile(call);
  const std::lock_guard lock(mutex_);
  if (const auto it = index_.find(key); it != index_.end()) return it->second->executable;
  entries_.push_front({key, executable});
  index_[std::move(key)] = entries_.begin();
  if (entries_.size() > capacity_) {
    index_.erase(entries_.back().key);
    entries_.pop_back();
  }
  return executable;
}

size_t KernelCache::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

std::vector<const KernelCall*> KernelCache::new_calls(std::span<const Program> programs) const {
  std::vector<const KernelCall*> calls;
  std::unordered_set<std::string> seen;
  const std::lock_guard lock(mutex_);
  for (const Program& program : programs) {
    for (const Instruction& instruction : program.instructions) {
      const auto [key, is_new] = seen.insert(kernel_key(instruction.call));
      if (is_new && !index_.contains(*key)) calls.push_back(&instruction.call);
    }
  }
  return calls;
}

void KernelCache::prepare(Backend& backend, std::span<const Program> programs) {
  const std::vector<const KernelCall*> calls = new_calls(programs);
  const auto count = int64_t(calls.size());
  FirstFailure failure;
  const auto compile = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end && !failure.is_before(i); ++i) {
      const CompileBatch batch(count - i);
      try {
        get(backend, *calls[size_t(i)]);
      } catch (...) {
        failure.add(i);
      }
    }
  };
  if (backend.target().compiles_at_once) {
    thread_pool().parallel_for(count, 1, compile);
  } else {
    compile(0, count);
  }
  failure.rethrow();
}

}  // namespace tessera
