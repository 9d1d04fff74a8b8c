#include "tessera/backend/cpu/kernels/rows.h"

#include <algorithm>

namespace tessera::cpu {

RowCodec::RowCodec(DType dtype)
    : loops_(dtype == DType::f64 ? &cpu::loops().rows_f64 : &cpu::loops().rows_f32),
      memory_size_(size_of(dtype)),
      compute_size_(size_of(compute_type(dtype))) {
  if (!is_half(dtype)) return;
  const Storage storage = dtype == DType::f16 ? Storage::f16 : Storage::bf16;
  load_ = cpu::loops().load[int(storage)];
  store_ = cpu::loops().store[int(storage)];
}

RowShape row_shape(const Shape& shape) {
  Shape leading = shape;
  leading.erase(shape.rank() - 1);
  return {numel(leading), shape.back()};
}

bool can_stream(const RowCodec& codec, const RowShape& shape, const char* to) {
  const int64_t row_bytes = shape.columns * codec.memory_size();
  return !codec.converts() && row_bytes % 64 == 0 && reinterpret_cast<uintptr_t>(to) % 64 == 0;
}

int64_t rows_per_task(int64_t columns) {
  constexpr int64_t kWorthAThread = 16384;  // values
  return std::max<int64_t>(1, kWorthAThread / std::max<int64_t>(1, columns));
}

}  // namespace tessera::cpu
