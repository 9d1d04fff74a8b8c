// scatter_add, scatter: x, index, src -> y; y = x, then y[…, index[p], …] += src[p], or = src[p],
// for every position p of src along the axis.
//
// Positions that meet at one element lie on one line along the axis. A work item walks a whole line
// in order and writes one range of it, so results repeat bit by bit and the last position wins
// where elements are replaced; nothing is atomic.
#include <algorithm>

#include "tessera/backend/gpu/view_copy.h"
#include "tessera/codegen/text.h"

namespace tessera::gpu {

namespace {

constexpr std::string_view kText = R"(
KERNEL tessera_scatter(GLOBAL const $I* index, i64 index_start, GLOBAL const $S* src,
                              i64 src_start, GLOBAL $R* y, i64 y_start, i64 lines, i64 ranges,
                              i64 count, i64 limit, i64 index_step, i64 src_step, i64 y_step,
                              Axes extents, Axes index_strides, Axes src_strides, Axes y_strides,
                              GLOBAL i32* error) {
  const i64 item = POINT;
  if (item >= lines * ranges) return;
  i64 line = item % lines;
  const i64 range = item / lines;
  const i64 low = limit * range / ranges, high = limit * (range + 1) / ranges;
  index += index_start;
  src += src_start;
  y += y_start;
  for (i32 d = 7; d >= 0; --d) {
    const i64 at = line % extents.at[d];
    line /= extents.at[d];
    index += at * index_strides.at[d];
    src += at * src_strides.at[d];
    y += at * y_strides.at[d];
  }
  for (i64 p = 0; p < count; ++p) {
    const i64 at = (i64)index[p * index_step];
    if (at < 0 || at >= limit) *error = 1;
    if (at < low || at >= high) continue;
    $put
  }
}
)";

constexpr int64_t kEnoughItems = 4096;

// The view without the axis, which one work item walks.
View lines_of(View view, int axis) {
  view.shape[axis] = 1;
  return view;
}

class Scatter : public GpuExecutable {
 public:
  Scatter(Session& session, const KernelCall& call)
      : session_(session),
        call_(call),
        adds_(call.kernel == "scatter_add"),
        target_(accumulator(call)),
        into_(session, call.operands[0], target_),
        group_(group_size(session, 64)) {
    const OperandView &y = call.operands[3], &src = call.operands[2];
    if (is_wide()) out_of_ = std::make_unique<ViewCopy>(session, target_, y);
    const int axis = int(call.attrs.axis);
    lines_ = numel(lines_of(src.view, axis).shape);
    count_ = src.view.shape[axis];
    limit_ = call.operands[0].view.shape[axis];
    // Few lines are walked by several work items each, which write different parts of them.
    ranges_ = std::clamp<int64_t>(kEnoughItems / std::max<int64_t>(1, lines_), 1,
                                  std::max<int64_t>(1, limit_));
    const std::string wraps = size_of(y.dtype) == 8 ? "u64" : "u32";
    const std::string sum = is_float(y.dtype)
                                ? "y[at * y_step] += LOAD(src[p * src_step]);"
                                : cat("y[at * y_step] = ($R)((", wraps, ")y[at * y_step] + (",
                                      wraps, ")src[p * src_step]);");
    kernel_ = session.build(
        call.kernel,
        complete_source(session, cat(kAxesText, kText), src.dtype,
                        {{"$put", adds_ ? sum : "y[at * y_step] = src[p * src_step];"},
                         {"$I", std::string(storage_type(call.operands[1].dtype))},
                         {"$R", std::string(storage_type(target_.dtype))}}),
        "tessera_scatter");
    check_ = session.make_check(call.kernel, "an index is", cat("[0, ", limit_, ")"));
  }

  void launch(std::span<const BufferRef> at, int64_t, Stream stream) const override {
    Operand o[4];
    for (size_t i = 0; i < 4; ++i) o[i] = operand(at[i], call_.operands[i]);
    Operand target = o[3];
    if (is_wide()) {
      target = {session_.workspace(stream, std::max<int64_t>(1, numel(target_.view.shape)) *
                                               size_of(target_.dtype)),
                0};
    }
    const bool in_place = o[0].mem == target.mem && o[0].start == target.start &&
                          same_elements(call_.operands[0].view, target_.view);
    if (!in_place) into_.run(o[0], target, stream);
    put(o[1], o[2], target, stream);
    if (out_of_) out_of_->run(target, o[3], stream);
  }

 private:
  // Half types are summed in f32 and rounded once.
  bool is_wide() const { return adds_ && is_half(call_.operands[3].dtype); }
  static OperandView accumulator(const KernelCall& call) {
    const OperandView& y = call.operands[3];
    if (call.kernel != "scatter_add" || !is_half(y.dtype)) return y;
    return {DType::f32, contiguous_view(y.view.shape)};
  }

  void put(Operand index, Operand src, Operand y, Stream stream) const {
    if (count_ == 0) return;
    const int axis = int(call_.attrs.axis);
    const View index_view = call_.operands[1].view, src_view = call_.operands[2].view;
    (*kernel_)(stream, range_of(lines_ * ranges_, group_), index, src, y, lines_, ranges_, count_,
               limit_, index_view.strides[axis], src_view.strides[axis], target_.view.strides[axis],
               axes_of(lines_of(src_view, axis).shape, 1), axes_of(index_view.strides, 0),
               axes_of(src_view.strides, 0), axes_of(target_.view.strides, 0), check_->flag);
    session_.watch(stream, check_);
  }

  Session& session_;
  const KernelCall call_;
  const bool adds_;
  const OperandView target_;
  ViewCopy into_;
  std::unique_ptr<ViewCopy> out_of_;
  int64_t group_, lines_ = 0, count_ = 0, limit_ = 0, ranges_ = 1;
  std::unique_ptr<Kernel> kernel_;
  std::shared_ptr<const IndexCheck> check_;
};

}  // namespace

std::unique_ptr<GpuExecutable> make_scatter(Session& session, const KernelCall& call) {
  return std::make_unique<Scatter>(session, call);
}

}  // namespace tessera::gpu
