// Cases of reductions, indexing, products and kernel ops.
#include <cmath>

#include "tessera/conformance/cases.h"
#include "tessera/graph/build.h"

namespace tessera {

namespace {

// Reductions --------------------------------------------------------------------------------------

struct Reduction {
  Shape shape;
  Dims axes;
};

const Reduction kReductions[] = {{{1}, {0}},
                                 {{7}, {0}},
                                 {{1031}, {0}},
                                 {{3, 5}, {0}},
                                 {{3, 5}, {1}},
                                 {{3, 5}, {0, 1}},
                                 {{0, 3}, {1}},
                                 {{13, 257}, {1}},
                                 {{257, 13}, {0}},
                                 {{2, 3, 5}, {1}},
                                 {{2, 3, 5}, {0, 2}},
                                 {{2, 3, 5, 7}, {1, 3}},
                                 {{2, 3, 5, 7}, {0, 1, 2}}};

Case reduction(Op op, const Reduction& r, const Domain& domain = kAround) {
  double terms = 1;
  for (const int64_t axis : r.axes) terms *= double(r.shape[int(axis)]);
  auto build = [op, axes = r.axes](const Values& in) {
    return Values{graph::reduce(op, in[0], axes)};
  };
  return {cat(r.shape, " over ", r.axes),
          {{r.shape, domain}},
          build,
          op == Op::sum || op == Op::prod ? std::sqrt(terms) : 0};
}

// Places that data decide -------------------------------------------------------------------------

Input index_of(const Shape& shape, int64_t extent) {
  return {shape, {0, double(extent), Pick::index}, Element::index};
}

struct Indexed {
  Shape x, index;
  int axis;
};

const Indexed kIndexed[] = {{{7}, {5}, 0},          {{7}, {0}, 0},
                            {{3, 5}, {7, 5}, 0},    {{3, 5}, {3, 1}, 1},
                            {{1, 5}, {11, 5}, 0},   {{0, 5}, {0, 2}, 1},
                            {{31, 37}, {31, 8}, 1}, {{2, 3, 5, 7}, {2, 3, 4, 7}, 2}};

std::string name_of(const Indexed& c) { return cat(c.x, " at ", c.index, " axis ", c.axis); }

// x, index and source.
std::vector<Input> inputs_of(const Indexed& c) {
  return {{c.x, kAround}, index_of(c.index, c.x[c.axis]), {c.index, kAround}};
}

struct Window {
  Shape x;
  int axis;
  int64_t size;
};

const Window kWindows[] = {{{7}, 0, 3},    {{7}, 0, 7},    {{7}, 0, 0},          {{3, 5}, 0, 1},
                           {{3, 5}, 1, 2}, {{5, 0}, 0, 2}, {{2, 3, 5, 7}, 2, 3}, {{31, 37}, 0, 11}};

std::string name_of(const Window& w) { return cat(w.x, " axis ", w.axis, " size ", w.size); }
Input start_of(const Window& w) { return index_of({}, w.x[w.axis] - w.size + 1); }

const Shape kRowShapes[] = {{1}, {7}, {0, 3}, {3, 5}, {5, 1}, {13, 257}, {2, 3, 5}, {2, 3, 1, 7}};

double row_growth(const Shape& shape) { return std::sqrt(double(shape.back())); }

}  // namespace

Cases sum_cases(DType) {
  Cases result = {reduction(Op::sum, {{0}, {0}}), reduction(Op::sum, {{3, 0}, {1}})};
  for (const Reduction& r : kReductions) result.push_back(reduction(Op::sum, r));
  return result;
}

Cases prod_cases(DType) {
  Cases result;
  for (const Reduction& r : {Reduction{{0}, {0}}, Reduction{{3, 0}, {1}}}) {
    result.push_back(reduction(Op::prod, r, kNearOne));
  }
  for (const Reduction& r : kReductions) result.push_back(reduction(Op::prod, r, kNearOne));
  return result;
}

Cases max_cases(DType) {
  Cases result;
  for (const Reduction& r : kReductions) result.push_back(reduction(Op::max, r));
  return result;
}

Cases min_cases(DType) {
  Cases result;
  for (const Reduction& r : kReductions) result.push_back(reduction(Op::min, r));
  return result;
}

Cases argmax_cases(DType) {
  Cases result;
  for (const Reduction& r : kReductions) {
    if (r.axes.rank() == 1) result.push_back(reduction(Op::argmax, r, kCoarse));
  }
  return result;
}

Cases gather_cases(DType) {
  Cases result;
  for (const Indexed& c : kIndexed) {
    auto build = [axis = c.axis](const Values& in) {
      return Values{graph::gather(in[0], in[1], axis)};
    };
    result.push_back({name_of(c), {{c.x, kAround}, index_of(c.index, c.x[c.axis])}, build, 0});
  }
  return result;
}

Cases scatter_add_cases(DType) {
  Cases result;
  for (const Indexed& c : kIndexed) {
    auto build = [axis = c.axis](const Values& in) {
      return Values{graph::scatter_add(in[0], in[1], in[2], axis)};
    };
    result.push_back({name_of(c), inputs_of(c), build, std::sqrt(double(c.index[c.axis]) + 1)});
  }
  return result;
}

Cases scatter_cases(DType) {
  Cases result;
  for (const Indexed& c : kIndexed) {
    auto build = [axis = c.axis](const Values& in) {
      return Values{graph::scatter(in[0], in[1], in[2], axis)};
    };
    result.push_back({name_of(c), inputs_of(c), build, 0});
  }
  return result;
}

Cases dynamic_slice_cases(DType) {
  Cases result;
  for (const Window& w : kWindows) {
    auto build = [w](const Values& in) {
      return Values{graph::dynamic_slice(in[0], in[1], w.axis, w.size)};
    };
    result.push_back({name_of(w), {{w.x, kAround}, start_of(w)}, build, 0});
  }
  return result;
}

Cases dynamic_update_slice_cases(DType) {
  Cases result;
  for (const Window& w : kWindows) {
    Shape update = w.x;
    update[w.axis] = w.size;
    auto build = [w](const Values& in) {
      return Values{graph::dynamic_update_slice(in[0], in[1], in[2], w.axis)};
    };
    result.push_back({name_of(w), {{w.x, kAround}, {update, kAround}, start_of(w)}, build, 0});
  }
  return result;
}

Cases matmul_cases(DType) {
  struct Spec {
    Shape a, b;
  };
  const Spec table[] = {{{1, 1}, {1, 1}},     {{3, 5}, {5, 7}},       {{1, 31}, {31, 1}},
                        {{3, 0}, {0, 5}},     {{0, 3}, {3, 5}},       {{3, 5}, {5, 0}},
                        {{37, 41}, {41, 29}}, {{2, 3, 5}, {2, 5, 3}}, {{5, 2, 3, 1}, {5, 2, 1, 7}}};
  Cases result;
  for (const Spec& row : table) {
    auto build = [](const Values& in) { return Values{graph::matmul(in[0], in[1])}; };
    result.push_back(
        {cat(row.a, " @ ", row.b), {{row.a, kAround}, {row.b, kAround}}, build, row_growth(row.a)});
  }
  return result;
}

// Kernel ops --------------------------------------------------------------------------------------

Cases softmax_cases(DType) {
  auto softmax = [](const Value& x) { return graph::softmax(x); };
  Cases result = {case_of("(3, 0)", {3, 0}, softmax)};
  for (const Shape& shape : kRowShapes) {
    result.push_back(case_of(to_string(shape), shape, softmax, row_growth(shape)));
  }
  return result;
}

Cases linear_cases(DType) {
  Cases result;
  for (const auto& [m, k, n] : {std::tuple{3, 5, 7}, {16, 8, 24}, {1, 40, 8}}) {
    for (const int64_t activation : {0, 1, 2}) {
      auto build = [activation](const Values& in) {
        Attrs attrs;
        attrs.axis = activation;
        return graph::outputs_of(make_node(Op::linear, in, attrs));
      };
      // Of one sign: what cancels would look wrong beside its rounding.
      const char* names[] = {"", " gelu_tanh", " relu"};
      const std::vector<Input> positive = {{{m, k}, {0.5, 1}}, {{k, n}, {0.5, 1}}, {{n}, {0.5, 1}}};
      const std::string name = cat(m, " x ", k, " x ", n, names[activation]);
      result.push_back({name, positive, build, row_growth({m, k})});
      if (activation != 2) continue;
      std::vector<Input> negative = positive;
      negative[0].domain = {-1, -0.5};
      negative[2].domain = {-1, -0.5};
      result.push_back({name + " below 0", negative, build, row_growth({m, k})});
    }
  }
  return result;
}

Cases matmul_add_cases(DType) {
  auto build = [](const Values& in) { return graph::outputs_of(make_node(Op::matmul_add, in)); };
  Cases result;
  for (const auto& [m, k, n] : {std::tuple{3, 5, 7}, {16, 8, 24}, {1, 40, 8}}) {
    result.push_back({cat(m, " x ", k, " x ", n),
                      {{{m, k}, {0.5, 1}}, {{k, n}, {0.5, 1}}, {{m, n}, {0.5, 1}}},
                      build,
                      row_growth({m, k})});
  }
  return result;
}

Cases matmul_sums_cases(DType) {
  auto build = [](const Values& in) { return graph::outputs_of(make_node(Op::matmul_sums, in)); };
  Cases result;
  for (const auto& [m, k, n] : {std::tuple{3, 5, 7}, {16, 8, 24}, {1, 40, 8}, {8, 16, 40}}) {
    result.push_back({cat(m, " x ", k, " x ", n),
                      {{{m, k}, {0.5, 1}}, {{k, n}, {0.5, 1}}},
                      build,
                      row_growth({m, k})});
  }
  return result;
}

Cases linear_slope_cases(DType) {
  auto build = [](const Values& in) { return graph::outputs_of(make_node(Op::linear_slope, in)); };
  Cases result;
  for (const auto& [m, k, n] : {std::tuple{3, 5, 7}, {16, 8, 24}, {40, 1, 8}}) {
    result.push_back({cat(m, " x ", k, " x ", n),
                      {{{m, k}, {0.5, 1}}, {{k, n}, {0.5, 1}}, {{m, n}, {0.25, 2}}},
                      build,
                      row_growth({m, std::max(m, k)})});
  }
  return result;
}

// With the statistics as results, and without: then the gradient is layer_norm_backward.
Cases layer_norm_cases(DType) {
  // A row of one column has no variance: with a small epsilon its gradient would be all noise.
  auto all = [](const Values& in) { return graph::layer_norm(in[0], in[1], in[2], 0.1); };
  auto alone = [all](const Values& in) { return Values{all(in)[0]}; };
  Cases result;
  for (const Shape& shape : kRowShapes) {
    const Input column = {{shape.back()}, kAround};
    const std::vector<Input> inputs = {{shape, kAround}, column, column};
    result.push_back({to_string(shape), inputs, all, row_growth(shape)});
    result.push_back({cat(shape, " alone"), inputs, alone, row_growth(shape)});
  }
  return result;
}

// Loss and gradient, and the loss alone: its gradient is the op's own second result.
Cases cross_entropy_cases(DType) {
  auto both = [](const Values& in) { return graph::cross_entropy(in[0], in[1], in[2]); };
  auto alone = [both](const Values& in) { return Values{both(in)[0]}; };
  Cases result;
  for (const Shape& shape : kRowShapes) {
    Shape rows = shape;
    rows[shape.rank() - 1] = 1;
    const std::vector<Input> inputs = {
        {shape, kAround}, index_of(rows, shape.back()), {rows, kAround, Element::compute}};
    result.push_back({to_string(shape), inputs, both, row_growth(shape)});
    result.push_back({cat(shape, " alone"), inputs, alone, row_growth(shape)});
  }
  return result;
}

Cases layer_norm_backward_cases(DType) {
  auto build = [](const Values& in) {
    return graph::outputs_of(make_node(Op::layer_norm_backward, in));
  };
  Cases result;
  for (const Shape& shape : kRowShapes) {
    Shape rows = shape;
    rows[shape.rank() - 1] = 1;
    // The gradients of scale and shift are sums over rows; terms of one sign cannot cancel to
    // something small beside which their rounding would look large.
    const std::vector<Input> inputs = {{shape, {0.25, 4}},
                                       {shape, {1, 3}},
                                       {{shape.back()}, kAround},
                                       {rows, {-0.5, 0.5}, Element::compute},
                                       {rows, {0.5, 2}, Element::compute}};
    result.push_back({to_string(shape), inputs, build, row_growth(shape)});
  }
  return result;
}

}  // namespace tessera
