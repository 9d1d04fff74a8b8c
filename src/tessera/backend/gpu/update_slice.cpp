// update_slice: x, u, start -> y; y = x with u placed at `start` along the axis.
#include "tessera/backend/gpu/view_copy.h"
#include "tessera/codegen/text.h"

namespace tessera::gpu {

namespace {

constexpr std::string_view kText = R"(
KERNEL tessera_update_slice(GLOBAL const $S* u, i64 u_start, GLOBAL const $I* start,
                                   i64 start_start, GLOBAL $S* y, i64 y_start, i64 count,
                                   Axes extents, Axes u_strides, Axes y_strides, i64 step,
                                   i64 limit, GLOBAL i32* error) {
  const i64 point = POINT, first = (i64)start[start_start];
  if (point >= count) return;
  if (first < 0 || first > limit) {
    *error = 1;
    return;
  }
  i64 rest = point;
  u += u_start;
  y += y_start + first * step;
  for (i32 d = 7; d >= 0; --d) {
    const i64 at = rest % extents.at[d];
    rest /= extents.at[d];
    u += at * u_strides.at[d];
    y += at * y_strides.at[d];
  }
  *y = *u;
}
)";

class UpdateSlice : public GpuExecutable {
 public:
  UpdateSlice(Session& session, const KernelCall& call)
      : session_(session),
        call_(call),
        whole_(session, call.operands[0], call.operands[3]),
        group_(group_size(session, 64)),
        kernel_(session.build(
            "update_slice",
            complete_source(session, cat(kAxesText, kText), call.operands[1].dtype,
                            {{"$I", std::string(storage_type(call.operands[2].dtype))}}),
            "tessera_update_slice")) {
    const int axis = int(call.attrs.axis);
    const View &u = call.operands[1].view, &y = call.operands[3].view;
    limit_ = y.shape[axis] - u.shape[axis];
    step_ = y.strides[axis];
    check_ = session.make_check("update_slice", "the start is", cat("[0, ", limit_, "]"));
  }

  void launch(std::span<const BufferRef> at, int64_t, Stream stream) const override {
    Operand o[4];
    for (size_t i = 0; i < 4; ++i) o[i] = operand(at[i], call_.operands[i]);
    const View &x = call_.operands[0].view, &u = call_.operands[1].view,
               &y = call_.operands[3].view;
    const bool in_place = o[0].mem == o[3].mem && o[0].start == o[3].start && same_elements(x, y);
    if (!in_place) whole_.run(o[0], o[3], stream);
    (*kernel_)(stream, range_of(numel(u.shape), group_), o[1], o[2], o[3], numel(u.shape),
               axes_of(u.shape, 1), axes_of(u.strides, 0), axes_of(y.strides, 0), step_, limit_,
               check_->flag);
    session_.watch(stream, check_);
  }

 private:
  Session& session_;
  const KernelCall call_;
  ViewCopy whole_;
  int64_t group_, limit_ = 0, step_ = 0;
  std::unique_ptr<Kernel> kernel_;
  std::shared_ptr<const IndexCheck> check_;
};

}  // namespace

std::unique_ptr<GpuExecutable> make_update_slice(Session& session, const KernelCall& call) {
  return std::make_unique<UpdateSlice>(session, call);
}

}  // namespace tessera::gpu
