// Where evaluated values live.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "tessera/graph/node.h"
#include "tessera/runtime/backend.h"

namespace tessera {

struct DeviceContext;
struct VarState;

// A buffer whose contents a step may replace; each replacement is a new version.
struct Storage {
  Buffer buffer;
  DeviceContext* device = nullptr;
  std::string name;  // of the Var, for errors; empty for other values
  std::atomic<uint64_t> version{0};
  std::atomic<uint64_t> replaced_by{0};  // the step that wrote the present version
};

// The evaluated value of one output of a node: a version of some storage.
class ValueSlot : public Slot {
 public:
  ValueSlot(std::shared_ptr<Storage> storage_, std::weak_ptr<VarState> var_ = {})
      : storage(std::move(storage_)), version(storage->version.load()), var(std::move(var_)) {}

  const std::shared_ptr<Storage> storage;
  const uint64_t version;
  const std::weak_ptr<VarState> var;  // set on the leaf of a Var

  bool is_stale() const { return storage->version.load() != version; }
};

// The slot of a value, or null when it has to be computed: it never was, or it was left in the
// storage of a Var that a later step has replaced. A leaf cannot be computed, so its slot may be
// stale.
std::shared_ptr<ValueSlot> value_slot(const Node& node, int out);
inline std::shared_ptr<ValueSlot> value_slot(const Value& value) {
  return value_slot(*value.node, value.out);
}

// The slot's buffer; throws when a step has replaced the value since.
const Buffer& read_slot(const ValueSlot& slot);

// Storage of `type`, contents undefined, and a leaf that stands for it.
std::shared_ptr<Storage> make_storage(const Type& type, DeviceContext& device);
Value leaf_of(const Type& type, std::shared_ptr<Storage> storage, std::weak_ptr<VarState> var = {});

}  // namespace tessera
