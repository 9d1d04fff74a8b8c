// Reading and writing at places that data decide, and x[{…}].
#pragma once

#include <optional>
#include <variant>
#include <vector>

#include "tessera/tensor/tensor.h"

namespace tessera {

// Python's start:stop:step.
struct Slice {
  std::optional<int64_t> start = {}, stop = {};
  int64_t step = 1;
};
struct Ellipsis {};
struct NewAxis {};
inline constexpr Slice kAll{};          // ":"
inline constexpr Ellipsis kEllipsis{};  // "...": as many kAll as fit
inline constexpr NewAxis kNewAxis{};    // an axis of extent 1

// One entry of x[{…}]: a position (drops the axis), a Slice, kAll, kEllipsis, kNewAxis, or a tensor
// of integers, whose shape takes the axis' place; of these at most one.
class Index {
 public:
  using Line = std::source_location;  // of the brackets, for errors: see In

  template <std::integral T>
  requires(!std::same_as<T, bool>) Index(T position, Line line = Line::current())
      : Index(Entry(static_cast<int64_t>(position)), line) {}
  Index(const Slice& slice, Line line = Line::current()) : Index(Entry(slice), line) {}
  Index(Ellipsis, Line line = Line::current()) : Index(Entry(kEllipsis), line) {}
  Index(NewAxis, Line line = Line::current()) : Index(Entry(kNewAxis), line) {}
  template <class T>
  requires std::convertible_to<const T&, Tensor> Index(const T& indices,
                                                       Line line = Line::current())
      : Index(Entry(static_cast<Tensor>(indices)), line) {}

  using Entry = std::variant<int64_t, Slice, Ellipsis, NewAxis, Tensor>;
  const Entry& entry() const { return entry_; }

 private:
  Index(Entry entry, Line line);

  Entry entry_;
};

// result[…, p, …] = x[…, index[…, p, …], …] along `axis`; elsewhere index may be smaller than x.
Tensor gather(In x, In index, int64_t axis);
// The entries of x along `axis` at these positions: indices of any shape take the axis' place. Rows
// of a table: (V, C) and indices S -> (S…, C).
Tensor take(In x, In indices, int64_t axis = 0);
Tensor index_select(In x, In indices, int64_t axis);  // take with a vector of indices

// x with source[…, p, …] at index[…, p, …] along `axis`: put there (the last one wins where indices
// repeat), or added.
Tensor scatter(In x, In index, In source, int64_t axis);
Tensor scatter_add(In x, In index, In source, int64_t axis);
// x with values at (indices[0], indices[1], …) on its first axes; indices broadcast against each
// other, values to their shape and the rest of x. With accumulate they are added.
Tensor index_put(In x, const std::vector<Tensor>& indices, In values, bool accumulate = false);

// 1 where the class is that of the index, else 0: indices S -> (S…, classes).
Tensor one_hot(In indices, int64_t classes, DType dtype = DType::f32);
// (n, rank) i64: the coordinates of the elements that are not 0. Evaluates x: the result's shape
// depends on the data.
Tensor nonzero(In x);

// The slice of `size` at a 0-d integer `start` along `axis`; a start that leaves x is an error.
Tensor dynamic_slice(In x, In start, int64_t axis, int64_t size);
Tensor dynamic_update_slice(In x, In update, In start, int64_t axis);

}  // namespace tessera
