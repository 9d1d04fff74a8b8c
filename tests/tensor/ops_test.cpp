// Reductions, slicing, products and indexing, against numbers worked out by hand or by plain loops.
// What every op computes is the business of tests/conformance.
#include "tessera/tensor/ops.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "tessera/conformance/reference.h"

namespace tessera {
namespace {

using Doubles = std::vector<double>;

Tensor vec(std::vector<float> values) { return tensor(values); }

TEST(Reductions, AxesAndKeepdims) {
  const Tensor x = reshape(arange(24, DType::f32), {2, 3, 4});
  EXPECT_EQ(sum(x).shape(), Shape{});
  EXPECT_EQ(sum(x).item(), 276);
  EXPECT_EQ(sum(x, {1}).shape(), (Shape{2, 4}));
  EXPECT_EQ(sum(x, {-1, 0}).shape(), (Shape{3}));
  EXPECT_EQ(to_doubles(sum(x, {-1, 0})), (Doubles{60, 92, 124}));
  EXPECT_EQ(sum(x, {1}, true).shape(), (Shape{2, 1, 4}));
  EXPECT_EQ(to_doubles(max(x, {1, 2})), (Doubles{11, 23}));
  EXPECT_EQ(to_doubles(min(x, {1, 2}, true)), (Doubles{0, 12}));
  EXPECT_EQ(to_doubles(mean(x, {0, 1})), (Doubles{10, 11, 12, 13}));
  EXPECT_EQ(sum(scalar(3.0f)).item(), 3);
}

TEST(Reductions, NarrowTypesSumAsWideOnes) {
  EXPECT_EQ(sum(full({1000}, 100, DType::i8)).dtype(), DType::i64);
  EXPECT_EQ(sum(full({1000}, 100, DType::i8)).item(), 100000);
  EXPECT_EQ(sum(full({1000}, 255, DType::u8)).item(), 255000);
  EXPECT_EQ(sum(arange(10) < 4).item(), 4);
}

TEST(Reductions, ArgmaxGivesTheFirst) {
  const Tensor x = tensor(std::vector<float>{1, 5, 5, 7, 7, 0}, {2, 3});
  EXPECT_EQ(to_doubles(argmax(x)), (Doubles{1, 0}));
  EXPECT_EQ(argmax(x).dtype(), DType::i64);
  EXPECT_EQ(to_doubles(argmax(x, 0)), (Doubles{1, 1, 0}));
  EXPECT_EQ(argmax(x, 0, true).shape(), (Shape{1, 3}));
}

TEST(Reductions, Errors) {
  EXPECT_EQ(error_text([] {
              sum(ones({2, 3}), {2});
            }),
            "sum: axis 2 is out of range for 2 dimensions");
  EXPECT_EQ(error_text([] {
              sum(ones({2, 3}), {1, -1});
            }),
            "sum: axis -1 is given twice in (1, -1)");
  EXPECT_EQ(error_text([] { max(ones({0, 3}), {0}); }), "max: axis 0 of (0, 3) is empty");
  EXPECT_EQ(error_text([] { mean(ones({2, 0}), {1}); }), "mean: no elements to average in (2, 0)");
  EXPECT_EQ(mean(ones({0, 3}), {1}).shape(), (Shape{0}));
}

TEST(Moves, ReshapeFindsOneExtent) {
  EXPECT_EQ(reshape(arange(12), {3, -1}).shape(), (Shape{3, 4}));
  EXPECT_EQ(reshape(arange(12), {-1}).shape(), (Shape{12}));
  EXPECT_EQ(reshape(scalar(1.0f), {-1}).shape(), (Shape{1}));
  EXPECT_EQ(reshape(zeros({0, 4}), {-1, 2}).shape(), (Shape{0, 2}));
  EXPECT_EQ(error_text([] {
              reshape(arange(12), {-1, -1});
            }),
            "reshape: expected at most one -1, got (-1, -1)");
  EXPECT_EQ(error_text([] {
              reshape(arange(12), {5, -1});
            }),
            "reshape: cannot turn (12,) into (5, -1)");
  EXPECT_EQ(error_text([] {
              reshape(zeros({0, 4}), {0, -1});
            }),
            "reshape: cannot turn (0, 4) into (0, -1)");
  EXPECT_EQ(error_text([] {
              reshape(arange(12), {5, 2});
            }),
            "reshape: cannot turn (12,) into (5, 2): 12 and 10 elements");
}

TEST(Moves, PermuteTransposeSqueeze) {
  const Tensor x = reshape(arange(6), {1, 2, 3});
  EXPECT_EQ(permute(x, {2, 0, 1}).shape(), (Shape{3, 1, 2}));
  EXPECT_EQ(permute(x, {-1, 0, 1}).shape(), (Shape{3, 1, 2}));
  EXPECT_EQ(to_doubles(transpose(x)), (Doubles{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(transpose(x, 0, 1).shape(), (Shape{2, 1, 3}));
  EXPECT_EQ(squeeze(x, 0).shape(), (Shape{2, 3}));
  EXPECT_EQ(unsqueeze(x, -1).shape(), (Shape{1, 2, 3, 1}));
  EXPECT_EQ(unsqueeze(x, 1).shape(), (Shape{1, 1, 2, 3}));
  EXPECT_EQ(to_doubles(broadcast_to(vec({1, 2}), {2, 2})), (Doubles{1, 2, 1, 2}));
  EXPECT_EQ(error_text([&] { squeeze(x, 1); }), "squeeze: axis 1 of (1, 2, 3) is not of extent 1");
  EXPECT_EQ(error_text([&] { broadcast_to(x, {3}); }),
            "broadcast_to: cannot broadcast (1, 2, 3) to (3,)");
  EXPECT_EQ(error_text([&] { transpose(arange(3)); }),
            "transpose: axis -2 is out of range for 1 dimensions");
}

// What NumPy gives for arange(7)[start:stop:step].
TEST(Slice, AsNumPy) {
  struct {
    int64_t start, stop, step;
    Doubles expected;
  } table[] = {{1, 5, 1, {1, 2, 3, 4}},
               {-3, 7, 1, {4, 5, 6}},
               {0, 7, 2, {0, 2, 4, 6}},
               {0, 100, 3, {0, 3, 6}},
               {-100, 3, 1, {0, 1, 2}},
               {2, 2, 1, {}},
               {5, 2, 1, {}},
               {2, 5, -1, {}},
               {5, 1, -2, {5, 3}},
               {10, 2, -3, {6, 3}},
               {4, -100, -1, {4, 3, 2, 1, 0}},
               {-1, -8, -1, {6, 5, 4, 3, 2, 1, 0}},
               {-1, -4, -1, {6, 5, 4}},
               {7, 9, 1, {}},
               {1, 3, INT64_MAX, {1}},
               {6, 0, INT64_MIN, {6}},
               {INT64_MIN, INT64_MAX, 4, {0, 4}}};
  for (const auto& [start, stop, step, expected] : table) {
    EXPECT_EQ(to_doubles(slice(arange(7), 0, start, stop, step)), expected)
        << start << ":" << stop << ":" << step;
  }
}

TEST(Slice, OnOneAxisOfSeveral) {
  const Tensor x = reshape(arange(12), {3, 4});
  EXPECT_EQ(to_doubles(slice(x, 1, 1, 4, 2)), (Doubles{1, 3, 5, 7, 9, 11}));
  EXPECT_EQ(to_doubles(slice(slice(x, 0, 2, 0, -1), -1, 0, 2)), (Doubles{8, 9, 4, 5}));
  EXPECT_EQ(to_doubles(flip(x, 1)), (Doubles{3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8}));
  EXPECT_EQ(flip(zeros({0, 2}), 0).shape(), (Shape{0, 2}));
  EXPECT_EQ(error_text([&] { slice(x, 1, 0, 4, 0); }), "slice: step of axis 1 is 0");
}

TEST(Assembly, PadConcatStack) {
  EXPECT_EQ(to_doubles(pad(vec({1, 2}), {1}, {2}, 9)), (Doubles{9, 1, 2, 9, 9}));
  EXPECT_EQ(to_doubles(concat({arange(2), arange(3)})), (Doubles{0, 1, 0, 1, 2}));
  EXPECT_EQ(concat({ones({2, 1}), ones({2, 3}, DType::f64)}, -1).dtype(), DType::f64);
  EXPECT_EQ(concat({ones({2, 1}), ones({2, 3})}, -1).shape(), (Shape{2, 4}));
  EXPECT_EQ(to_doubles(stack({arange(2), arange(2) + 5})), (Doubles{0, 1, 5, 6}));
  EXPECT_EQ(to_doubles(stack({arange(2), arange(2) + 5}, -1)), (Doubles{0, 5, 1, 6}));
  EXPECT_EQ(stack({scalar(1.0f), scalar(2.0f)}).shape(), (Shape{2}));
  EXPECT_EQ(error_text([] { concat({}); }), "concat: expected at least one tensor, got none");
  EXPECT_EQ(error_text([] { stack({}); }), "stack: expected at least one tensor, got none");
  EXPECT_EQ(error_text([] {
              stack({arange(2), arange(3)});
            }),
            "concat: shapes differ outside axis 0: (1, 2) and (1, 3)");
}

// c[…] = Σ_k a[…, i, k] · b[…, k, j], with batch axes that broadcast, in plain loops.
Doubles product(const Tensor& a, const Tensor& b, const Shape& batch, int64_t m, int64_t k,
                int64_t n) {
  const Doubles x = to_doubles(broadcast_to(a, [&] {
    Shape s = batch;
    s.push_back(m);
    s.push_back(k);
    return s;
  }()));
  const Doubles y = to_doubles(broadcast_to(b, [&] {
    Shape s = batch;
    s.push_back(k);
    s.push_back(n);
    return s;
  }()));
  Doubles c;
  for (int64_t q = 0; q < numel(batch); ++q) {
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t p = 0; p < k; ++p) {
          sum += x[size_t((q * m + i) * k + p)] * y[size_t((q * k + p) * n + j)];
        }
        c.push_back(sum);
      }
    }
  }
  return c;
}

TEST(Matmul, OfAnyRank) {
  const Tensor m = random_tensor({3, 4}, 1, DType::f64), n = random_tensor({4, 5}, 2, DType::f64);
  const Tensor batched = random_tensor({2, 1, 3, 4}, 3, DType::f64);
  const Tensor other = random_tensor({7, 4, 5}, 4, DType::f64);
  const Tensor v = random_tensor({4}, 5, DType::f64);
  auto expect_product = [](const Tensor& actual, const Shape& shape, const Doubles& expected) {
    EXPECT_EQ(actual.shape(), shape);
    const Doubles values = to_doubles(actual);
    ASSERT_EQ(values.size(), expected.size());
    for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], expected[i], 1e-13) << i;
  };
  expect_product(matmul(m, n), {3, 5}, product(m, n, {}, 3, 4, 5));
  expect_product(matmul(batched, other), {2, 7, 3, 5}, product(batched, other, {2, 7}, 3, 4, 5));
  expect_product(matmul(m, other), {7, 3, 5}, product(m, other, {7}, 3, 4, 5));
  expect_product(matmul(batched, n), {2, 1, 3, 5}, product(batched, n, {2, 1}, 3, 4, 5));
  expect_product(matmul(v, n), {5}, product(reshape(v, {1, 4}), n, {}, 1, 4, 5));
  expect_product(matmul(m, v), {3}, product(m, reshape(v, {4, 1}), {}, 3, 4, 1));
  expect_product(matmul(v, v), {}, product(reshape(v, {1, 4}), reshape(v, {4, 1}), {}, 1, 4, 1));
  expect_product(matmul(v, other), {7, 5}, product(reshape(v, {1, 4}), other, {7}, 1, 4, 5));
  expect_product(matmul(batched, v), {2, 1, 3},
                 product(batched, reshape(v, {4, 1}), {2, 1}, 3, 4, 1));
}

