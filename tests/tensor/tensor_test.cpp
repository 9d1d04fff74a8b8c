// Making tensors, reading them, and the handles themselves.
#include "tessera/tensor/tensor.h"

#include <gtest/gtest.h>

#include <array>

#include "support/expect_error.h"
#include "tessera/conformance/reference.h"
#include "tessera/tensor/ops.h"
#include "tessera/tensor/stats.h"

namespace tessera {
namespace {

using Doubles = std::vector<double>;

TEST(Tensor, FromVectorWithShape) {
  const Tensor t = tensor(std::vector<float>{1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_EQ(t.dtype(), DType::f32);
  EXPECT_EQ(t.shape(), (Shape{2, 3}));
  EXPECT_EQ(t.rank(), 2);
  EXPECT_EQ(t.numel(), 6);
  EXPECT_EQ(t.size(0), 2);
  EXPECT_EQ(t.size(-1), 3);
  EXPECT_EQ(t.to_vector<float>(), (std::vector<float>{1, 2, 3, 4, 5, 6}));
}

TEST(Tensor, FromVectorAloneIsOneDimensional) {
  EXPECT_EQ(tensor(std::vector<int64_t>{7, 8}).shape(), (Shape{2}));
  EXPECT_EQ(tensor(std::vector<int64_t>{}).shape(), (Shape{0}));
}

TEST(Tensor, FromSpanCopies) {
  std::array<int32_t, 3> data = {1, 2, 3};
  const Tensor t = tensor(std::span<const int32_t>(data), {3});
  data[0] = 9;
  EXPECT_EQ(t.to_vector<int32_t>(), (std::vector<int32_t>{1, 2, 3}));
}

template <class T>
void expect_round_trip(const std::vector<T>& data) {
  const Tensor t = tensor(data);
  EXPECT_EQ(t.dtype(), dtype_of<T>);
  const std::vector<T> back = t.to_vector<T>();
  ASSERT_EQ(back.size(), data.size());
  for (size_t i = 0; i < data.size(); ++i) EXPECT_EQ(double(back[i]), double(data[i])) << i;
}

TEST(Tensor, EveryElementTypeComesBack) {
  expect_round_trip<float>({1.5f, -2, 3e30f});
  expect_round_trip<double>({1.5, -2, 3e300});
  expect_round_trip<f16>({f16(1.5f), f16(-2)});
  expect_round_trip<bf16>({bf16(1.5f), bf16(-2)});
  expect_round_trip<int8_t>({-128, 127});
  expect_round_trip<int32_t>({INT32_MIN, INT32_MAX});
  expect_round_trip<uint8_t>({0, 255});
  expect_round_trip<uint32_t>({0, UINT32_MAX});
  expect_round_trip<bool>({true, false, true});
  const std::vector<int64_t> wide = {INT64_MIN, INT64_MAX};
  EXPECT_EQ(tensor(wide).to_vector<int64_t>(), wide);
}

TEST(Tensor, Scalars) {
  EXPECT_EQ(scalar(2.5f).shape(), Shape{});
  EXPECT_EQ(scalar(2.5f).item(), 2.5);
  EXPECT_EQ(scalar(true).dtype(), DType::boolean);
  EXPECT_EQ(scalar(true).item(), 1);
  EXPECT_EQ(scalar(int64_t{-3}).item(), -3);
  EXPECT_EQ(tensor(std::vector<double>{4.5}, {1, 1}).item(), 4.5);
}

TEST(Tensor, AScalarTensorIsDataNotStructure) {
  const Tensor x = arange(5, DType::f32);
  const int64_t before = eval_stats().compilations;
  EXPECT_EQ((x * scalar(2.0f)).to_vector<float>()[4], 8);
  EXPECT_EQ((x * scalar(3.0f)).to_vector<float>()[4], 12);
  EXPECT_LE(eval_stats().compilations - before, 1);
}

TEST(Tensor, FullZerosOnes) {
  EXPECT_EQ(to_doubles(full({2}, 2.5)), (Doubles{2.5, 2.5}));
  EXPECT_EQ(to_doubles(zeros({3}, DType::u8)), (Doubles{0, 0, 0}));
  EXPECT_EQ(to_doubles(ones({2, 1}, DType::boolean)), (Doubles{1, 1}));
  EXPECT_EQ(full({}, 7, DType::i64).item(), 7);
  EXPECT_EQ(full({}, int64_t{1} << 60, DType::i64).to_vector<int64_t>()[0], int64_t{1} << 60);
  EXPECT_TRUE(to_doubles(ones({0, 3})).empty());
}

TEST(Tensor, ArangeAndIota) {
  EXPECT_EQ(to_doubles(arange(4)), (Doubles{0, 1, 2, 3}));
  EXPECT_EQ(arange(4).dtype(), DType::i64);
  EXPECT_EQ(to_doubles(iota({2, 3}, 0, DType::f32)), (Doubles{0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(to_doubles(iota({2, 3}, -1)), (Doubles{0, 1, 2, 0, 1, 2}));
}

TEST(Tensor, EvalComputesTogether) {
  const Tensor x = tensor(std::vector<float>{1, 2, 3});
  const std::vector<Tensor> both = {exp(x), exp(x) + 1};
  const EvalStats before = eval_stats();
  eval(both);
  const EvalStats after = eval_stats();
  EXPECT_EQ(after.compilations + after.replays - before.compilations - before.replays, 1);
  both[0].to_vector<float>();
  EXPECT_EQ(eval_stats().replays, after.replays);
}

TEST(Tensor, EqualStructureIsCompiledOnce) {
  auto expression = [](float value) { return sum(full({17}, 1) * scalar(value) - 0.625); };
  expression(1).item();
  const EvalStats before = eval_stats();
  for (const float value : {2.0f, 3.0f, 4.0f}) {
    EXPECT_EQ(expression(value).item(), 17 * (double(value) - 0.625));
  }
  EXPECT_EQ(eval_stats().compilations, before.compilations);
  EXPECT_EQ(eval_stats().replays, before.replays + 3);
}

TEST(Tensor, DetachHasNoHistory) {
  const Tensor x = tensor(std::vector<float>{1, 2});
  const Tensor y = (x * 2).detach();
  EXPECT_EQ(y.value().node->op, Op::leaf);
  EXPECT_EQ(to_doubles(y), (Doubles{2, 4}));
}

TEST(Tensor, AnEmptyHandleSaysSo) {
  const Tensor none;
  EXPECT_FALSE(none.defined());
  EXPECT_TRUE(scalar(1.0f).defined());
  EXPECT_EQ(error_text([&] { none.shape(); }), "Tensor: expected a tensor, got an empty handle");
  EXPECT_EQ(error_text([&] { none + scalar(1.0f); }),
            "Tensor: expected a tensor, got an empty handle");
}

TEST(TensorError, WrongNumberOfElements) {
  EXPECT_EQ(error_text([] {
              tensor(std::vector<float>{1, 2}, {3});
            }),
            "tensor: expected 3 elements for (3,), got 2");
  EXPECT_EQ(error_text([] {
              tensor(std::vector<bool>{true}, {2, 3});
            }),
            "tensor: expected 6 elements for (2, 3), got 1");
}

TEST(TensorError, ReadingAsAnotherType) {
  EXPECT_EQ(error_text([] { arange(3).to_vector<float>(); }),
            "to_vector: the tensor holds i64, not f32");
}

TEST(TensorError, ItemOfSeveral) {
  EXPECT_EQ(error_text([] { arange(3).item(); }),
            "item: expected a tensor of one element, got (3,)");
}

TEST(TensorError, AxisOutOfRange) {
  EXPECT_EQ(error_text([] { arange(3).size(1); }), "size: axis 1 is out of range for 1 dimensions");
  EXPECT_EQ(error_text([] { iota({3}, 2); }), "iota: axis 2 is out of range for 1 dimensions");
}

}  // namespace
}  // namespace tessera
