// Compiled kernels, shared by all Programs of a backend: a new shape plans anew but compiles only
// what is new about its kernels.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "tessera/compile/program.h"
#include "tessera/runtime/backend.h"

namespace tessera {

class KernelCache {
 public:
  explicit KernelCache(size_t capacity = 4096) : capacity_(capacity) {}

  // The kernel for this call, compiled now or before. Thread safe.
  std::shared_ptr<const Executable> get(Backend& backend, const KernelCall& call);

  size_t size() const;

  // Compiles what get() would have to for these programs; where the target compiles_at_once, by as
  // many threads as the pool has. Throws what the first kernel in their order that fails throws.
  void prepare(Backend& backend, std::span<const Program> programs);

 private:
  struct Entry {
    std::string key;
    std::shared_ptr<const Executable> executable;
  };

  // The first call of each kernel that is not here.
  std::vector<const KernelCall*> new_calls(std::span<const Program> programs) const;

  mutable std::mutex mutex_;
  size_t capacity_;
  std::list<Entry> entries_;  // most recently used first
  std::unordered_map<std::string, std::list<Entry>::iterator> index_;
};

// Everything a backend's compiled kernel depends on.
std::string kernel_key(const KernelCall& call);

}  // namespace tessera
