#include "tessera/exec/kernel_cache.h"

#include <algorithm>
#include <bit>
#include <unordered_set>

#include "tessera/base/precision.h"

namespace tessera {

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

int64_t KernelCache::count_new(const Program& program) const {
  std::unordered_set<std::string> keys;
  for (const Instruction& instruction : program.instructions) {
    keys.insert(kernel_key(instruction.call));
  }
  const std::lock_guard lock(mutex_);
  return std::ranges::count_if(keys, [&](const auto& key) { return !index_.contains(key); });
}

}  // namespace tessera
