// einsum against nested loops, over equations that a generator makes; dot and outer.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "support/expect_error.h"
#include "support/random_source.h"
#include "tensor/differences.h"
#include "tessera/tensor/compiled.h"

namespace tessera {
namespace {

using Doubles = std::vector<double>;
using Tensors = std::vector<Tensor>;

// An equation and, apart from its text, what it means: a name for each axis, those of "..." too.
struct Sample {
  std::string text;
  std::vector<std::string> axes;  // of each operand
  std::string result;
  Tensors operands;
};

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed), seed_(seed) {
    for (const char letter : kLetters) extents_[letter] = random_.between(1, 4);
    for (const char dot : kDots) extents_[dot] = random_.between(1, 3);
    if (random_.chance(0.05)) extents_['b'] = 0;
  }

  Sample make() {
    const int64_t count = random_.between(1, 5);
    const bool dots = random_.chance(0.3);
    for (int64_t i = 0; i < count; ++i) add_operand(dots && random_.chance(0.7));
    if (random_.chance(0.3)) {
      imply_result();
    } else {
      choose_result();
    }
    return sample_;
  }

 private:
  void space() {
    if (random_.chance(0.1)) sample_.text += ' ';
  }

  void add_operand(bool dots) {
    if (!sample_.axes.empty()) sample_.text += ",";
    std::string axes;
    Shape shape;
    const int64_t letters = random_.between(0, 4), place = random_.between(0, letters);
    for (int64_t i = 0; i <= letters; ++i) {
      space();
      if (dots && i == place) {
        const size_t covered = size_t(random_.between(0, 2));
        most_dots_ = std::max(most_dots_, covered);
        sample_.text += "...";
        for (const char dot : kDots.substr(kDots.size() - covered)) {
          axes += dot;
          shape.push_back(random_.chance(0.2) ? 1 : extents_[dot]);
        }
      }
      if (i == letters) break;
      const char letter = kLetters[size_t(random_.below(int64_t(kLetters.size())))];
      const size_t before = axes.find(letter);
      sample_.text += letter;
      axes += letter;
      const int64_t extent = random_.chance(0.1) ? 1 : extents_[letter];
      shape.push_back(before == std::string::npos ? extent : shape[int(before)]);
    }
    sample_.axes.push_back(axes);
    sample_.operands.push_back(
        random_tensor(shape, int64_t(seed_ * 10 + sample_.axes.size()), DType::f64));
  }

  std::string all_dots() const { return kDots.substr(kDots.size() - most_dots_); }

  void imply_result() {
    sample_.result = all_dots();
    std::string letters;
    for (const std::string& axes : sample_.axes) letters += axes;
    for (const char letter : kLetters) {
      if (std::count(letters.begin(), letters.end(), letter) == 1) sample_.result += letter;
    }
  }

  void choose_result() {
    sample_.text += "->";
    std::string letters;
    for (const char letter : kLetters) {
      const bool known = std::any_of(
          sample_.axes.begin(), sample_.axes.end(),
          [&](const std::string& axes) { return axes.find(letter) != std::string::npos; });
      if (known && random_.chance(0.5)) {
        letters.insert(size_t(random_.between(0, int64_t(letters.size()))), 1, letter);
      }
    }
    const bool dots = random_.chance(0.8);
    const size_t place = size_t(random_.between(0, int64_t(letters.size())));
    sample_.text += letters.substr(0, place) + (dots ? "..." : "") + letters.substr(place);
    sample_.result = letters.substr(0, place) + (dots ? all_dots() : "") + letters.substr(place);
  }

  const std::string kLetters = "Xabcde", kDots = "01";
  RandomSource random_;
  uint64_t seed_;
  std::map<char, int64_t> extents_;
  size_t most_dots_ = 0;
  Sample sample_;
};

// Runs through every combination of positions of all axes.
class Loops {
 public:
  explicit Loops(const Sample& sample) : sample_(sample) {
    for (size_t k = 0; k < sample.axes.size(); ++k) {
      data_.push_back(to_doubles(sample.operands[k]));
      for (size_t i = 0; i < sample.axes[k].size(); ++i) {
        const char axis = sample.axes[k][i];
        const int64_t extent = sample.operands[k].shape()[int(i)];
        const auto [known, added] = extents_.emplace(axis, extent);
        if (!added && known->second == 1) known->second = extent;
        if (added) names_ += axis;
      }
    }
    for (const char axis : sample.result) shape.push_back(extents_.at(axis));
    values.resize(size_t(numel(shape)));
    run(0);
  }

