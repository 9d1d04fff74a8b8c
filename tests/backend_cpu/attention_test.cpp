// attention and attention_backward as kernels: against plain loops on every instruction set, by any
// number of threads, with outputs left out, and what they refuse.
#include <gtest/gtest.h>

#include <cmath>

#include "backend_cpu/named_kernels.h"
#include "backend_cpu/threads.h"
#include "tessera/backend/cpu/isa.h"
#include "tessera/base/attention_options.h"

namespace tessera::test {
namespace {

struct Sizes {
  int64_t b, h, g, t, s, d, e;
};

constexpr double kScale = 0.25;

Operand random(DType dtype, const Shape& shape, int seed) {
  return dense(random_array(dtype, numel(shape), -2, 2, seed), shape);
}
Operand blank(DType dtype, const Shape& shape) { return dense(Array(dtype, numel(shape)), shape); }

std::vector<Operand> forward_operands(const Sizes& z, DType dtype) {
  return {random(dtype, {z.b, z.h, z.t, z.d}, 1), random(dtype, {z.b, z.g, z.s, z.d}, 2),
          random(dtype, {z.b, z.g, z.s, z.e}, 3), blank(dtype, {z.b, z.h, z.t, z.e}),
          blank(compute_type(dtype), {z.b, z.h, z.t})};
}

// From what the forward kernel gave.
std::vector<Operand> backward_operands(const Sizes& z, std::vector<Operand> forward) {
  const DType dtype = forward[0].array.dtype();
  std::vector<Operand> o = {random(dtype, {z.b, z.h, z.t, z.e}, 4)};
  o.insert(o.end(), forward.begin(), forward.end());
  for (int i = 1; i < 4; ++i) o.push_back(blank(dtype, o[size_t(i)].view.shape));
  return o;
}

struct Loop {
  std::vector<double> y, lse, dq, dk, dv;
};

// Causal attention of row-major operands, and the gradients where there is a g.
Loop plain_loop(const Sizes& z, const std::vector<Operand>& o, const Operand* g) {
  const auto at = [](const Operand& x, int64_t i) { return x.array.get(i); };
  Loop r;
  r.y.resize(size_t(z.b * z.h * z.t * z.e));
  r.dq.resize(size_t(z.b * z.h * z.t * z.d));
  r.dk.resize(size_t(z.b * z.g * z.s * z.d));
  r.dv.resize(size_t(z.b * z.g * z.s * z.e));
  for (int64_t row = 0; row < z.b * z.h * z.t; ++row) {
    const int64_t head = row / z.t, group = head / (z.h / z.g), t = row % z.t;
    const int64_t seen = std::min(z.s, t + z.s - z.t + 1);
    std::vector<double> p;
    double sum = 0, along = 0;
    for (int64_t s = 0; s < seen; ++s) {
      double score = 0;
      for (int64_t d = 0; d < z.d; ++d) {
        score += at(o[0], row * z.d + d) * at(o[1], (group * z.s + s) * z.d + d);
      }
      sum += p.emplace_back(std::exp(score * kScale));
    }
    r.lse.push_back(seen > 0 ? std::log(sum) : 0);
    for (int64_t e = 0; e < z.e; ++e) {
      double& y = r.y[size_t(row * z.e + e)];
      for (int64_t s = 0; s < seen; ++s) {
        y += p[size_t(s)] / sum * at(o[2], (group * z.s + s) * z.e + e);
      }
      if (g != nullptr) along += at(*g, row * z.e + e) * y;
    }
    for (int64_t s = 0; g != nullptr && s < seen; ++s) {
      const int64_t key = group * z.s + s;
      double dp = 0;
      for (int64_t e = 0; e < z.e; ++e) {
        dp += at(*g, row * z.e + e) * at(o[2], key * z.e + e);
        r.dv[size_t(key * z.e + e)] += p[size_t(s)] / sum * at(*g, row * z.e + e);
      }
      const double ds = p[size_t(s)] / sum * (dp - along) * kScale;
      for (int64_t d = 0; d < z.d; ++d) {
        r.dq[size_t(row * z.d + d)] += ds * at(o[1], key * z.d + d);
        r.dk[size_t(key * z.d + d)] += ds * at(o[0], row * z.d + d);
      }
    }
  }
  return r;
}

void expect_near(const Operand& got, const std::vector<double>& expected, const char* what) {
  double largest = 0;
  for (const double value : expected) largest = std::max(largest, std::fabs(value));
  const DType dtype = got.array.dtype();
  const double share = dtype == DType::f64 ? 1e-13 : dtype == DType::f32 ? 2e-6 : 1.2e-2;
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_NEAR(got.array.get(int64_t(i)), expected[i], share * largest) << what << " " << i;
  }
}

const KernelAttrs kCausal = {kAttentionCausal, kScale};

TEST(AttentionKernel, EveryInstructionSetAgreesWithPlainLoops) {
  test_backend().target();  // describes the instruction set that it is first asked under
  const cpu::Isa before = cpu::isa();
  for (const cpu::Isa isa : cpu::available_isas()) {
    cpu::set_isa(isa);
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16}) {
      for (const Sizes& z :
           {Sizes{1, 1, 1, 1, 1, 1, 1}, Sizes{3, 2, 2, 3, 70, 5, 16}, Sizes{1, 4, 2, 19, 70, 5, 13},
            Sizes{2, 2, 2, 101, 99, 64, 31}, Sizes{1, 2, 1, 7, 230, 33, 3},
            // The edge of what is seen crosses panels at every vector, and blocks of either kind.
            Sizes{1, 1, 1, 205, 205, 8, 17}, Sizes{1, 3, 1, 109, 300, 16, 8},
            Sizes{1, 2, 2, 230, 150, 7, 16}}) {
        SCOPED_TRACE(cat(name(isa), " ", dtype, " T ", z.t, " S ", z.s));
        std::vector<Operand> o = forward_operands(z, dtype);
        call("attention", o, 2, kCausal);
        std::vector<Operand> p = backward_operands(z, o);
        call("attention_backward", p, 3, kCausal);
        const Loop expected = plain_loop(z, o, &p[0]);
        expect_near(o[3], expected.y, "y");
        expect_near(o[4], expected.lse, "lse");
        expect_near(p[6], expected.dq, "dq");
        expect_near(p[7], expected.dk, "dk");
        expect_near(p[8], expected.dv, "dv");
      }
    }
  }
  cpu::set_isa(before);
}

