#include "tessera/tensor/custom_op.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/expect_error.h"
#include "tessera/conformance/reference.h"
#include "tessera/tensor/compiled.h"
#include "tessera/tensor/eager.h"
#include "tessera/tensor/ops.h"

namespace tessera {
namespace {

using Operands = std::span<const CustomOperand>;
using Types = std::vector<Type>;
using Tensors = std::vector<Tensor>;

Types as_first(std::span<const Type> in) { return {in[0]}; }

void cube_of(Operands in, Operands out) {
  const auto x = in[0].as<const float>();
  const auto y = out[0].as<float>();
  for (size_t i = 0; i < x.size(); ++i) y[i] = x[i] * x[i] * x[i];
}

CustomOp cube() { return {.name = "cube", .types = as_first, .cpu = cube_of}; }

Tensors cube_gradient(const Tensors& x, const Tensors&, const Tensors& g) {
  return {g[0] * 3 * square(x[0])};
}

TEST(CustomOp, TakesPartInExpressionsAndViews) {
  const CustomFunction op = custom_op(cube());
  const Tensor x = tensor(std::vector<float>{1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_EQ(to_doubles(op(transpose(x)) + 1), (std::vector<double>{2, 65, 9, 126, 28, 217}));
  EXPECT_EQ(to_doubles(op(slice(x, 1, 0, 3, 2))), (std::vector<double>{1, 27, 64, 216}));
  EXPECT_EQ(op(zeros({0, 4})).eval().shape(), (Shape{0, 4}));
  EXPECT_EQ(op(scalar(2.f)).item(), 8);
}

TEST(CustomOp, IsOneKernelOfACompiledStepUnderItsName) {
  const CustomFunction op = custom_op(cube());
  const auto f = compile([&](const Tensor& x) { return op(x * 2) + 1; });
  EXPECT_EQ(f(scalar(1.f)).item(), 9);
  EXPECT_EQ(f(scalar(2.f)).item(), 65);
  bool found = false;
  for (const Instruction& i : f.program().instructions) found |= i.label == "cube";
  EXPECT_TRUE(found);
}

TEST(CustomOp, HasItsGradientOfAnyOrder) {
  CustomOp definition = cube();
  definition.vjp = cube_gradient;
  const CustomFunction op = custom_op(definition);
  const Tensor x = tensor(std::vector<float>{1, -2, 3});
  const Tensor first = grad(sum(op(x)), x);
  EXPECT_EQ(to_doubles(first), (std::vector<double>{3, 12, 27}));
  EXPECT_EQ(to_doubles(grad(sum(first), x)), (std::vector<double>{6, -12, 18}));
}

TEST(CustomOp, WithoutAGradientTakesThatOfItsComposite) {
  CustomOp definition = cube();
  definition.composite = [](const Tensors& in) { return Tensors{in[0] * in[0] * in[0]}; };
  const CustomFunction op = custom_op(definition);
  const Tensor x = tensor(std::vector<float>{1, -2, 3});
  EXPECT_EQ(to_doubles(grad(sum(op(x)), x)), (std::vector<double>{3, 12, 27}));
}

TEST(CustomOp, WithoutAKernelIsItsComposite) {
  const CustomFunction op =
      custom_op({.name = "twice",
                 .types = as_first,
                 .cuda = "extern \"C\" __global__ void twice(const float*, float*, long long);",
                 .composite = [](const Tensors& in) { return Tensors{in[0] * 2}; }});
  EXPECT_EQ(op(scalar(4.f)).item(), 8);
}

TEST(CustomOp, CompositesWorkInEagerMode) {
  CustomOp definition = cube();
  definition.composite = [](const Tensors& in) { return Tensors{in[0] * in[0] * in[0]}; };
  const CustomFunction op = custom_op(definition);
  const CustomFunction plain =
      custom_op({.name = "plain", .types = as_first, .composite = definition.composite});
  const EagerGuard eager(true);
  const Tensor x = tensor(std::vector<float>{1, -2, 3});
  EXPECT_EQ(to_doubles(grad(sum(op(x)), x)), (std::vector<double>{3, 12, 27}));
  EXPECT_EQ(to_doubles(plain(x + 1)), (std::vector<double>{8, -1, 64}));
}

TEST(CustomOp, SeveralOutputsOfOtherTypes) {
  const CustomFunction op =
      custom_op({.name = "halves",
                 .types =
                     [](std::span<const Type> in) {
                       return Types{{DType::f32, in[0].shape}, {DType::boolean, {in[0].shape[0]}}};
                     },
                 .cpu =
                     [](Operands in, Operands out) {
                       const auto x = in[0].as<const int32_t>();
                       for (size_t i = 0; i < x.size(); ++i) {
                         out[0].as<float>()[i] = float(x[i]) / 2;
                         out[1].as<bool>()[i] = x[i] % 2 != 0;
                       }
                     }});
  const Tensors y = op(Tensors{tensor(std::vector<int32_t>{4, 7})});
  EXPECT_EQ(to_doubles(y[1]), (std::vector<double>{0, 1}));  // alone: the other has a buffer too
  EXPECT_EQ(to_doubles(y[0]), (std::vector<double>{2, 3.5}));
}

TEST(CustomOp, DefinitionsDoNotMix) {
  CustomOp definition = cube();
  definition.cpu = [](Operands in, Operands out) {
    out[0].as<float>()[0] = in[0].as<const float>()[0] + 100;
  };
  const CustomFunction first = custom_op(cube()), second = custom_op(definition);
  const Tensor x = scalar(2.f);
  EXPECT_EQ(first(x).item(), 8);
  EXPECT_EQ(second(x).item(), 102);
}

TEST(CustomOpError, AKernelCannotEvaluate) {
  const Tensor other = random_tensor({2}, 1);
  CustomOp op = cube();
  op.cpu = [&](Operands, Operands) { (other + 1).eval(); };
  EXPECT_EQ(error_text([&] { custom_op(op)(scalar(1.f)).eval(); }),
            "a tensor cannot be evaluated inside a kernel in kernel cube");
  op = cube();
  op.composite = [&](const Tensors& in) { return Tensors{in[0] * sum(other).item()}; };
  op.cpu = nullptr;
  EXPECT_EQ(error_text([&] { custom_op(op)(scalar(1.f)).eval(); }),
            "a value cannot be read while its function is being compiled: return it instead");
  EXPECT_EQ(sum(other * 0).item(), 0);  // and nothing is left locked
}

TEST(CustomOpError, OfTheDefinition) {
  CustomOp op = cube();
  op.name = "two words";
  EXPECT_EQ(error_text([&] { custom_op(op); }),
            "custom_op: expected a name of letters, digits and '_', got 'two words'");
  op = cube();
  op.types = nullptr;
  EXPECT_EQ(error_text([&] { custom_op(op); }),
            "custom_op: 'cube' has no rule for the types of its outputs");
  op = cube();
  op.cpu = nullptr;
  EXPECT_EQ(error_text([&] { custom_op(op); }),
            "custom_op: 'cube' has neither a kernel nor a composite");
}

TEST(CustomOpError, OfACall) {
  const Tensor x = scalar(2.f);
  EXPECT_EQ(error_text([&] { grad(custom_op(cube())(x), x).eval(); }),
            "custom_op: 'cube' has neither vjp nor composite to differentiate");
  const CustomFunction elsewhere =
      custom_op({.name = "elsewhere", .types = as_first, .cuda = "source"});
  EXPECT_EQ(error_text([&] { elsewhere(x).eval(); }),
            "custom_op: 'elsewhere' has no kernel for this device and no composite");
  CustomOp writes = cube();
  writes.cpu = [](Operands in, Operands) { in[0].as<float>()[0] = 1; };
  EXPECT_EQ(error_text([&] { custom_op(writes)(x).eval(); }),
            "custom_op: an input must not be written: take it as<const T>() in kernel cube");
  CustomOp op = cube();
  op.composite = [](const Tensors& in) { return Tensors{in[0], in[0]}; };
  EXPECT_EQ(error_text([&] { grad(custom_op(op)(x), x).eval(); }),
            "custom_op: the composite of 'cube' gives other outputs than the op");
  op.vjp = [](const Tensors&, const Tensors&, const Tensors&) { return Tensors{}; };
  EXPECT_EQ(error_text([&] { grad(custom_op(op)(x), x).eval(); }),
            "custom_op: 'cube': expected 1 gradients, got 0");
  op.types = [](std::span<const Type>) { return Types{}; };
  EXPECT_EQ(error_text([&] { custom_op(op)(x); }), "custom_op: 'cube' names no output");
  op.types = [](std::span<const Type>) { return Types{{DType::f32, {-1}}}; };
  EXPECT_EQ(error_text([&] { custom_op(op)(x); }),
            "custom_op: 'cube' gives an output the type f32(-1,)");
  op.types = [](std::span<const Type> in) { return Types{in[0], in[0]}; };
  EXPECT_EQ(error_text([&] { custom_op(op)(x); }), "custom_op: expected one output, got 2");
  const std::string wrong = error_text([&] { custom_op(cube())(scalar(2)).eval(); });
  EXPECT_EQ(wrong, "custom_op: the operand holds i32, not f32 in kernel cube");
}

}  // namespace
}  // namespace tessera
