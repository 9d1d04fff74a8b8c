// Rows of any floating type as rows of their compute type, for kernels written in f32 and f64.
#pragma once

#include "tessera/backend/cpu/isa.h"
#include "tessera/kernel/kernel_call.h"

namespace tessera::cpu {

class RowCodec {
 public:
  explicit RowCodec(DType dtype);

  const RowLoops& loops() const { return *loops_; }
  int memory_size() const { return memory_size_; }
  int compute_size() const { return compute_size_; }
  bool converts() const { return load_ != nullptr; }

  // n values at `from` in the compute type: `from` itself where nothing is to convert, else `room`.
  const char* read(const char* from, char* room, int64_t n) const {
    if (!converts()) return from;
    load_(room, from, {1, n, 0, 1, 0, 1});
    return room;
  }

  // Where to compute n values that belong at `to`; write() then puts them there.
  char* target(char* to, char* room) const { return converts() ? room : to; }
  void write(char* to, const char* room, int64_t n) const {
    if (converts()) store_(to, room, {1, n, 0, 1, 0, 1});
  }

 private:
  const RowLoops* loops_;
  int memory_size_, compute_size_;
  MoveLoop load_ = nullptr, store_ = nullptr;
};

// A contiguous (R…, C) as R rows of C values.
struct RowShape {
  int64_t rows, columns;
};
RowShape row_shape(const Shape& shape);

// Whether results at `to` can go past the caches: every row is whole lines. Not where `to` is an
// operand, whose lines are in the caches anyhow.
bool can_stream(const RowCodec& codec, const RowShape& shape, const char* to);

// Rows per task, so that a task is worth waking a thread.
int64_t rows_per_task(int64_t columns);

}  // namespace tessera::cpu
