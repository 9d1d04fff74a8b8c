#include "tessera/compile/views.h"

#include <algorithm>
#include <vector>

namespace tessera {

namespace {

// A reshape splits into runs of old axes that become runs of new axes with the same number of
// elements; each run of old axes must be evenly strided.
std::optional<View> reshape_view(const View& view, const Shape& shape) {
  View result{shape, Dims::filled(shape.rank(), 0), view.offset};
  if (numel(shape) == 0) return result;
  Shape extents;
  Dims strides;  // of old axes, without extents of 1
  for (int i = 0; i < view.shape.rank(); ++i) {
    if (view.shape[i] == 1) continue;
    extents.push_back(view.shape[i]);
    strides.push_back(view.strides[i]);
  }
  int old_end = extents.rank();
  int new_end = shape.rank();
  while (new_end > 0) {
    if (shape[new_end - 1] == 1) {
      result.strides[--new_end] = 0;
      continue;
    }
    // The shortest runs ending here with equal counts.
    int old_begin = old_end - 1, new_begin = new_end - 1;
    int64_t old_count = extents[old_begin], new_count = shape[new_begin];
    while (old_count != new_count) {
      if (old_count < new_count) {
        old_count *= extents[--old_begin];
      } else {
        new_count *= shape[--new_begin];
      }
    }
    for (int i = old_begin; i + 1 < old_end; ++i) {
      if (strides[i] != strides[i + 1] * extents[i + 1]) return std::nullopt;
    }
    int64_t stride = strides[old_end - 1];
    for (int i = new_end - 1; i >= new_begin; --i) {
      result.strides[i] = shape[i] == 1 ? 0 : stride;
      stride *= shape[i];
    }
    old_end = old_begin;
    new_end = new_begin;
  }
  return result;
}

// A place in a packed buffer is a number whose digits are the axes; here is one of them, and what
// of it a view reaches.
struct Digit {
  int64_t extent, from, to;  // strides before and after
  int64_t least = 0, most = 0;
};

// Least first. Axes that lie side by side before and after are one.
std::optional<std::vector<Digit>> digits_of(const View& from, const View& to) {
  std::vector<Digit> all, result;
  for (int i = 0; i < from.shape.rank(); ++i) {
    if (from.shape[i] != 1) all.push_back({from.shape[i], from.strides[i], to.strides[i]});
  }
  std::ranges::sort(all, {}, &Digit::from);
  int64_t count = 1;
  for (const Digit& digit : all) {
    if (digit.from != count) return std::nullopt;
    count *= digit.extent;
    if (!result.empty() && digit.to == result.back().to * result.back().extent) {
      result.back().extent *= digit.extent;
    } else {
      result.push_back(digit);
    }
  }
  if (from.offset != 0) return std::nullopt;
  if (result.empty()) result.push_back({1, 1, 1});
  return result;
}

// The one along which a stride leads.
Digit& digit_of(std::vector<Digit>& digits, int64_t stride) {
  size_t i = digits.size() - 1;
  while (stride % digits[i].from != 0) --i;  // the least has stride 1
  return digits[i];
}

}  // namespace

std::optional<View> move_view(Op op, const Attrs& attrs, const View& view) {
  View result = view;
  switch (op) {
    case Op::reshape: return reshape_view(view, attrs.a);
    case Op::permute:
      for (int i = 0; i < attrs.a.rank(); ++i) {
        result.shape[i] = view.shape[int(attrs.a[i])];
        result.strides[i] = view.strides[int(attrs.a[i])];
      }
      return result;
    case Op::expand:
      for (int i = 0; i < attrs.a.rank(); ++i) {
        if (view.shape[i] != attrs.a[i]) result.strides[i] = 0;
      }
      result.shape = attrs.a;
      return result;
    case Op::slice:
      for (int i = 0; i < attrs.a.rank(); ++i) {
        if (attrs.b[i] > 0) result.offset += attrs.a[i] * view.strides[i];
        result.strides[i] = view.strides[i] * attrs.c[i];
      }
      result.shape = attrs.b;
      return result;
    case Op::window: {
      const int axis = int(attrs.axis);
      const int64_t size = attrs.a[0], step = attrs.a[1];
      result.shape[axis] = (view.shape[axis] - size) / step + 1;
      result.strides[axis] = view.strides[axis] * step;
      result.shape.push_back(size);
      result.strides.push_back(view.strides[axis]);
      return result;
    }
    default: break;
  }
  TESSERA_ASSERT(!"not a move");
  return std::nullopt;
}

bool is_packed(const View& view) {
  View start = view;
  start.offset = 0;
  return is_contiguous(start);
}

View row_view(const Shape& shape, int64_t step) {
  Shape padded = shape;
  padded[shape.rank() - 1] = step;
  return {shape, row_major_strides(padded), 0};
}

std::optional<View> rearranged(const View& view, const View& from, const View& to) {
  const std::optional<std::vector<Digit>> found = digits_of(from, to);
  if (!found) return std::nullopt;
  View result = view;
  if (numel(view.shape) == 0) return result;
  std::vector<Digit> digits = *found;
  result.offset = to.offset;
  for (Digit& digit : digits) {
    const int64_t at = view.offset / digit.from % digit.extent;
    digit.least = digit.most = at;
    result.offset += at * digit.to;
  }
  for (int i = 0; i < view.shape.rank(); ++i) {
    Digit& digit = digit_of(digits, view.strides[i]);
    const int64_t steps = view.strides[i] / digit.from, reach = (view.shape[i] - 1) * steps;
    result.strides[i] = steps * digit.to;
    (reach < 0 ? digit.least : digit.most) += reach;
  }
  for (const Digit& digit : digits) {
    if (digit.least < 0 || digit.most >= digit.extent) return std::nullopt;
  }
  return result;
}

}  // namespace tessera