TEST(AttentionKernel, EqualBitsForAnyNumberOfThreads) {
  // One head, whose keys are dealt out; heads that share keys; more heads than tasks.
  for (const Sizes& z : {Sizes{1, 1, 1, 300, 700, 16, 16}, Sizes{1, 6, 2, 200, 300, 16, 8},
                         Sizes{5, 8, 8, 40, 40, 16, 8}}) {
    std::vector<Operand> o = forward_operands(z, DType::f32), p = o;
    call("attention", o, 2, kCausal);
    run_alone([&] { call("attention", p, 2, kCausal); });
    for (size_t i = 3; i < 5; ++i) EXPECT_EQ(o[i].array.bytes(), p[i].array.bytes());
    std::vector<Operand> a = backward_operands(z, o), b = a;
    call("attention_backward", a, 3, kCausal);
    run_alone([&] { call("attention_backward", b, 3, kCausal); });
    for (size_t i = 6; i < 9; ++i) EXPECT_EQ(a[i].array.bytes(), b[i].array.bytes());
  }
}

void expect_outputs_optional(const std::string& kernel, const std::vector<Operand>& given,
                             int outputs) {
  std::vector<Operand> all = given;
  call(kernel, all, outputs, kCausal);
  for (size_t left_out = given.size() - size_t(outputs); left_out < given.size(); ++left_out) {
    std::vector<Operand> o = given;
    const auto executable = test_backend().compile(make_call(kernel, o, outputs, kCausal));
    std::vector<BufferRef> refs;
    for (Operand& operand : o) refs.push_back({operand.array.data(), 0});
    refs[left_out] = {};
    test_backend().launch(*executable, refs, 0, Stream{});
    for (size_t i = given.size() - size_t(outputs); i < given.size(); ++i) {
      const Operand& expected = i == left_out ? given[i] : all[i];
      EXPECT_EQ(o[i].array.bytes(), expected.array.bytes()) << kernel << " " << i;
    }
  }
}

TEST(AttentionKernel, OutputsMayBeLeftOut) {
  for (const Sizes& z : {Sizes{1, 1, 1, 40, 300, 8, 8}, Sizes{2, 2, 1, 2, 50, 8, 16},
                         Sizes{6, 4, 2, 40, 50, 8, 8}}) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      std::vector<Operand> o = forward_operands(z, dtype);
      expect_outputs_optional("attention", o, 2);
      call("attention", o, 2, kCausal);
      expect_outputs_optional("attention_backward", backward_operands(z, o), 3);
    }
  }
}

