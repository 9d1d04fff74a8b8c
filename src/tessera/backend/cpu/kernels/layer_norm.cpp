// layer_norm: x (R…, C), gamma (C), beta (C) -> y, mean (R…, 1), rstd (R…, 1).
// layer_norm_backward: g (R…, C), x, gamma (C), mean, rstd -> dx, dgamma (C), dbeta (C).
// An output that nobody wants has no address; it is computed into scratch and dropped.
#include <algorithm>
#include <cstring>
#include <functional>

#include "tessera/backend/cpu/kernels/named_kernel.h"
#include "tessera/backend/cpu/kernels/rows.h"
#include "tessera/backend/cpu/scratch.h"
#include "tessera/backend/cpu/stores.h"
#include "tessera/backend/cpu/tiling.h"
#include "tessera/base/thread_pool.h"

namespace tessera::cpu {

namespace {

// The most partial sums of dgamma and dbeta; the blocks follow from the shape alone, so the result
// does not depend on the number of threads.
constexpr int64_t kMostBlocks = 64;
constexpr int64_t kFewestRows = 16;  // of a block

char* address(const KernelCall& call, std::span<char* const> at, int operand) {
  const OperandView& view = call.operands[size_t(operand)];
  if (at[size_t(operand)] == nullptr) return nullptr;
  return at[size_t(operand)] + view.view.offset * size_of(view.dtype);
}

class LayerNorm : public NamedKernel {
 public:
  explicit LayerNorm(const KernelCall& call)
      : call_(call),
        codec_(call.operands[0].dtype),
        shape_(row_shape(call.operands[0].view.shape)),
        row_bytes_(shape_.columns * codec_.memory_size()),
        room_bytes_(padded(shape_.columns * codec_.compute_size())) {}

 protected:
  int64_t columns() const { return shape_.columns; }

  // Row `row` of an output in its compute type: in place where that is wanted and possible.
  char* target(char* output, int64_t row, char* room) const {
    return output == nullptr ? room : codec_.target(output + row * row_bytes_, room);
  }
  void write(char* output, int64_t row, const char* from) const {
    if (output != nullptr) codec_.write(output + row * row_bytes_, from, columns());
  }

  KernelCall call_;
  RowCodec codec_;
  RowShape shape_;
  int64_t row_bytes_, room_bytes_;
};

class LayerNormForward : public LayerNorm {
 public:
  explicit LayerNormForward(const KernelCall& call)
      : LayerNorm(call), stores_(2 * shape_.rows * row_bytes_) {}

  void run(std::span<char* const> at) const override {
    char* y = address(call_, at, 3);
    if (y == nullptr || y == address(call_, at, 0) || !can_stream(codec_, shape_, y)) {
      return run(at, false);
    }
    stores_.run([&](bool past) { run(at, past); });
  }

 private:
  void run(std::span<char* const> at, bool past) const {
    char* room = scratch(Scratch::launch, 2 * room_bytes_);
    const char* gamma = codec_.read(address(call_, at, 1), room, columns());
    const char* beta = codec_.read(address(call_, at, 2), room + room_bytes_, columns());
    const char* x = address(call_, at, 0);
    char* y = address(call_, at, 3);
    char *mean = address(call_, at, 4), *rstd = address(call_, at, 5);
    auto body = [&](int64_t begin, int64_t end) {
      char* own = scratch(Scratch::tile, 2 * room_bytes_);
      const bool in_place = !codec_.converts() && y != nullptr;
      const int64_t rows = in_place ? end - begin : 1;  // at once
      for (int64_t row = begin; row < end; row += rows) {
        const char* from = codec_.read(x + row * row_bytes_, own, columns());
        char* to = target(y, row, own + room_bytes_);
        const auto statistic = [&](char* output) {
          return output == nullptr ? nullptr : output + row * codec_.compute_size();
        };
        codec_.loops().layer_norm(rows, columns(), to, statistic(mean), statistic(rstd), from,
                                  gamma, beta, call_.attrs.scalar, past);
        write(y, row, to);
      }
      if (past) loops().stream_fence();
    };
    const int64_t grain = rows_per_task(columns());
    thread_pool().parallel_for(shape_.rows, tasks_of_part(shape_.rows, grain), std::cref(body));
  }

  mutable Stores stores_;
};

class LayerNormBackward : public LayerNorm {
 public:
  using LayerNorm::LayerNorm;

