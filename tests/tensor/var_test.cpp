#include <gtest/gtest.h>

#include <cmath>

#include <thread>

#include "support/expect_error.h"
#include "tessera/tessera.h"

namespace tessera {
namespace {

TEST(Var, HoldsACopyOfItsInitialValue) {
  const Tensor initial = tensor<float>({1, 2, 3});
  const Var w(initial, "w");
  EXPECT_EQ(w.name(), "w");
  EXPECT_EQ(w.shape(), (Shape{3}));
  EXPECT_EQ(w.dtype(), DType::f32);
  EXPECT_TRUE(w.trainable());
  w.assign(w.value() * 2);
  EXPECT_EQ(w.value().to_vector<float>(), (std::vector<float>{2, 4, 6}));
  EXPECT_EQ(initial.to_vector<float>(), (std::vector<float>{1, 2, 3}));
  EXPECT_FALSE(Var(scalar(int64_t{1}), "counter").trainable());  // integers have no gradient
}

TEST(Var, ReadsGiveTheAssignedValueBeforeItIsWritten) {
  const Var w(scalar(1.0f), "w");
  w.assign(w.value() + 1);
  w.assign(w.value() * 10);
  EXPECT_EQ((w.value() + 0.5).item(), 20.5);
}

TEST(Var, ManyAssignsWithoutAReadStayBounded) {
  const Var w(scalar(0.0f), "w");
  w.assign(w.value() + 1);
  const int64_t nodes = live_nodes();
  for (int i = 0; i < 1000; ++i) w.assign(w.value() + 1);
  EXPECT_LT(live_nodes(), nodes + 20);
  EXPECT_EQ(w.value().item(), 1001);
}

TEST(Var, SetOverwritesFromTheHost) {
  const Var rate(scalar(0.5f), "rate", false);
  const Var halves(cast(ones({2}), DType::bf16), "halves");
  auto f = compile([&](const Tensor& x) { return x * rate.value(); });
  EXPECT_EQ(f(scalar(8.0f)).item(), 4);
  rate.set(0.25);
  EXPECT_EQ(f(scalar(8.0f)).item(), 2);
  EXPECT_EQ(f.stats().compilations, 1);
  halves.set(3);
  EXPECT_EQ(cast(halves, DType::f32).to_vector<float>(), (std::vector<float>{3, 3}));
}

TEST(Var, WorksForAllDtypes) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const DType dtype = static_cast<DType>(i);
    const Var v(cast(tensor<float>({0, 1, 1}), dtype), "v");
    v.assign(flip(v, 0));
    EXPECT_EQ(cast(v, DType::f32).to_vector<float>(), (std::vector<float>{1, 1, 0})) << name(dtype);
  }
}

// A value that was assigned lies in the Var's storage, but is more than that storage.
TEST(Var, AnAssignedValueSurvivesTheNextAssign) {
  const Tensor x = tensor<float>({1, 2});
  const Var w(zeros({2}), "w");
  const Tensor doubled = x * 2;
  w.assign(doubled);
  flush();
  w.assign(w.value() + 1);
  flush();
  EXPECT_EQ(doubled.to_vector<float>(), (std::vector<float>{2, 4}));
  EXPECT_EQ(w.value().to_vector<float>(), (std::vector<float>{3, 5}));
}

TEST(VarError, AssignsOfAnotherThreadMustBeWrittenThere) {
  const Var w(scalar(1.0f), "w"), v(scalar(1.0f), "v");
  std::thread([&] {
    w.assign(w.value() + 1);
    v.assign(v.value() + 1);
    flush();
    w.assign(w.value() + 1);
  }).join();
  EXPECT_EQ(v.value().item(), 2);
  const std::string text = "Var: 'w' was assigned in another thread: flush() there first";
  EXPECT_EQ(error_text([&] { w.value(); }), text);
  EXPECT_EQ(error_text([&] { w.assign(scalar(0.0f)); }), text);
}

TEST(VarError, LiteralsMustFit) {
  const Tensor u = tensor<uint8_t>({1, 2}), i = tensor<int8_t>({1, 2});
  EXPECT_EQ(error_text([&] { logical_not(u < -1); }), "literal: -1 does not fit u8");
  EXPECT_EQ(error_text([&] { sum(i + 1000); }), "literal: 1000 does not fit i8");
  EXPECT_EQ(error_text([&] { full({2}, 0.5, DType::i32); }), "literal: 0.5 does not fit i32");
  EXPECT_EQ(error_text([&] { full({2}, 2, DType::boolean); }), "literal: 2 does not fit bool");
  EXPECT_EQ(error_text([&] { Var(u, "u").set(256); }), "literal: 256 does not fit u8");
  EXPECT_EQ(error_text([&] { full({}, 1e30, DType::i64); }), "literal: 1e+30 does not fit i64");
  EXPECT_EQ((u + 255).to_vector<uint8_t>(), (std::vector<uint8_t>{0, 1}));  // sums wrap
  EXPECT_EQ((u + 0.5).to_vector<float>(), (std::vector<float>{1.5f, 2.5f}));
}

// 2^-27 is 0 in f16.
TEST(Var, GradientsOfHalvesMayBeWide) {
  const Var half(ones({2}, DType::f16), "half");
  half.set_grad(full({2}, std::ldexp(1.0, -27)));
  EXPECT_EQ(half.grad().to_vector<float>(), std::vector<float>(2, std::ldexp(1.0f, -27)));
  backward(sum(half));
  EXPECT_EQ(half.grad().dtype(), DType::f32);
  EXPECT_EQ(half.grad().to_vector<float>(), std::vector<float>(2, 1 + std::ldexp(1.0f, -27)));
  half.set_grad({});
}

TEST(VarError, SaysWhatWasExpected) {
  const Var w(zeros({2, 3}), "w");
  EXPECT_EQ(error_text([&] {
              w.assign(zeros({3, 2}));
            }),
            "assign: expected f32(2, 3) for 'w', got f32(3, 2)");
  EXPECT_EQ(error_text([&] {
              w.assign(zeros({2, 3}, DType::f64));
            }),
            "assign: expected f32(2, 3) for 'w', got f64(2, 3)");
  EXPECT_EQ(error_text([&] { w.set_grad(zeros({2})); }),
            "set_grad: expected f32(2, 3) for 'w', got f32(2,)");
  const Var half(zeros({2}, DType::f16), "half");
  EXPECT_EQ(error_text([&] { half.set_grad(zeros({2}, DType::f64)); }),
            "set_grad: expected f16(2,) for 'half', got f64(2,)");
  const double x = 1;
  EXPECT_EQ(error_text([&] { w.set_bytes(DType::f64, &x); }), "set: expected f32 for 'w', got f64");
  EXPECT_EQ(error_text([] { Var().value(); }), "Var: expected a variable, got an empty handle");
}

}  // namespace
}  // namespace tessera
