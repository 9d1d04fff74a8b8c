#include "tessera/backend/gpu/view_copy.h"

#include "tessera/codegen/text.h"

namespace tessera::gpu {

namespace {

constexpr std::string_view kText = R"(
KERNEL tessera_copy(GLOBAL const $S* from, i64 from_start, GLOBAL $R* to, i64 to_start,
                           i64 count, Axes extents, Axes from_strides, Axes to_strides) {
  const i64 point = POINT;
  if (point >= count) return;
  i64 rest = point;
  from += from_start;
  to += to_start;
  for (i32 d = 7; d >= 0; --d) {
    const i64 at = rest % extents.at[d];
    rest /= extents.at[d];
    from += at * from_strides.at[d];
    to += at * to_strides.at[d];
  }
  const $T value = LOAD(*from);
  *to = $store;
}
)";

bool is_packed(View view) {
  view.offset = 0;
  return is_contiguous(view);
}

}  // namespace

ViewCopy::ViewCopy(Session& session, const OperandView& from, const OperandView& to)
    : session_(session),
      count_(numel(from.view.shape)),
      extents_(axes_of(from.view.shape, 1)),
      from_strides_(axes_of(from.view.strides, 0)),
      to_strides_(axes_of(to.view.strides, 0)) {
  TESSERA_ASSERT(from.view.shape == to.view.shape);
  TESSERA_ASSERT(compute_type(from.dtype) == compute_type(to.dtype));
  if (from.dtype == to.dtype && is_packed(from.view) && is_packed(to.view)) {
    bytes_ = size_of(from.dtype);
    return;
  }
  group_ = group_size(session, 64);
  const Replacements words = {{"$store", to_storage(to.dtype, "value")},
                              {"$R", std::string(storage_type(to.dtype))}};
  kernel_ = session.build(
      "copy", complete_source(session, cat(kAxesText, kText), from.dtype, words), "tessera_copy");
}

void ViewCopy::run(Operand from, Operand to, Stream stream) const {
  if (count_ == 0) return;
  if (!kernel_) {
    session_.copy({to.mem, to.start * bytes_}, {from.mem, from.start * bytes_}, count_ * bytes_,
                  stream);
    return;
  }
  (*kernel_)(stream, range_of(count_, group_), from, to, count_, extents_, from_strides_,
             to_strides_);
}

}  // namespace tessera::gpu
