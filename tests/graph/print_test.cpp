#include "tessera/graph/print.h"

#include <gtest/gtest.h>

#include "tessera/graph/build.h"
#include "tessera/graph/scope.h"

namespace tessera {
namespace {

using namespace graph;

Value f32(const Shape& shape) { return make_leaf({DType::f32, shape}); }

std::string text(const std::vector<Value>& outputs) { return to_text(outputs); }
std::string dot(const std::vector<Value>& outputs) { return to_dot(outputs); }

void expect_contains(const std::string& whole, const std::string& part) {
  EXPECT_NE(whole.find(part), std::string::npos) << part << "\nis not in\n" << whole;
}

TEST(PrintText, SmallGraph) {
  const Value x = f32({2, 3}), w = f32({3, 4});
  Value hidden;
  {
    const Scope scope("mlp/fc1");
    hidden = matmul(x, w);
  }
  const Value scaled = hidden * 0.5;
  const Value loss = reduce(Op::sum, scaled, {0, 1});
  EXPECT_EQ(text({loss, hidden}),
            "%0 = leaf f32(2, 3)\n"
            "%1 = leaf f32(3, 4)\n"
            "%2 = matmul f32(2, 4) %0, %1  # mlp/fc1\n"
            "%3 = constant f32() value=0.5\n"
            "%4 = reshape f32(1, 1) %3\n"
            "%5 = expand f32(2, 4) %4\n"
            "%6 = mul f32(2, 4) %2, %5\n"
            "%7 = sum f32(1, 1) %6 axes=(0, 1)\n"
            "return %7, %2\n");
}

TEST(PrintText, SeveralOutputsHaveANumberEach) {
  const Value x = f32({2, 4}), w = f32({4});
  const std::vector<Value> y = layer_norm(x, w, w, 1e-5);
  const Value sum = y[1] + y[2];
  EXPECT_EQ(text({sum, y[0]}),
            "%0 = leaf f32(2, 4)\n"
            "%1 = leaf f32(4,)\n"
            "%2, %3, %4 = layer_norm f32(2, 4), f32(2, 1), f32(2, 1) %0, %1, %1 epsilon=1e-05\n"
            "%5 = add f32(2, 1) %3, %4\n"
            "return %5, %2\n");
}

TEST(PrintText, Attributes) {
  const Value x = f32({4, 6});
  const Value start = make_leaf({DType::i64, {}}), index = make_leaf({DType::i64, {2, 6}});
  const Value update = f32({1, 6});
  Attrs region;
  region.bits = 7;
  Attrs vjp;
  vjp.axis = 1;
  const auto function = std::make_shared<const VjpFunction>();
  const std::pair<Value, const char*> cases[] = {
      {iota(DType::i32, {2, 3}, 1), "= iota i32(2, 3) axis=1\n"},
      {reduce(Op::argmax, x, {1}), "= argmax i64(4, 1) %0 axes=(1,)\n"},
      {reduce(Op::prod, x, {0}), "= prod f32(1, 6) %0 axes=(0,)\n"},
      {window(x, 1, 2, 3), "= window f32(4, 2, 2) %0 axis=1 size_step=(2, 3)\n"},
      {cumsum(x, 1), "= cumsum f32(4, 6) %0 axis=1\n"},
      {cumprod(x, 0), "= cumprod f32(4, 6) %0 axis=0\n"},
      {sort(x, true)[0], "= sort f32(4, 6), i64(4, 6) %0 descending=1\n"},
      {topk(x, 2, false)[0], "= topk f32(4, 2), i64(4, 2) %0 largest=0\n"},
      {reduce(Op::max, x, {0}), "= max f32(1, 6) %0 axes=(0,)\n"},
      {reduce(Op::min, x, {0}), "= min f32(1, 6) %0 axes=(0,)\n"},
      {permute(x, {1, 0}), "= permute f32(6, 4) %0 permutation=(1, 0)\n"},
      {slice(x, {3, 0}, {2, 3}, {-1, 2}), "= slice f32(2, 3) %0 starts=(3, 0) steps=(-1, 2)\n"},
      {pad(x, {1, 0}, {0, 2}, -1.5), "= pad f32(5, 8) %0 before=(1, 0) after=(0, 2) value=-1.5\n"},
      {concat({x, x}, 1), "= concat f32(4, 12) %0, %0 axis=1\n"},
      {gather(x, index, 0), "= gather f32(2, 6) %0, %1 axis=0\n"},
      {scatter_add(x, index, f32({2, 6}), 0), "= scatter_add f32(4, 6) %0, %1, %2 axis=0\n"},
      {dynamic_slice(x, start, 1, 2), "= dynamic_slice f32(4, 2) %0, %1 axis=1\n"},
      {dynamic_update_slice(x, update, start, 0),
       "= dynamic_update_slice f32(4, 6) %0, %1, %2 axis=0\n"},
      {{make_node(Op::region_enter, {x}, region), 0}, "= region_enter f32(4, 6) %0 region=7\n"},
      {{make_node(Op::custom_vjp, {x, update}, vjp, function), 0},
       "= custom_vjp f32(1, 6) %0, %1 inputs=1\n"},
      {cast(x, DType::f16), "= cast f16(4, 6) %0\n"},
  };
  for (const auto& [value, expected] : cases) expect_contains(text({value}), expected);
}

TEST(PrintText, ConstantsReadBack) {
  const std::pair<Value, const char*> cases[] = {
      {constant(DType::f32, 0.1), "f32() value=0.1\n"},
      {constant(DType::f64, 0.1), "f64() value=0.1\n"},
      {constant(DType::f64, double(0.1f)), "f64() value=0.10000000149011612\n"},
      {constant(DType::f32, -0.0), "f32() value=-0\n"},
      {constant(DType::bf16, 1.0 / 0.0), "bf16() value=inf\n"},
      {constant_int(DType::i64, INT64_MIN), "i64() value=-9223372036854775808\n"},
      {constant_int(DType::u8, 255), "u8() value=255\n"},
      {constant_int(DType::boolean, 1), "bool() value=true\n"},
      {constant_int(DType::boolean, 0), "bool() value=false\n"},
  };
  for (const auto& [value, expected] : cases) expect_contains(text({value}), expected);
}

TEST(PrintText, NumbersDoNotDependOnTheProcess) {
  const auto build = [] {
    const Value x = f32({2});
    return std::vector<Value>{apply(Op::exp, x) + apply(Op::neg, x)};
  };
  const std::string first = text(build());
  const std::vector<Value> others = {f32({1}), f32({1})};
  EXPECT_EQ(text(build()), first);
  EXPECT_EQ(to_text({}), "return\n");
}

TEST(PrintDot, SmallGraph) {
  const Value x = f32({2, 2});
  const Value y = apply(Op::exp, x), z = y + x, w = z - y;
  EXPECT_EQ(dot({w}),
            "digraph tessera {\n"
            "  node [shape=box, style=\"rounded,filled\", fontname=\"Helvetica\"];\n"
            "  n0 [label=\"leaf\\nf32(2, 2)\", fillcolor=\"#eeeeee\"];\n"
            "  n1 [label=\"exp\\nf32(2, 2)\", fillcolor=\"#d9ead3\"];\n"
            "  n0 -> n1;\n"
            "  n2 [label=\"add\\nf32(2, 2)\", fillcolor=\"#d9ead3\"];\n"
            "  n1 -> n2;\n"
            "  n0 -> n2;\n"
            "  n3 [label=\"sub\\nf32(2, 2)\", fillcolor=\"#d9ead3\"];\n"
            "  n2 -> n3 [headlabel=0];\n"
            "  n1 -> n3 [headlabel=1];\n"
            "  out0 [label=\"output 0\", shape=plaintext, style=\"\"];\n"
            "  n3 -> out0;\n"
            "}\n");
}

TEST(PrintDot, OutputsAttributesAndScopes) {
  const Scope scope("say \"hi\"");
  const Value x = f32({2, 4}), w = f32({4});
  const std::vector<Value> y = layer_norm(x, w, w, 1e-5);
  const std::string result = dot({reduce(Op::sum, y[1], {0}), y[2]});
  expect_contains(result,
                  "label=\"layer_norm\\nf32(2, 4)\\nf32(2, 1)\\nf32(2, 1)\\nepsilon=1e-05\"");
  expect_contains(result, "tooltip=\"say \\\"hi\\\"\"");
  expect_contains(result, "n2 -> n3 [taillabel=1];");
  expect_contains(result, "label=\"sum\\nf32(1, 1)\\naxes=(0,)\"");
  expect_contains(result, "n2 -> out1 [taillabel=2];");
}

TEST(PrintDot, EveryKindHasItsColor) {
  const Value x = f32({2, 2}), i = make_leaf({DType::i64, {2, 2}});
  const std::pair<Value, const char*> cases[] = {
      {apply(Op::exp, x), "#d9ead3"},       {x, "#eeeeee"},
      {reduce(Op::sum, x, {0}), "#fce5cd"}, {permute(x, {1, 0}), "#ffffff"},
      {concat({x, x}, 0), "#d0e0e3"},       {gather(x, i, 0), "#fff2cc"},
      {scatter_add(x, i, x, 0), "#f4cccc"}, {matmul(x, x), "#cfe2f3"},
      {stop_gradient(x), "#f3f3f3"},        {softmax(x), "#d9d2e9"},
  };
  for (const auto& [value, color] : cases) expect_contains(dot({value}), color);
}

}  // namespace
}  // namespace tessera
