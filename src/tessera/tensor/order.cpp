#include "tessera/tensor/order.h"

#include <cmath>

#include "tessera/graph/scope.h"
#include "tessera/tensor/op_support.h"
#include "tessera/tensor/structure.h"

namespace tessera {

namespace {

// The op works on the last axis; others are brought there and back.
template <class F>
Ordered along_axis(std::string_view op, const Tensor& x, int64_t axis, F f) {
  const int i = axis_of(op, axis, x);
  const bool last = i == x.rank() - 1;
  const std::vector<Value> outputs = f(last ? x.value() : transpose(x, i, -1).value(), i);
  auto back = [&](const Value& v) { return last ? Tensor(v) : transpose(Tensor(v), i, -1); };
  return {back(outputs[0]), back(outputs[1])};
}

template <class T>
bool is_same(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return a == b;
  } else {
    const double x = double(a), y = double(b);
    return x == y || (std::isnan(x) && std::isnan(y));
  }
}

// Of sorted elements and where they were.
template <class T>
UniqueCounts count_runs(const std::vector<T>& sorted, const std::vector<int64_t>& places,
                        const Shape& shape) {
  std::vector<T> values;
  std::vector<int64_t> counts, inverse(sorted.size());
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (i == 0 || !is_same<T>(sorted[i - 1], sorted[i])) {
      values.push_back(sorted[i]);
      counts.push_back(0);
    }
    ++counts.back();
    inverse[size_t(places[i])] = int64_t(values.size()) - 1;
  }
  return {tensor(values), tensor(counts), tensor(inverse, shape)};
}

}  // namespace

Ordered sort(In x, int64_t axis, bool descending) {
  return along_axis("sort", x, axis,
                    [&](const Value& v, int) { return graph::sort(v, descending); });
}

Tensor argsort(In x, int64_t axis, bool descending) {
  return along_axis("argsort", x, axis,
                    [&](const Value& v, int) { return graph::sort(v, descending); })
      .indices;
}

Ordered topk(In x, int64_t k, int64_t axis, bool largest) {
  return along_axis("topk", x, axis, [&](const Value& v, int i) {
    const int64_t extent = x.shape()[i];
    if (k < 0 || k > extent) {
      fail_here("topk: expected k from 0 to ", extent, " for axis ", i, " of ", x.shape(), ", got ",
                k);
    }
    return graph::topk(v, k, largest);
  });
}

UniqueCounts unique_counts(In x) {
  const Ordered ordered = sort(reshape(x, {x.numel()}));
  const Tensor both[] = {ordered.values, ordered.indices};
  eval(both);
  return visit(x.dtype(), [&]<class T>() {
    return count_runs(ordered.values.to_vector<T>(), ordered.indices.to_vector<int64_t>(),
                      x.shape());
  });
}

}  // namespace tessera