  void run(std::span<char* const> at) const override {
    const int64_t block_rows = std::max(kFewestRows, (shape_.rows + kMostBlocks - 1) / kMostBlocks);
    const int64_t blocks = (shape_.rows + block_rows - 1) / block_rows;
    // gamma, then dgamma and dbeta of each block, then their sums.
    char* room = scratch(Scratch::launch, (2 * blocks + 3) * room_bytes_);
    char* sums = room + room_bytes_;
    std::memset(sums, 0, size_t((2 * blocks + 2) * room_bytes_));
    const char* gamma = codec_.read(address(call_, at, 2), room, columns());
    auto body = [&](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block) {
        const int64_t first = block * block_rows;
        run_rows(at, gamma, sums + 2 * block * room_bytes_, first,
                 std::min(shape_.rows, first + block_rows));
      }
    };
    const int64_t grain = std::max<int64_t>(1, rows_per_task(columns()) / block_rows);
    thread_pool().parallel_for(blocks, grain, std::cref(body));
    char* total = sums + 2 * blocks * room_bytes_;
    for (int64_t block = 0; block < blocks; ++block) {
      const char* part = sums + 2 * block * room_bytes_;
      add(total, part);
      add(total + room_bytes_, part + room_bytes_);
    }
    finish(address(call_, at, 6), total);
    finish(address(call_, at, 7), total + room_bytes_);
  }

 private:
  void run_rows(std::span<char* const> at, const char* gamma, char* part, int64_t begin,
                int64_t end) const {
    const char *g = address(call_, at, 0), *x = address(call_, at, 1);
    const char *mean = address(call_, at, 3), *rstd = address(call_, at, 4);
    char* dx = address(call_, at, 5);
    char* own = scratch(Scratch::tile, 3 * room_bytes_);
    const bool past = streams(at);
    for (int64_t row = begin; row < end; ++row) {
      const int64_t at_row = row * row_bytes_, statistic = row * codec_.compute_size();
      const char* g_row = codec_.read(g + at_row, own, columns());
      const char* x_row = codec_.read(x + at_row, own + room_bytes_, columns());
      char* to = target(dx, row, own + 2 * room_bytes_);
      codec_.loops().layer_norm_backward(columns(), to, part, part + room_bytes_, g_row, x_row,
                                         gamma, mean + statistic, rstd + statistic, past);
      write(dx, row, to);
    }
    if (past) loops().stream_fence();
  }

  bool streams(std::span<char* const> at) const {
    const char* dx = address(call_, at, 5);
    const bool own = dx != address(call_, at, 0) && dx != address(call_, at, 1);
    return dx != nullptr && own && can_stream(codec_, shape_, dx) &&
           outgrows_caches(3 * shape_.rows * row_bytes_);
  }

  void add(char* total, const char* part) const {
    const DType compute = codec_.compute_size() == 8 ? DType::f64 : DType::f32;
    loops().combine[int(ReduceOp::sum)][int(compute)](columns(), total, nullptr, part, nullptr);
  }

  void finish(char* to, const char* total) const {
    if (to == nullptr) return;
    if (codec_.converts()) return codec_.write(to, total, columns());
    std::memcpy(to, total, size_t(row_bytes_));
  }
};

Shape statistics_shape(const Shape& x) {
  Shape shape = x;
  shape[shape.rank() - 1] = 1;
  return shape;
}

// Operands of the call, by position: those like x, those of one value per column and per row.
struct LayerNormOperands {
  int x;
  std::initializer_list<int> like_x, columns, statistics;
};

void expect_layer_norm(const KernelCall& call, const LayerNormOperands& operands) {
  expect_float(call, operands.x, "x");
  const OperandView& x = call.operands[size_t(operands.x)];
  const Shape& shape = x.view.shape;
  if (shape.empty()) fail(call.kernel, ": expected x of at least 1 dimension, got ()");
  auto expect = [&](int i, std::string_view what, const Shape& wanted, DType dtype) {
    expect_shape(call, i, what, wanted);
    expect_dtype(call, i, what, dtype);
  };
  for (int i : operands.like_x) expect(i, "an operand like x", shape, x.dtype);
  for (int i : operands.columns) expect(i, "a value per column", {shape.back()}, x.dtype);
  for (int i : operands.statistics) {
    expect(i, "a statistic per row", statistics_shape(shape), compute_type(x.dtype));
  }
  expect_contiguous(call);
}

}  // namespace

std::unique_ptr<NamedKernel> make_layer_norm(const KernelCall& call) {
  expect_layer_norm(call, {0, {3}, {1, 2}, {4, 5}});
  return std::make_unique<LayerNormForward>(call);
}

std::unique_ptr<NamedKernel> make_layer_norm_backward(const KernelCall& call) {
  expect_layer_norm(call, {1, {0, 5}, {2, 6, 7}, {3, 4}});
  return std::make_unique<LayerNormBackward>(call);
}

}  // namespace tessera::cpu
