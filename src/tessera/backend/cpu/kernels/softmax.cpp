// softmax: x (R…, C) -> y, over the last axis.
#include <functional>

#include "tessera/backend/cpu/kernels/named_kernel.h"
#include "tessera/backend/cpu/kernels/rows.h"
#include "tessera/backend/cpu/scratch.h"
#include "tessera/backend/cpu/stores.h"
#include "tessera/backend/cpu/tiling.h"
#include "tessera/base/thread_pool.h"

namespace tessera::cpu {

namespace {

class Softmax : public NamedKernel {
 public:
  explicit Softmax(const KernelCall& call)
      : codec_(call.operands[0].dtype),
        shape_(row_shape(call.operands[0].view.shape)),
        x_offset_(call.operands[0].view.offset),
        y_offset_(call.operands[1].view.offset),
        stores_(2 * shape_.rows * shape_.columns * codec_.memory_size()) {}

  void run(std::span<char* const> at) const override {
    const char* x = at[0] + x_offset_ * codec_.memory_size();
    char* y = at[1] + y_offset_ * codec_.memory_size();
    if (y == x || !can_stream(codec_, shape_, y)) return run(x, y, false);
    stores_.run([&](bool past) { run(x, y, past); });
  }

 private:
  void run(const char* x, char* y, bool past) const {
    const int64_t row_bytes = shape_.columns * codec_.memory_size();
    const int64_t room_bytes = padded(shape_.columns * codec_.compute_size());
    auto body = [&](int64_t begin, int64_t end) {
      const int64_t rows = codec_.converts() ? 1 : end - begin;  // at once
      char* room = scratch(Scratch::tile, 2 * room_bytes);
      for (int64_t row = begin; row < end; row += rows) {
        const char* from = codec_.read(x + row * row_bytes, room, shape_.columns);
        char* to = codec_.target(y + row * row_bytes, room + room_bytes);
        codec_.loops().softmax(rows, shape_.columns, to, from, past ? room : nullptr);
        codec_.write(y + row * row_bytes, to, shape_.columns);
      }
      if (past) loops().stream_fence();
    };
    const int64_t grain = rows_per_task(shape_.columns);
    thread_pool().parallel_for(shape_.rows, tasks_of_part(shape_.rows, grain), std::cref(body));
  }

  RowCodec codec_;
  RowShape shape_;
  int64_t x_offset_, y_offset_;
  mutable Stores stores_;
};

}  // namespace

std::unique_ptr<NamedKernel> make_softmax(const KernelCall& call) {
  expect_float(call, 0, "x");
  const Shape& x = call.operands[0].view.shape;
  if (x.empty()) fail("softmax: expected x of at least 1 dimension, got ()");
  expect_shape(call, 1, "y", x);
  expect_dtype(call, 1, "y", call.operands[0].dtype);
  expect_contiguous(call);
  return std::make_unique<Softmax>(call);
}

}  // namespace tessera::cpu
