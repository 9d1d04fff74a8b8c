#include "tessera/runtime/registry.h"

#include <algorithm>
#include <map>
#include <mutex>

namespace tessera {

namespace {

struct Entry {
  BackendFactory factory;
  std::unique_ptr<Backend> made;
};

struct Registry {
  std::mutex mutex;
  std::map<std::string, Entry, std::less<>> entries;
};

// Never destroyed: buffers held by objects of static storage return to their backend after main().
Registry& registry() {
  static Registry* const instance = new Registry;
  return *instance;
}

}  // namespace

void register_backend(std::string name, BackendFactory factory) {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  r.entries.try_emplace(std::move(name), Entry{std::move(factory), nullptr});
}

std::vector<std::string> backend_names() {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  std::vector<std::string> names;
  for (const auto& [name, entry] : r.entries) names.push_back(name);
  return names;
}

Backend& backend(std::string_view name) {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  if (r.entries.empty()) fail("backend: none is registered: call tessera::init() first");
  const auto found = r.entries.find(name);
  if (found == r.entries.end()) {
    std::string known;
    for (const auto& [other, entry] : r.entries) known += (known.empty() ? "" : ", ") + other;
    fail("backend: expected one of [", known, "], got '", name, "'");
  }
  Entry& entry = found->second;
  if (entry.made == nullptr) entry.made = entry.factory();
  return *entry.made;
}

void call_kernel(Backend& backend, const KernelCall& call, std::span<const Buffer> operands) {
  if (operands.size() != call.operands.size()) {
    fail("call_kernel: expected ", call.operands.size(), " buffers, got ", operands.size());
  }
  const std::unique_ptr<Executable> executable = backend.compile(call);
  std::vector<BufferRef> refs;
  for (const Buffer& buffer : operands) refs.push_back(ref(buffer));
  const int64_t extent0 = call.ir ? call.ir->extents[0] : 0;
  backend.launch(*executable, refs, extent0, Stream{});
  backend.synchronize(Stream{});
}

}  // namespace tessera
