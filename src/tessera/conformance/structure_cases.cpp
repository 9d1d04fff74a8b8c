// Cases of ops that make, move, place or mark elements.
#include <memory>

#include "tessera/conformance/cases.h"
#include "tessera/graph/build.h"

namespace tessera {

namespace {

const Shape kShapes[] = {{}, {0}, {7}, {2, 3, 5}};

struct FromTo {
  Shape from, to;
};

}  // namespace

Cases leaf_cases(DType) {
  Cases result;
  for (const Shape& shape : kShapes) {
    result.push_back(case_of(to_string(shape), shape, [](const Value& x) { return x; }));
  }
  return result;
}

Cases constant_cases(DType dtype) {
  Cases result;
  for (const double value : {0.0, 1.0, 2.5}) {
    auto build = [=](const Values&) { return Values{graph::constant(dtype, value)}; };
    result.push_back({cat(value), {}, build, 0});
  }
  return result;
}

Cases iota_cases(DType dtype) {
  struct Spec {
    Shape shape;
    int axis;
  };
  const Spec table[] = {{{0}, 0},    {{1}, 0},    {{101}, 0},
                        {{3, 5}, 0}, {{3, 5}, 1}, {{2, 3, 5, 7}, 2}};
  Cases result;
  for (const Spec& row : table) {
    auto build = [=](const Values&) { return Values{graph::iota(dtype, row.shape, row.axis)}; };
    result.push_back({cat(row.shape, " axis ", row.axis), {}, build, 0});
  }
  return result;
}

Cases uniform_cases(DType) {
  const Input number = {{}, {0, 1 << 20, Pick::index}, Element::index};
  Cases result;
  for (const Shape& shape : {Shape{}, Shape{0}, Shape{7}, Shape{3, 5, 2}, Shape{1031}}) {
    auto build = [=](const Values& in) { return Values{graph::uniform(in[0], in[1], shape)}; };
    result.push_back({to_string(shape), {number, number}, build, 0});
  }
  return result;
}

// To every dtype. Only numbers that the target holds: what lies outside is the backend's.
Cases cast_cases(DType) {
  Cases result;
  for (int i = 0; i < kDTypeCount; ++i) {
    const DType to = DType(i);
    const Domain domain = info(to).is_signed ? kCoarse : Domain{0, 2, Pick::coarse};
    for (const Shape& shape : {Shape{}, Shape{0, 3}, Shape{31, 37}}) {
      auto build = [to](const Values& in) { return Values{graph::cast(in[0], to)}; };
      result.push_back({cat(shape, " to ", to), {{shape, domain}}, build, 0});
    }
  }
  return result;
}

Cases reshape_cases(DType) {
  const FromTo table[] = {
      {{}, {1}},        {{1}, {}},           {{0, 3}, {3, 0, 5}},    {{12}, {3, 4}},
      {{7, 5}, {5, 7}}, {{2, 3, 5}, {6, 5}}, {{2, 3, 5, 7}, {35, 6}}};
  Cases result;
  for (const FromTo& row : table) {
    result.push_back(case_of(cat(row.from, " to ", row.to), row.from,
                             [to = row.to](const Value& x) { return graph::reshape(x, to); }));
  }
  return result;
}

Cases permute_cases(DType) {
  const FromTo table[] = {{{3, 5}, {1, 0}},       {{0, 3}, {1, 0}},   {{1, 7}, {1, 0}},
                          {{2, 3, 5}, {2, 0, 1}}, {{67, 71}, {1, 0}}, {{2, 3, 5, 7}, {3, 1, 0, 2}}};
  Cases result;
  for (const FromTo& row : table) {
    result.push_back(case_of(cat(row.from, " by ", row.to), row.from,
                             [to = row.to](const Value& x) { return graph::permute(x, to); }));
  }
  return result;
}

Cases expand_cases(DType) {
  const FromTo table[] = {
      {{1}, {7}}, {{1}, {0}}, {{1, 5}, {7, 5}}, {{3, 1}, {3, 5}}, {{1, 3, 1, 2}, {2, 3, 5, 2}}};
  Cases result;
  for (const FromTo& row : table) {
    result.push_back(case_of(cat(row.from, " to ", row.to), row.from,
                             [to = row.to](const Value& x) { return graph::expand(x, to); }));
  }
  return result;
}

Cases slice_cases(DType) {
  struct Spec {
    Shape shape;
    Dims starts, sizes, steps;
  };
  const Spec table[] = {{{7}, {1}, {3}, {2}},
                        {{7}, {6}, {7}, {-1}},
                        {{7}, {0}, {0}, {1}},
                        {{7}, {5}, {2}, {-3}},
                        {{5, 7}, {1, 2}, {3, 5}, {1, 1}},
                        {{5, 7}, {4, 0}, {2, 3}, {-2, 3}},
                        {{0, 3}, {0, 1}, {0, 2}, {1, 1}},
                        {{2, 3, 5, 7}, {0, 2, 1, 0}, {2, 1, 2, 4}, {1, 1, 2, 2}}};
  Cases result;
  for (const Spec& r : table) {
    result.push_back(
        case_of(cat(r.shape, " from ", r.starts, " size ", r.sizes, " step ", r.steps), r.shape,
                [r](const Value& x) { return graph::slice(x, r.starts, r.sizes, r.steps); }));
  }
  return result;
}

Cases window_cases(DType) {
  struct Spec {
    Shape shape;
    int axis;
    int64_t size, step;
  };
  const Spec table[] = {{{7}, 0, 3, 1},    {{7}, 0, 7, 1},          {{7}, 0, 1, 3},
                        {{8}, 0, 3, 2},    {{9}, 0, 3, 3},          {{7}, 0, 2, 4},
                        {{1}, 0, 1, 1},    {{0, 3}, 1, 2, 1},       {{5, 7}, 0, 2, 1},
                        {{5, 7}, 1, 3, 2}, {{2, 3, 5, 7}, 2, 4, 1}, {{31, 37}, 0, 5, 3}};
  Cases result;
  for (const Spec& r : table) {
    result.push_back(
        case_of(cat(r.shape, " axis ", r.axis, " size ", r.size, " step ", r.step), r.shape,
                [r](const Value& x) { return graph::window(x, r.axis, r.size, r.step); }));
  }
  return result;
}

Cases pad_cases(DType) {
  struct Spec {
    Shape shape;
    Dims before, after;
  };
  const Spec table[] = {
      {{}, {}, {}},    {{0}, {2}, {1}},          {{7}, {0}, {3}},
      {{1}, {5}, {0}}, {{3, 5}, {1, 2}, {0, 3}}, {{2, 3, 5, 7}, {1, 0, 0, 2}, {0, 1, 0, 3}}};
  Cases result;
  for (const Spec& r : table) {
    result.push_back(case_of(cat(r.shape, " by ", r.before, " and ", r.after), r.shape,
                             [r](const Value& x) { return graph::pad(x, r.before, r.after, 1); }));
  }
  return result;
}

Cases concat_cases(DType) {
  struct Spec {
    std::vector<Shape> parts;
    int axis;
  };
  const Spec table[] = {{{{7}}, 0},
                        {{{3}, {0}, {5}}, 0},
                        {{{3, 5}, {1, 5}}, 0},
                        {{{3, 5}, {3, 2}, {3, 7}}, 1},
                        {{{0, 3}, {0, 2}}, 1},
                        {{{2, 3, 5, 1}, {2, 2, 5, 1}}, 1}};
  Cases result;
  for (const Spec& row : table) {
    std::vector<Input> inputs;
    for (const Shape& part : row.parts) inputs.push_back({part, kAround});
    auto build = [axis = row.axis](const Values& in) { return Values{graph::concat(in, axis)}; };
    result.push_back({cat(inputs.size(), " parts like ", inputs[0].shape), inputs, build, 0});
  }
  return result;
}

Cases stop_gradient_cases(DType) {
  Cases result;
  for (const Shape& shape : kShapes) {
    result.push_back(
        case_of(to_string(shape), shape, [](const Value& x) { return graph::stop_gradient(x); }));
  }
  return result;
}

// A region that computes something: -x between its two markers.
Cases region_cases(DType) {
  auto region = [](const Value& x) {
    Attrs attrs;
    attrs.bits = 1;
    const Value entered{make_node(Op::region_enter, {x}, attrs), 0};
    return Value{make_node(Op::region_exit, {graph::apply(Op::neg, entered)}, attrs), 0};
  };
  Cases result;
  for (const Shape& shape : kShapes) result.push_back(case_of(to_string(shape), shape, region));
  return result;
}

// (a, b) -> a · b and a + b, with the gradient that this has.
Cases custom_vjp_cases(DType) {
  auto build = [](const Values& in) {
    using namespace graph;
    auto vjp = [](const Values& x, const Values&, const Values& g) {
      return Values{g[0] * x[1] + g[1], g[0] * x[0] + g[1]};
    };
    Attrs attrs;
    attrs.axis = 2;
    return outputs_of(make_node(Op::custom_vjp, {in[0], in[1], in[0] * in[1], in[0] + in[1]}, attrs,
                                std::make_shared<const VjpFunction>(vjp)));
  };
  Cases result;
  for (const Shape& shape : kShapes) {
    result.push_back({to_string(shape), {{shape, kAround}, {shape, kAround}}, build});
  }
  return result;
}

}  // namespace tessera