TEST(Matmul, Promotes) {
  EXPECT_EQ(matmul(ones({2, 3}, DType::i32), ones({3, 2})).dtype(), DType::f32);
  EXPECT_EQ(to_doubles(matmul(ones({1, 3}, DType::u8), full({3, 1}, 100, DType::i32))),
            (Doubles{300}));
}

TEST(Matmul, Errors) {
  EXPECT_EQ(error_text([] {
              matmul(ones({1024, 512}), ones({1024, 512}));
            }),
            "matmul: inner dimensions differ: (1024, 512) @ (1024, 512)");
  EXPECT_EQ(error_text([] { matmul(ones({3}), ones({4})); }),
            "matmul: inner dimensions differ: (3,) @ (4,)");
  EXPECT_EQ(error_text([] {
              matmul(ones({2, 3, 4}), ones({5, 4, 2}));
            }),
            "matmul: batch dimensions differ: (2, 3, 4) @ (5, 4, 2)");
  EXPECT_EQ(error_text([] {
              matmul(scalar(1.0f), ones({2, 2}));
            }),
            "matmul: expected at least 1 dimension, got () @ (2, 2)");
}

TEST(Indexing, Take) {
  const Tensor table = reshape(arange(8, DType::f32), {4, 2});
  const Tensor indices = tensor(std::vector<int32_t>{3, 0, 3, 1}, {2, 2});
  const Tensor rows = take(table, indices);
  EXPECT_EQ(rows.shape(), (Shape{2, 2, 2}));
  EXPECT_EQ(to_doubles(rows), (Doubles{6, 7, 0, 1, 6, 7, 2, 3}));
  EXPECT_EQ(take(table, scalar(int64_t{2})).shape(), (Shape{2}));
  EXPECT_EQ(take(table, tensor(std::vector<int64_t>{})).shape(), (Shape{0, 2}));
}

