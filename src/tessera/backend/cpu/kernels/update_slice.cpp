// copy: x -> y.
// update_slice: x, u, start -> y; y = x with u placed at `start` along the axis.
#include <cstring>

#include "tessera/backend/cpu/kernels/index_reader.h"
#include "tessera/backend/cpu/kernels/named_kernel.h"
#include "tessera/backend/cpu/kernels/view_copy.h"

namespace tessera::cpu {

namespace {

class Copy : public NamedKernel {
 public:
  explicit Copy(const KernelCall& call) : copy_(call.operands[0], call.operands[1]) {}
  void run(std::span<char* const> at) const override { copy_.run(at[0], at[1]); }

 private:
  ViewCopy copy_;
};

// The first `u`-shaped part of y along the axis.
OperandView slice_of(const OperandView& y, const Shape& u) {
  OperandView slice = y;
  slice.view.shape = u;
  return slice;
}

class UpdateSlice : public NamedKernel {
 public:
  explicit UpdateSlice(const KernelCall& call)
      : start_(call.operands[2]),
        same_view_(call.operands[0].view == call.operands[3].view),
        whole_(call.operands[0], call.operands[3]),
        slice_(call.operands[1], slice_of(call.operands[3], call.operands[1].view.shape)) {
    const int axis = int(call.attrs.axis);
    const OperandView& y = call.operands[3];
    limit_ = y.view.shape[axis] - call.operands[1].view.shape[axis];
    step_bytes_ = y.view.strides[axis] * size_of(y.dtype);
  }

  void run(std::span<char* const> at) const override {
    const int64_t start = start_.read(at[2], 0);
    if (start < 0 || start > limit_) {
      fail("update_slice: start ", start, " is out of range [0, ", limit_, "]");
    }
    const bool in_place = at[0] == at[3] && same_view_;
    if (!in_place) whole_.run(at[0], at[3]);
    slice_.run(at[1], at[3] + start * step_bytes_);
  }

 private:
  IndexReader start_;
  bool same_view_;
  ViewCopy whole_, slice_;
  int64_t limit_, step_bytes_;
};

void expect_update(const KernelCall& call) {
  const Shape &x = call.operands[0].view.shape, &u = call.operands[1].view.shape;
  const int axis = int(call.attrs.axis);
  bool fits = x.rank() == u.rank();
  for (int i = 0; fits && i < x.rank(); ++i) fits = i == axis ? u[i] <= x[i] : u[i] == x[i];
  if (!fits) fail("update_slice: expected an update that fits ", x, ", got ", u);
}

}  // namespace

std::unique_ptr<NamedKernel> make_copy(const KernelCall& call) {
  expect_shape(call, 1, "y", call.operands[0].view.shape);
  expect_dtype(call, 1, "y", call.operands[0].dtype);
  return std::make_unique<Copy>(call);
}

std::unique_ptr<NamedKernel> make_update_slice(const KernelCall& call) {
  expect_axis(call, call.operands[0].view.shape.rank());
  expect_update(call);
  expect_dtype(call, 1, "u", call.operands[0].dtype);
  expect_index(call, 2, "start");
  expect_shape(call, 2, "start", {});
  expect_shape(call, 3, "y", call.operands[0].view.shape);
  expect_dtype(call, 3, "y", call.operands[0].dtype);
  return std::make_unique<UpdateSlice>(call);
}

}  // namespace tessera::cpu
