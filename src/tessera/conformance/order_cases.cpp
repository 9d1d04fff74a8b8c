// Cases of running totals and of sorting.
#include <cmath>

#include "tessera/conformance/cases.h"
#include "tessera/graph/build.h"

namespace tessera {

namespace {

struct Scan {
  Shape shape;
  int axis;
};

const Scan kScans[] = {{{1}, 0},       {{7}, 0},       {{1031}, 0},       {{3, 0}, 1},
                       {{0, 3}, 1},    {{3, 5}, 0},    {{3, 5}, 1},       {{13, 257}, 1},
                       {{257, 13}, 0}, {{2, 3, 5}, 1}, {{2, 3, 5, 7}, 2}, {{2, 1, 5, 7}, 1},
                       {{5, 67}, 0},   {{8, 16}, 1},   {{2, 3, 70, 3}, 2}};

template <class F>
Cases scan_cases(const Domain& domain, F scan) {
  Cases result;
  for (const Scan& s : kScans) {
    auto build = [scan, axis = s.axis](const Values& in) { return Values{scan(in[0], axis)}; };
    result.push_back({cat(s.shape, " axis ", s.axis),
                      {{s.shape, domain}},
                      build,
                      std::sqrt(double(s.shape[s.axis]))});
  }
  return result;
}

const Shape kRowShapes[] = {{1},    {7},       {0, 3},       {3, 0}, {3, 5},
                            {5, 1}, {2, 3, 5}, {2, 3, 1, 7}, {7, 31}};
const Shape kLongRow = {300};

// Equal elements show the order of places, and rounding cannot change it; a gradient needs elements
// that differ by more than its step.
Domain sorted_domain(DType dtype) { return dtype == DType::f64 ? Domain{-1000, 1000} : kCoarse; }

}  // namespace

Cases cumsum_cases(DType) {
  return scan_cases(kAround, [](const Value& x, int axis) { return graph::cumsum(x, axis); });
}

Cases cumprod_cases(DType) {
  return scan_cases(kNearOne, [](const Value& x, int axis) { return graph::cumprod(x, axis); });
}

Cases sort_cases(DType dtype) {
  std::vector<Shape> shapes(std::begin(kRowShapes), std::end(kRowShapes));
  shapes.push_back(kLongRow);
  Cases result;
  for (const Shape& shape : shapes) {
    for (const bool descending : {false, true}) {
      auto build = [descending](const Values& in) { return graph::sort(in[0], descending); };
      result.push_back({cat(shape, descending ? " falling" : " rising"),
                        {{shape, sorted_domain(dtype)}},
                        build,
                        0});
    }
  }
  return result;
}

Cases topk_cases(DType dtype) {
  Cases result;
  for (const Shape& shape : kRowShapes) {
    const int64_t n = shape.back();
    for (const bool largest : {false, true}) {
      for (const int64_t k : {int64_t(0), (n + 2) / 3, n}) {
        auto build = [k, largest](const Values& in) { return graph::topk(in[0], k, largest); };
        result.push_back({cat(shape, " the ", k, largest ? " greatest" : " least"),
                          {{shape, sorted_domain(dtype)}},
                          build,
                          0});
      }
    }
  }
  return result;
}

}  // namespace tessera
