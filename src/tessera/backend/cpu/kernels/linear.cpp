// linear: a (M, K), b (K, N), bias (N) -> y (M, N), sum (M, N).
// linear_slope: a (M, K), b (K, N), x (M, N) -> y (M, N), sums (N).
// What follows the product is done to its blocks while they are near.
#include "tessera/backend/cpu/isa.h"
#include "tessera/backend/cpu/kernels/epilogue.h"
#include "tessera/backend/cpu/kernels/named_kernel.h"
#include "tessera/backend/cpu/kernels/product.h"
#include "tessera/backend/cpu/scratch.h"
#include "tessera/backend/cpu/tiling.h"

namespace tessera::cpu {

namespace {

constexpr int kActivations = 3;  // none, gelu_tanh, relu: values of attrs.axis

// Operands: a, b, then bias or x, the result, and sum or sums.
class Linear : public NamedKernel {
 public:
  explicit Linear(const KernelCall& call)
      : call_(call),
        is_slope_(call.kernel == "linear_slope"),
        loops_(dtype() == DType::f32 ? loops().finish_f32 : loops().finish_f64),
        load_(loops().load[int(dtype() == DType::f32 ? Storage::bytes4 : Storage::bytes8)]),
        group_(epilogue_group(dtype())) {}

  void run(std::span<char* const> at) const override {
    char *y = address(at, 3), *second = address(at, 4);
    if (y == nullptr && second == nullptr) return;
    is_slope_ ? run_slope(at, y, second) : run_linear(at, y, second);
  }

 private:
  DType dtype() const { return call_.operands[0].dtype; }
  int64_t size() const { return size_of(dtype()); }
  int64_t m() const { return view(3).shape[0]; }
  int64_t n() const { return view(3).shape[1]; }
  const View& view(int operand) const { return call_.operands[size_t(operand)].view; }

  char* address(std::span<char* const> at, int operand) const {
    char* const start = at[size_t(operand)];
    return start == nullptr ? nullptr : start + view(operand).offset * size();
  }

  void run_linear(std::span<char* const> at, char* y, char* sum) const {
    // Where nobody wants more than the sum, it is the result.
    const bool alone = y == nullptr;
    Epilogue e = {loops_.linear[alone ? 0 : call_.attrs.axis],
                  dtype(),
                  m(),
                  n(),
                  alone ? sum : y,
                  alone ? n() : view(3).strides[0]};
    e.sum = alone ? nullptr : sum;
    // A sum is kept for a gradient, which is far.
    e.streams = outgrows_caches(2 * m() * n() * size());
    char* const room = scratch(Scratch::beside, n() * size());
    e.bias = packed(address(at, 2), {1, n(), n(), 1, 0, view(2).strides[0]}, room);
    multiply(at, e);
  }

  void run_slope(std::span<char* const> at, char* y, char* sums) const {
    const View& x = view(2);
    const int64_t all = padded(m() * n() * size());
    const int64_t y_bytes = y == nullptr ? all : 0;
    const int64_t x_bytes = x.strides[1] == 1 || n() == 1 ? 0 : all;
    const int64_t groups = padded(divide_up(m(), group_) * n() * size());
    char* const room = scratch(Scratch::beside, y_bytes + x_bytes + groups);
    Epilogue e = {loops_.slope, dtype(), m(), n(), y, view(3).strides[0]};
    if (y == nullptr) {
      e.c = room;
      e.c_row = n();
    }
    e.x = packed(address(at, 2), {m(), n(), n(), 1, x.strides[0], x.strides[1]}, room + y_bytes);
    e.x_row = x_bytes > 0 ? n() : x.strides[0];
    e.partial_sums = sums == nullptr ? nullptr : room + y_bytes + x_bytes;
    e.group = group_;
    multiply(at, e);
    if (sums != nullptr) sum_groups(e, sums);
  }

  // A matrix with contiguous rows: as it lies, or copied to `room`.
  const char* packed(const char* from, const Block& block, char* room) const {
    if (block.s1 == 1 || block.n1 == 1) return from;
    load_(room, from, block);
    return room;
  }

  void multiply(std::span<char* const> at, const Epilogue& e) const {
    const View &a = view(0), &b = view(1);
    const Product p = {dtype(),
                       e.m,
                       e.n,
                       a.shape[1],
                       address(at, 0),
                       a.strides[0],
                       a.strides[1],
                       address(at, 1),
                       b.strides[0],
                       b.strides[1],
                       e.c,
                       e.c_row,
                       1};
    if (!multiply_with_onednn(p)) return multiply_floats(p, &e);
    finish_all(e);
  }

  const KernelCall call_;
  const bool is_slope_;
  const FinishLoops& loops_;
  const MoveLoop load_;
  const int64_t group_;
};

void expect_contiguous_rows(const KernelCall& call, int operand, std::string_view what) {
  const View& view = call.operands[size_t(operand)].view;
  if (view.strides[1] == 1 || view.shape[1] == 1) return;
  fail(call.kernel, ": expected ", what, " with contiguous rows, got strides ", view.strides);
}

}  // namespace

std::unique_ptr<NamedKernel> make_linear(const KernelCall& call) {
  const Shape &a = call.operands[0].view.shape, &b = call.operands[1].view.shape;
  if (a.rank() != 2 || b.rank() != 2 || a[1] != b[0]) {
    fail(call.kernel, ": expected (m, k) and (k, n), got ", a, " @ ", b);
  }
  const Shape matrix = {a[0], b[1]}, row = {b[1]};
  const DType dtype = call.operands[0].dtype;
  if (dtype != DType::f32 && dtype != DType::f64) {
    fail(call.kernel, ": expected f32 or f64, got ", dtype);
  }
  const bool is_slope = call.kernel == "linear_slope";
  if (!is_slope) expect_axis(call, kActivations);
  constexpr std::string_view kNames[] = {"a", "b", "the third operand", "y", "the second result"};
  for (int i = 1; i < 5; ++i) expect_dtype(call, i, kNames[i], dtype);
  expect_shape(call, 2, kNames[2], is_slope ? matrix : row);
  expect_shape(call, 3, kNames[3], matrix);
  expect_shape(call, 4, kNames[4], is_slope ? row : matrix);
  expect_contiguous_rows(call, 3, kNames[3]);
  return std::make_unique<Linear>(call);
}

}  // namespace tessera::cpu
