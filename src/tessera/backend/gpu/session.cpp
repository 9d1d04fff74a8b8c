#include "tessera/backend/gpu/session.h"

#include <cstring>

namespace tessera::gpu {

Operand operand(BufferRef buffer, const OperandView& view) {
  const int64_t size = size_of(view.dtype);
  TESSERA_ASSERT(buffer.offset % size == 0);
  if (buffer.handle == nullptr) return {};
  return {buffer.handle, buffer.offset / size + view.view.offset};
}

void Arguments::append(const void* value, size_t bytes) {
  constexpr size_t kAlignment = 16;
  const size_t offset = (bytes_.size() + kAlignment - 1) / kAlignment * kAlignment;
  bytes_.resize(offset + bytes);
  std::memcpy(bytes_.data() + offset, value, bytes);
  values_.push_back({offset, bytes});
}

}  // namespace tessera::gpu
