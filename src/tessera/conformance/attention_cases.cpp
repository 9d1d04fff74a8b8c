// Cases of attention and attention_backward.
#include <cmath>

#include "tessera/conformance/cases.h"
#include "tessera/graph/attention.h"

namespace tessera {

namespace {

enum class Mask : uint8_t { none, logical, added };

struct Spec {
  int64_t b, h, g, t, s, d, e;
  bool causal = false;
  Mask mask = Mask::none;
  bool lengths = false;
  double dropout = 0;
};

// Odd sizes, and one (37, 70) beyond a tile and a panel of every instruction set.
const Spec kSpecs[] = {{1, 1, 1, 1, 1, 1, 1},
                       {2, 3, 1, 4, 5, 3, 2},
                       {1, 2, 2, 37, 70, 5, 7, true},
                       {1, 2, 1, 5, 3, 4, 3, true},
                       {2, 2, 2, 3, 5, 2, 3, false, Mask::logical},
                       {1, 4, 2, 3, 4, 3, 1, true, Mask::added},
                       {3, 2, 1, 2, 5, 3, 3, false, Mask::none, true},
                       {2, 2, 2, 3, 3, 2, 2, true, Mask::added, true, 0.25},
                       {1, 2, 1, 5, 33, 3, 2, false, Mask::none, false, 0.5},
                       {0, 2, 1, 3, 4, 2, 2},
                       {1, 2, 1, 0, 4, 2, 2, true},
                       {1, 2, 1, 3, 0, 2, 2},
                       {1, 2, 1, 3, 4, 0, 2},
                       {1, 2, 1, 3, 4, 2, 0}};

std::string name_of(const Spec& x) {
  constexpr const char* kMasks[] = {"", " masked", " with a mask added"};
  return cat(Shape{x.b, x.h, x.t, x.d}, " on ", Shape{x.b, x.g, x.s, x.e},
             x.causal ? " causal" : "", kMasks[int(x.mask)], x.lengths ? " lengths" : "",
             x.dropout != 0 ? " dropout" : "");
}

std::vector<Input> inputs_of(const Spec& x) {
  std::vector<Input> result = {{{x.b, x.h, x.t, x.d}, kAround},
                               {{x.b, x.g, x.s, x.d}, kAround},
                               {{x.b, x.g, x.s, x.e}, kAround}};
  const Element mask = x.mask == Mask::logical ? Element::boolean : Element::compute;
  if (x.mask != Mask::none) result.push_back({{x.b, x.h, x.t, x.s}, kAround, mask});
  const auto number = [](const Shape& shape, int64_t limit) {
    return Input{shape, {0, double(limit), Pick::index}, Element::index};
  };
  if (x.lengths) result.push_back(number({x.b}, x.s + 2));
  if (x.dropout != 0) result.insert(result.end(), {number({}, 1000), number({}, 1000)});
  return result;
}

// q, k and v start at `first`, what the spec adds at `rest`.
AttentionInputs attention_of(const Spec& x, const Values& in, size_t first, size_t rest) {
  AttentionInputs result;
  result.q = in[first];
  result.k = in[first + 1];
  result.v = in[first + 2];
  if (x.mask != Mask::none) result.mask = in[rest++];
  if (x.lengths) result.lengths = in[rest++];
  if (x.dropout != 0) {
    result.key = in[rest];
    result.offset = in[rest + 1];
    result.dropout = x.dropout;
  }
  result.causal = x.causal;
  result.scale = 0.5;
  return result;
}

// A score's error is that of a sum of d products, and a weight's grows with it.
double growth_of(const Spec& x) { return std::sqrt(double((x.d + 1) * (x.t + x.s))); }

}  // namespace

// With lse as a result, and without: then the gradient is attention_backward.
Cases attention_cases(DType) {
  Cases result;
  for (const Spec& x : kSpecs) {
    auto all = [x](const Values& in) { return graph::attention(attention_of(x, in, 0, 3)); };
    auto alone = [all](const Values& in) { return Values{all(in)[0]}; };
    result.push_back({name_of(x), inputs_of(x), all, growth_of(x)});
    result.push_back({name_of(x) + " alone", inputs_of(x), alone, growth_of(x)});
  }
  return result;
}

Cases attention_backward_cases(DType) {
  Cases result;
  for (const Spec& x : kSpecs) {
    // Signs by which g vᵀ and Σ g · y do not cancel to something small beside which their rounding
    // would look large.
    const Shape y = {x.b, x.h, x.t, x.e};
    std::vector<Input> inputs = inputs_of(x);
    inputs[2].domain = {0.25, 2};
    inputs.insert(inputs.begin() + 3,
                  {{y, {-2, -0.25}}, {{x.b, x.h, x.t}, {2, 3}, Element::compute}});
    inputs.insert(inputs.begin(), {y, {0.25, 2}});
    auto build = [x](const Values& in) {
      return graph::attention_backward(in[0], attention_of(x, in, 1, 6), in[4], in[5]);
    };
    result.push_back({name_of(x), inputs, build, growth_of(x)});
  }
  return result;
}

}  // namespace tessera
