#include "tessera/tensor/storage.h"

#include "tessera/tensor/device.h"

namespace tessera {

std::shared_ptr<ValueSlot> value_slot(const Node& node, int out) {
  auto slot = std::static_pointer_cast<ValueSlot>(node.slot(out));
  if (slot && slot->is_stale() && node.op != Op::leaf) return nullptr;
  return slot;
}

const Buffer& read_slot(const ValueSlot& slot) {
  if (slot.is_stale()) {
    fail(slot.storage->name.empty() ? "" : slot.storage->name + ": ", "value was replaced by step ",
         slot.storage->replaced_by.load(), ", copy it first");
  }
  return slot.storage->buffer;
}

std::shared_ptr<Storage> make_storage(const Type& type, DeviceContext& device) {
  auto storage = std::make_shared<Storage>();
  storage->buffer = device.allocator.allocate(byte_size(type));
  storage->device = &device;
  return storage;
}

Value leaf_of(const Type& type, std::shared_ptr<Storage> storage, std::weak_ptr<VarState> var) {
  Value leaf = make_leaf(type);
  leaf.node->set_slot(0, std::make_shared<ValueSlot>(std::move(storage), std::move(var)));
  return leaf;
}

}  // namespace tessera
