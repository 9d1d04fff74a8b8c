#include "tessera/kernel/view.h"

namespace tessera {

View contiguous_view(const Shape& shape) { return {shape, row_major_strides(shape), 0}; }

bool is_contiguous(const View& view) {
  if (view.offset != 0) return false;
  if (numel(view.shape) == 0) return true;
  const Dims expected = row_major_strides(view.shape);
  for (int i = 0; i < view.shape.rank(); ++i) {
    if (view.shape[i] != 1 && view.strides[i] != expected[i]) return false;
  }
  return true;
}

std::optional<int64_t> row_step(const View& view) {
  const int last = view.shape.rank() - 1;
  if (view.shape[last] != 1 && view.strides[last] != 1) return std::nullopt;
  std::optional<int64_t> step;
  int64_t rows = 1;
  for (int i = last - 1; i >= 0; --i) {
    if (view.shape[i] == 1) continue;
    if (!step) step = view.strides[i];
    if (view.strides[i] != *step * rows) return std::nullopt;
    rows *= view.shape[i];
  }
  return step.value_or(view.shape[last]);
}

bool same_elements(const View& a, const View& b) {
  return a == b || (a.shape == b.shape && is_contiguous(a) && is_contiguous(b));
}

ViewSpan span_of(const View& view) {
  if (numel(view.shape) == 0) return {};
  ViewSpan span{view.offset, view.offset};
  for (int i = 0; i < view.shape.rank(); ++i) {
    const int64_t reach = (view.shape[i] - 1) * view.strides[i];
    (reach < 0 ? span.begin : span.end) += reach;
  }
  ++span.end;
  return span;
}

}  // namespace tessera