TEST(Indexing, GatherAndScatterAddAreEachOthersTransposes) {
  const Tensor x = reshape(arange(6, DType::f32), {2, 3});
  const Tensor index = tensor(std::vector<uint8_t>{2, 2, 0, 1}, {2, 2});
  EXPECT_EQ(to_doubles(gather(x, index, -1)), (Doubles{2, 2, 3, 4}));
  EXPECT_EQ(to_doubles(scatter_add(zeros({2, 3}), index, ones({2, 2}), 1)),
            (Doubles{0, 0, 2, 1, 1, 0}));
}

TEST(Indexing, DynamicSlices) {
  const Tensor x = arange(6, DType::f32);
  const Tensor start = scalar(int64_t{2});
  EXPECT_EQ(to_doubles(dynamic_slice(x, start, 0, 3)), (Doubles{2, 3, 4}));
  EXPECT_EQ(to_doubles(dynamic_update_slice(x, vec({9, 8}), start, 0)),
            (Doubles{0, 1, 9, 8, 4, 5}));
}

// A generated kernel names itself behind the text, since it may hold many ops.
TEST(Indexing, OutOfRangeIsFoundWhenEvaluated) {
  const Tensor x = arange(3, DType::f32);
  auto index = [](int64_t i) { return tensor(std::vector<int64_t>{i}); };
  const Tensor bad = gather(x, index(3), 0);
  EXPECT_EQ(error_text([&] { bad.eval(); }), "index 3 is out of range [0, 3) in kernel gather");
  EXPECT_EQ(error_text([&] { gather(x, index(-1), 0).eval(); }),
            "index -1 is out of range [0, 3) in kernel gather");
  EXPECT_EQ(error_text([&] { scatter_add(x, index(5), vec({1}), 0).eval(); }),
            "scatter_add: index 5 is out of range [0, 3) in kernel scatter_add");
  EXPECT_EQ(error_text([&] { dynamic_slice(x, scalar(int64_t{2}), 0, 2).eval(); }),
            "index 2 is out of range [0, 2) in kernel dynamic_slice");
  const Tensor low = scalar(int64_t{-1});
  EXPECT_EQ(error_text([&] {
              dynamic_update_slice(x, vec({1, 2}), low, 0).eval();
            }),
            "update_slice: start -1 is out of range [0, 1] in kernel dynamic_update_slice");
}

}  // namespace
}  // namespace tessera