// Results as (B, T, H, D), with a gap behind each.
void expect_any_strides(const char* kernel, const std::vector<Operand>& given, int outputs,
                        int ordered) {
  std::vector<Operand> packed = given, apart = given;
  const size_t first = given.size() - size_t(outputs), last = first + size_t(ordered);
  for (size_t i = first; i < last; ++i) {
    const Shape s = given[i].view.shape;
    const int64_t row = s[3] + 3;
    apart[i] = {Array(given[i].array.dtype(), numel(s) / s[3] * row),
                {s, {s[2] * s[1] * row, row, s[1] * row, 1}, 0}};
  }
  call(kernel, packed, outputs, kCausal);
  call(kernel, apart, outputs, kCausal);
  for (size_t i = first; i < last; ++i) {
    for (int64_t e = 0; e < numel(packed[i].view.shape); ++e) {
      ASSERT_EQ(at(packed[i], e), at(apart[i], e)) << kernel << " " << i << " " << e;
    }
  }
}

TEST(AttentionKernel, ResultsLieAsTheyAreAsked) {
  for (const Sizes& z : {Sizes{1, 1, 1, 40, 300, 8, 8}, Sizes{2, 2, 1, 2, 50, 8, 16},
                         Sizes{6, 4, 2, 40, 50, 8, 8}, Sizes{2, 3, 3, 70, 70, 16, 16}}) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      std::vector<Operand> o = forward_operands(z, dtype);
      expect_any_strides("attention", o, 2, 1);
      call("attention", o, 2, kCausal);
      expect_any_strides("attention_backward", backward_operands(z, o), 3, 3);
    }
  }
}

TEST(AttentionKernel, Refuses) {
  const Sizes z = {2, 4, 2, 3, 5, 2, 3};
  const std::vector<Operand> good = forward_operands(z, DType::f32);
  const auto text = [](std::vector<Operand> o, int64_t options = 0) {
    return error_of([&] { call("attention", o, 2, {options, 1}); });
  };
  const auto with = [&](size_t i, const Operand& operand) {
    std::vector<Operand> o = good;
    o[i] = operand;
    return text(o);
  };
  EXPECT_EQ(text(good), "");
  EXPECT_EQ(text(good, kAttentionDropout), "attention: expected 7 operands for options 8, got 5");
  EXPECT_EQ(with(0, blank(DType::f32, {2, 4, 3})),
            "attention: expected q, k and v of 4 dimensions that are not empty, got (2, 4, 3)");
  EXPECT_EQ(with(1, blank(DType::f32, {2, 2, 0, 2})),
            "attention: expected q, k and v of 4 dimensions that are not empty, got (2, 2, 0, 2)");
  EXPECT_EQ(with(0, blank(DType::i32, {2, 4, 3, 2})),
            "attention: expected q of a floating type, got i32");
  EXPECT_EQ(with(2, blank(DType::f64, {2, 2, 5, 3})),
            "attention: expected k and v of type f32, got f64");
  EXPECT_EQ(with(1, blank(DType::f32, {2, 3, 5, 2})),
            "attention: expected heads that divide into 3 groups, got 4");
  EXPECT_EQ(with(2, blank(DType::f32, {2, 2, 6, 3})),
            "attention: expected v of shape (2, 2, 5, 3), got (2, 2, 6, 3)");
  EXPECT_EQ(with(4, blank(DType::f32, {2, 4, 2})),
            "attention: expected lse of shape (2, 4, 3), got (2, 4, 2)");
  Operand turned = good[4];
  turned.view.strides = {12, 1, 4};
  EXPECT_EQ(with(4, turned), "attention: expected a packed lse, got strides (12, 1, 4)");
  std::vector<Operand> masked = good;
  masked.insert(masked.begin() + 3, blank(DType::f64, {2, 4, 3, 5}));
  EXPECT_EQ(text(masked, kAttentionMask), "attention: expected a mask of type f32, got f64");
  std::vector<Operand> backward = backward_operands(z, good);
  backward[5] = blank(DType::f32, {2, 4});
  EXPECT_EQ(error_of([&] {
              call("attention_backward", backward, 3, {0, 1});
            }),
            "attention_backward: expected lse of shape (2, 4, 3), got (2, 4)");
}

}  // namespace
}  // namespace tessera::test
