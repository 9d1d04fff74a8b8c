#include "tessera/graph/custom.h"

#include <deque>
#include <mutex>

namespace tessera {

namespace {

struct Table {
  std::mutex mutex;
  std::deque<CustomDefinition> definitions;  // references stay valid while it grows
};

Table& table() {
  static auto* instance = new Table;
  return *instance;
}

}  // namespace

bool CustomDefinition::runs_on(std::string_view kind) const {
  if (kind == "cpu") return bool(kernel->cpu);
  return !(kind == "cuda" ? kernel->cuda : kernel->opencl).empty();
}

uint64_t register_custom(CustomDefinition definition) {
  const std::lock_guard lock(table().mutex);
  table().definitions.push_back(std::move(definition));
  return table().definitions.size() - 1;
}

const CustomDefinition& custom_definition(const Attrs& attrs) {
  const std::lock_guard lock(table().mutex);
  TESSERA_ASSERT(attrs.bits < table().definitions.size());
  return table().definitions[size_t(attrs.bits)];
}

}  // namespace tessera
