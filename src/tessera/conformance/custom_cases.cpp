#include "tessera/conformance/cases.h"
#include "tessera/graph/build.h"
#include "tessera/graph/custom.h"

namespace tessera {

namespace {

using Operands = std::span<const CustomOperand>;

void sum_and_product(Operands in, Operands out) {
  visit(in[0].dtype, [&]<class T>() {
    const auto a = in[0].as<const T>(), b = in[1].as<const T>();
    const auto sum = out[0].as<T>(), product = out[1].as<T>();
    for (size_t i = 0; i < a.size(); ++i) {
      sum[i] = T(a[i] + b[i]);
      product[i] = T(a[i] * b[i]);
    }
  });
}

// (a, b) -> a + b, a · b, by a user's kernel.
uint64_t definition() {
  using namespace graph;
  CustomDefinition d;
  d.kernel = std::make_shared<const CustomKernel>(
      CustomKernel{"sum_and_product", sum_and_product, "", ""});
  d.types = [](std::span<const Type> in) { return std::vector<Type>{in[0], in[0]}; };
  d.composite = [](const Values& in) { return Values{in[0] + in[1], in[0] * in[1]}; };
  d.vjp = [](const Values& in, const Values&, const Values& g) {
    return Values{g[0] + g[1] * in[1], g[0] + g[1] * in[0]};
  };
  return register_custom(std::move(d));
}

}  // namespace

Cases custom_cases(DType) {
  static const uint64_t number = definition();
  Cases cases;
  for (const Shape& shape : {Shape{}, Shape{0, 3}, Shape{7}, Shape{3, 5}, Shape{2, 3, 5, 7}}) {
    cases.push_back({to_string(shape), {{shape, kAround}, {shape, kAround}}, [](const Values& in) {
                       Attrs attrs;
                       attrs.bits = number;
                       return graph::outputs_of(make_node(Op::custom, in, attrs));
                     }});
  }
  return cases;
}

}  // namespace tessera