  Shape shape;
  Doubles values;

 private:
  void run(size_t depth) {
    if (depth < names_.size()) {
      int64_t& position = positions_[names_[depth]];
      for (position = 0; position < extents_.at(names_[depth]); ++position) run(depth + 1);
      return;
    }
    double product = 1;
    for (size_t k = 0; k < data_.size(); ++k) {
      product *= data_[k][offset(sample_.axes[k], sample_.operands[k].shape())];
    }
    values[offset(sample_.result, shape)] += product;
  }

  size_t offset(const std::string& axes, const Shape& extents) const {
    int64_t at = 0;
    for (size_t i = 0; i < axes.size(); ++i) {
      const int64_t extent = extents[int(i)];
      at = at * extent + (extent == 1 ? 0 : positions_.at(axes[i]));
    }
    return size_t(at);
  }

  const Sample& sample_;
  std::vector<Doubles> data_;
  std::string names_;
  std::map<char, int64_t> extents_, positions_;
};

TEST(Einsum, RandomEquations) {
  const SeedRange seeds = seed_range(400);
  for (uint64_t seed = seeds.first; seed < seeds.end; ++seed) {
    const Sample sample = Generator(seed).make();
    std::string trace = cat("seed ", seed, ": ", sample.text);
    for (const Tensor& x : sample.operands) trace += " " + to_string(x.shape());
    SCOPED_TRACE(trace);
    const Loops expected(sample);
    const Tensor actual = einsum(sample.text, sample.operands);
    ASSERT_EQ(actual.shape(), expected.shape);
    expect_near(actual, expected.values);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(Einsum, WhatPeopleWrite) {
  const Tensor m = tensor<float>({1, 2, 3, 4}, {2, 2}), v = tensor<float>({10, 100});
  const auto floats = [](const Tensor& x) { return x.to_vector<float>(); };
  using Floats = std::vector<float>;
  EXPECT_EQ(floats(einsum("ij->ji", {m})), (Floats{1, 3, 2, 4}));
  EXPECT_EQ(floats(einsum("ji", {m})), (Floats{1, 3, 2, 4}));
  EXPECT_EQ(floats(einsum("ij->", {m})), (Floats{10}));
  EXPECT_EQ(floats(einsum("ii", {m})), (Floats{5}));
  EXPECT_EQ(floats(einsum("ii->i", {m})), (Floats{1, 4}));
  EXPECT_EQ(floats(einsum("ij,j", {m, v})), (Floats{210, 430}));
  EXPECT_EQ(floats(einsum("i,i->i", {v, v})), (Floats{100, 10000}));
  EXPECT_EQ(floats(einsum(" i , j -> j i ", {v, v})), (Floats{100, 1000, 1000, 10000}));
  EXPECT_EQ(floats(einsum("ij,jk,kl->il", {m, m, m})), floats(matmul(matmul(m, m), m)));
  EXPECT_EQ(floats(einsum("...,->...", {m, scalar(2.0f)})), (Floats{2, 4, 6, 8}));
  EXPECT_EQ(einsum("bA,cb", {m, m}).shape(), (Shape{2, 2}));
  EXPECT_EQ(floats(einsum("bA,cb", {m, m})), floats(transpose(matmul(m, m))));
  // The axes of "..." are summed where the result does not name them.
  EXPECT_EQ(floats(einsum("...i->i", {m})), (Floats{4, 6}));
}

// Seven axes of batches and one that is summed: with rows and columns a product would have nine.
TEST(Einsum, ManyAxes) {
  const Shape shape = {2, 2, 2, 2, 2, 2, 2, 3};
  const Sample sample = {
      "abcdefgh,abcdefgh->gfedcba",
      {"abcdefgh", "abcdefgh"},
      "gfedcba",
      {random_tensor(shape, 1, DType::f64), random_tensor(shape, 2, DType::f64)}};
  expect_near(einsum(sample.text, sample.operands), Loops(sample).values);
}

TEST(Einsum, Dtypes) {
  const Tensor i8 = tensor<int8_t>({1, 2}), i32 = tensor<int32_t>({3, 4}),
               bf16 = cast(i8, DType::bf16), mask = tensor<bool>({true, false});
  EXPECT_EQ(einsum("i,i", {i8, i32}).dtype(), DType::i32);
  EXPECT_EQ(einsum("i,i", {i8, i32}).item(), 11);
  EXPECT_EQ(einsum("i,i", {i32, bf16}).dtype(), DType::bf16);
  EXPECT_EQ(einsum("i,i", {i32, bf16}).item(), 11);
  EXPECT_EQ(einsum("i,j->ij", {bf16, tensor<float>({1})}).dtype(), DType::f32);
  EXPECT_EQ(einsum("i->", {i8}).dtype(), DType::i8);
  EXPECT_EQ(einsum("i,i", {i32, mask}).item(), 3);
  EXPECT_EQ(einsum("ij->ji", {reshape(mask, {2, 1})}).to_vector<bool>(),
            (std::vector<bool>{true, false}));
}

TEST(Einsum, Gradients) {
  const auto check = [](const char* text, const std::vector<Shape>& shapes) {
    SCOPED_TRACE(text);
    Tensors inputs;
    for (const Shape& shape : shapes) {
      inputs.push_back(random_tensor(shape, int64_t(70 + inputs.size()), DType::f64));
    }
    expect_gradients([&](const Tensors& in) { return einsum(text, in); }, inputs);
  };
  check("bij,bjk->bki", {{2, 3, 2}, {2, 2, 3}});
  check("iij->j", {{2, 2, 3}});
  check("ij,ij->i", {{2, 3}, {1, 3}});
  check("a,ab,bc,c->", {{2}, {2, 3}, {3, 2}, {2}});
  check("...i,ij->...j", {{2, 2}, {2, 3}});
  check("ik,jk->ij", {{2, 1}, {2, 3}});
}

// A product of attention's shape is one matrix product over views of its operands: nothing is
// copied.
TEST(Einsum, AProductCopiesNothing) {
  auto scores = compile([](const Tensor& q, const Tensor& k) {
    return einsum("bthd,bshd->bhts", {q, k});
  });
  const Tensor q = random_tensor({2, 3, 4, 5}, 1), k = random_tensor({2, 6, 4, 5}, 2);
  scores(q, k);
  EXPECT_EQ(scores.program().report.kernels, 1);
  EXPECT_EQ(scores.program().report.copies, 0);
  EXPECT_EQ(scores.program().report.temporary_bytes, 0);
}

// Left to right, the first product alone would have 1000 × 1000 × 1000 elements.
TEST(Einsum, TheOrderOfLeastWork) {
  const Tensor a = random_tensor({1000, 2}, 1), b = random_tensor({1000, 2}, 2),
               c = random_tensor({1000, 2}, 3);
  auto chain = compile([](const Tensor& x, const Tensor& y, const Tensor& z) {
    return einsum("ai,bj,ci,cj->ab", {x, y, z, z});
  });
  EXPECT_EQ(chain(a, b, c).shape(), (Shape{1000, 1000}));
  EXPECT_LT(chain.program().report.temporary_bytes, 100000);
  auto many = compile([](const Tensor& x, const Tensor& y, const Tensor& z) {
    return einsum("ai,bj,ck,ai,bj,ck->", {x, y, z, x, y, z});
  });
  EXPECT_EQ(many(a, b, c).rank(), 0);
  EXPECT_LT(many.program().report.temporary_bytes, 100000);
}

TEST(EinsumError, Texts) {
  const Tensor m = ones({2, 3}), n = ones({4, 5}), v = ones({3});
  const auto text = [](const char* equation, const Tensors& operands) {
    return error_text([&] { einsum(equation, operands); });
  };
  EXPECT_EQ(text("ij,jk->ik", {m}),
            "einsum: \"ij,jk->ik\": expected an operand for each of 2 terms, got 1");
  EXPECT_EQ(text("", {}), "einsum: \"\": expected an operand for each of 1 terms, got 0");
  EXPECT_EQ(text("i1->i", {m}),
            "einsum: \"i1->i\": expected letters, \"...\", \",\" and one \"->\", got '1' at "
            "position 1");
  EXPECT_EQ(text("ij-ij", {m}),
            "einsum: \"ij-ij\": expected letters, \"...\", \",\" and one \"->\", got '-' at "
            "position 2");
  EXPECT_EQ(text("ij->i->j", {m}),
            "einsum: \"ij->i->j\": expected letters, \"...\", \",\" and one \"->\", got '-' at "
            "position 5");
  EXPECT_EQ(text("ij->i,j", {m}),
            "einsum: \"ij->i,j\": expected letters, \"...\", \",\" and one \"->\", got ',' at "
            "position 5");
  EXPECT_EQ(text("i..", {v}),
            "einsum: \"i..\": expected letters, \"...\", \",\" and one \"->\", got '.' at position "
            "1");
  EXPECT_EQ(text("i\t", {v}),
            "einsum: \"i\t\": expected letters, \"...\", \",\" and one \"->\", got byte 9 at "
            "position 1");
  EXPECT_EQ(text("...i...", {m}),
            "einsum: \"...i...\": expected \"...\" at most once in a term, got it twice");
  EXPECT_EQ(text("ij->ik", {m}),
            "einsum: \"ij->ik\": expected the letters of the operands in the result, got 'k'");
  EXPECT_EQ(text("ij->ii", {m}),
            "einsum: \"ij->ii\": expected each letter at most once in the result, got 'i' again");
  EXPECT_EQ(text("ijk->i", {m}), "einsum: \"ijk->i\": expected 3 axes for \"ijk\", got (2, 3)");
  EXPECT_EQ(text("i->i", {m}), "einsum: \"i->i\": expected 1 axes for \"i\", got (2, 3)");
  EXPECT_EQ(text("i...jk", {m}),
            "einsum: \"i...jk\": expected at least 3 axes for \"i...jk\", got (2, 3)");
  EXPECT_EQ(
      text("ij,jk->ik", {m, n}),
      "einsum: \"ij,jk->ik\": expected one extent for 'j', got 3 in operand 0 (2, 3) and 4 in "
      "operand 1 (4, 5)");
  EXPECT_EQ(text("...,...", {m, n}),
            "einsum: \"...,...\": expected one extent for an axis of \"...\", got 2 in operand 0 "
            "(2, 3) and 4 in operand 1 (4, 5)");
  EXPECT_EQ(
      text("ii", {m}),
      "einsum: \"ii\": expected equal extents for 'i', of which \"ii\" takes the diagonal, got "
      "(2, 3)");
  const Tensor wide = ones({2, 2, 2, 2, 2});
  EXPECT_EQ(text("abcde,fghij->abcdefghij", {wide, wide}),
            "einsum: \"abcde,fghij->abcdefghij\": expected a result of at most 8 axes, got 10");
  // A letter for each pair of seven operands: the product of any two has 10 axes.
  EXPECT_EQ(
      text("abcdef,aghijk,bglmno,chlpqr,dimpst,ejnqsu,fkortu->",
           Tensors(7, ones({2, 2, 2, 2, 2, 2}))),
      "einsum: \"abcdef,aghijk,bglmno,chlpqr,dimpst,ejnqsu,fkortu->\": found no order in which "
      "every product has at most 8 axes");
  EXPECT_EQ(text("i->", {tensor<bool>({true})}),
            "einsum: \"i->\": expected numbers to multiply or sum, got bool");
}

TEST(EinsumError, NamesTheLine) {
  const std::string text = full_error_text([] { einsum("i", {}); });
  EXPECT_TRUE(text.ends_with(cat(" (einsum_test.cpp:", __LINE__ - 1, ")"))) << text;
}

TEST(Products, DotAndOuter) {
  const Tensor a = tensor<double>({1, 2, 3}), b = tensor<float>({4, 5, 6});
  EXPECT_EQ(dot(a, b).item(), 32);
  EXPECT_EQ(dot(a, b).dtype(), DType::f64);
  EXPECT_EQ(dot(a, b).rank(), 0);
  EXPECT_EQ(dot(ones({0}), ones({0})).item(), 0);
  EXPECT_EQ(outer(a, tensor<double>({2, 10})).shape(), (Shape{3, 2}));
  EXPECT_EQ(to_doubles(outer(a, tensor<double>({2, 10}))), (Doubles{2, 10, 4, 20, 6, 30}));
  EXPECT_EQ(error_text([&] { dot(a, ones({2})); }),
            "dot: expected two vectors of one length, got (3,) and (2,)");
  EXPECT_EQ(error_text([&] {
              dot(ones({2, 2}), ones({2, 2}));
            }),
            "dot: expected two vectors of one length, got (2, 2) and (2, 2)");
  EXPECT_EQ(error_text([&] {
              outer(a, ones({2, 2}));
            }),
            "outer: expected two vectors, got (3,) and (2, 2)");
}

}  // namespace
}  // namespace tessera
