#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "tessera/base/log.h"
#include "tessera/runtime/counters.h"
#include "tessera/tensor/eval.h"
#include "tessera/tessera.h"

namespace tessera {
namespace {

TEST(Compiled, TracesOncePerShapeDtypeStaticAndMode) {
  int traces = 0;
  const Compiled f([&](std::span<const Tensor> inputs, std::span<const int64_t> statics) {
    ++traces;
    const Tensor x = inputs[0] * (is_training() ? 2 : 3);
    return std::vector<Tensor>{statics.empty() ? x : x + statics[0]};
  });
  const Tensor a = tensor<float>({1, 2}), b = tensor<float>({1, 2, 3}), i = tensor<int32_t>({5, 6});
  const int64_t one = 1, two = 2;
  auto call = [&](const Tensor& x, std::span<const int64_t> statics = {}) {
    return f(std::span(&x, 1), statics)[0];
  };
  EXPECT_EQ(call(a).to_vector<float>(), (std::vector<float>{2, 4}));
  EXPECT_EQ(call(a * 2).to_vector<float>(), (std::vector<float>{4, 8}));
  EXPECT_EQ(traces, 1);
  EXPECT_EQ(call(b).to_vector<float>(), (std::vector<float>{2, 4, 6}));
  EXPECT_EQ(call(i).to_vector<int32_t>(), (std::vector<int32_t>{10, 12}));
  EXPECT_EQ(traces, 3);
  EXPECT_EQ(call(a, std::span(&one, 1)).to_vector<float>(), (std::vector<float>{3, 5}));
  EXPECT_EQ(call(a, std::span(&two, 1)).to_vector<float>(), (std::vector<float>{4, 6}));
  EXPECT_EQ(traces, 5);
  {
    const ModeGuard evaluation(false);
    EXPECT_EQ(call(a).to_vector<float>(), (std::vector<float>{3, 6}));
  }
  EXPECT_EQ(traces, 6);
  EXPECT_EQ(call(b).to_vector<float>(), (std::vector<float>{2, 4, 6}));
  EXPECT_EQ(traces, 6);
  EXPECT_EQ(f.stats().compilations, 6);
  EXPECT_EQ(f.stats().replays, 2);
}

TEST(Compiled, NewBatchSizesPlanAnewButCompileNoKernels) {
  auto f = compile([](const Tensor& x) { return sum(exp(x * 2 + 1), {1}); });
  f(zeros({8, 300}));
  const int64_t compiles = counters().snapshot().compiles;
  for (const int64_t n : {9, 17, 64, 1000}) {
    EXPECT_NEAR(f(zeros({n, 300})).to_vector<float>().back(), 300 * 2.71828, 0.01);
  }
  EXPECT_EQ(f.stats().compilations, 5);
  EXPECT_EQ(counters().snapshot().compiles, compiles);
}

TEST(Compiled, TheEighthCompilationWarnsWithWhatDiffered) {
  std::vector<std::string> warnings;
  const LogSink before = set_log_sink([&](LogLevel level, std::string_view text) {
    if (level == LogLevel::warning) warnings.emplace_back(text);
  });
  auto f = compile([](const Tensor& x) { return x + 1; });
  for (int64_t n = 1; n <= 9; ++n) f(ones({n}));
  set_log_sink(before);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_EQ(warnings[0],
            "a function has been compiled 8 times; this time for input 0: f32(7,) before, f32(8,) "
            "now. What varies should be an input of fixed shape or a Var.");
}

TEST(Compiled, CacheIsBounded) {
  int traces = 0;
  auto f = compile([&](const Tensor& x) {
    ++traces;
    return x + 1;
  });
  for (int64_t n = 1; n <= 33; ++n) f(ones({n}));
  EXPECT_EQ(traces, 33);
  f(ones({2}));  // among the 32 most recent
  EXPECT_EQ(traces, 33);
  f(ones({1}));  // was dropped
  EXPECT_EQ(traces, 34);
}

TEST(Compiled, CallsInsideATraceAreInlined) {
  auto inner = compile([](const Tensor& x) { return x * x; });
  auto outer = compile([&](const Tensor& x) { return inner(x) + 1; });
  EXPECT_EQ(outer(scalar(3.0f)).item(), 10);
  EXPECT_EQ(inner.stats().compilations, 0);
}

TEST(Compiled, CapturesTensorsAsTheyAre) {
  Tensor offset = tensor<float>({10, 20});
  auto f = compile([&](const Tensor& x) { return x + offset; });
  EXPECT_EQ(f(ones({2})).to_vector<float>(), (std::vector<float>{11, 21}));
  offset = tensor<float>({0, 0});
  EXPECT_EQ(f(ones({2})).to_vector<float>(), (std::vector<float>{11, 21}));
}

TEST(Compiled, TakesLazyInputsAndReturnsInputsAndConstants) {
  auto f = compile([](const Tensor& x) {
    return std::vector<Tensor>{x, x, transpose(x), ones({2}), x + 0.0};
  });
  const Tensor x = reshape(arange(6, DType::f32), {2, 3}) + 1;
  const std::vector<Tensor> y = f(x);
  EXPECT_EQ(y[0].to_vector<float>(), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(y[1].to_vector<float>(), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(y[2].to_vector<float>(), (std::vector<float>{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(y[2].shape(), (Shape{3, 2}));
  EXPECT_EQ(y[3].to_vector<float>(), (std::vector<float>{1, 1}));
  EXPECT_EQ(y[4].to_vector<float>(), (std::vector<float>{1, 2, 3, 4, 5, 6}));
}

TEST(Compiled, GradientsOfATraceDoNotMixWithThoseOutside) {
  const Var w(scalar(2.0f), "w");
  backward(w.value() * 5);
  auto f = compile([&](const Tensor& x) {
    backward(w.value() * x);
    return w.grad();
  });
  EXPECT_EQ(f(scalar(3.0f)).item(), 3);
  EXPECT_EQ(w.grad().item(), 5);
}

TEST(Compiled, ProfileAddsUpOverShapesAndCalls) {
  const Compiled f([](std::span<const Tensor> in, std::span<const int64_t> layers) {
    Tensor y = in[0];
    for (int64_t i = 0; i < layers[0]; ++i) y = exp(matmul(y, in[0]));
    return std::vector<Tensor>{y};
  });
  Profile profile;
  f.set_profile(&profile);
  const Tensor x = zeros({8, 8});
  for (const int64_t layers : {1, 3, 3}) f(std::span(&x, 1), std::span(&layers, 1));
  f.set_profile(nullptr);
  std::vector<Profile::Row> rows = profile.rows();
  std::erase_if(rows, [](const auto& row) { return row.kind != Profile::Kind::kernel; });
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].label, "matmul");
  EXPECT_EQ(rows[1].label, "exp");
  for (const Profile::Row& row : rows) {
    EXPECT_EQ(row.calls, 7);
    EXPECT_GT(row.nanoseconds, 0);
  }
}

TEST(CompiledError, WhatATraceCannotDo) {
  const Var w(scalar(1.0f), "w");
  EXPECT_EQ(
      error_text([&] { compile([&](const Tensor& x) { return x * x.item(); })(scalar(1.0f)); }),
      "a value cannot be read while its function is being compiled: return it instead");
  EXPECT_EQ(error_text([&] {
              compile([&](const Tensor& x) {
                const Var inner(x, "inner");
                return x;
              })(scalar(1.0f));
            }),
            "Var: 'inner' cannot be made while a function is being compiled: make it before");
  EXPECT_EQ(error_text([&] {
              compile([&](const Tensor& x) {
                w.set(2);
                return x;
              })(scalar(1.0f));
            }),
            "set: 'w' cannot be set while a function is being compiled: assign to it");
  Tensor escaped;
  auto leak = compile([&](const Tensor& x) {
    escaped = x + 1;
    return x;
  });
  leak(scalar(1.0f));
  EXPECT_EQ(error_text([&] { escaped.item(); }),
            "a tensor has no value: it belongs to a function that was being compiled");
  EXPECT_EQ(error_text([] { compile([](const Tensor& x) { return x; }).program(); }),
            "compile: the function has not been called yet");
  // A failed trace leaves nothing pending.
  EXPECT_EQ(w.value().item(), 1);
}

TEST(CompiledError, WhatCanFailRunsBeforeWhatIsWritten) {
  const Var w(tensor<float>({1, 2}), "w");
  const Tensor before = w;
  const Tensor table = tensor<float>({5, 6});
  auto step = compile([&](const Tensor& index) {
    w.assign(w.value() + 1);  // does not need the index
    return gather(table, index, 0);
  });
  EXPECT_NE(error_text([&] { step(tensor<int64_t>({9})); }), "");
  EXPECT_EQ(w.value().to_vector<float>(), (std::vector<float>{1, 2}));
  // The step failed on its way; an old handle does not vouch for what it had written by then.
  EXPECT_NE(error_text([&] { before.to_vector<float>(); }), "");
  EXPECT_EQ(step(tensor<int64_t>({1})).item(), 6);
  EXPECT_EQ(w.value().to_vector<float>(), (std::vector<float>{2, 3}));
}

TEST(CompiledError, AFailedStepLeavesVarsAlone) {
  const Var table(tensor<float>({1, 2, 3}, {3, 1}), "table");
  auto step = compile([&](const Tensor& index) {
    const Tensor loss = sum(take(table, index));
    table.assign(table.value() - grad(loss, table.value()));
    return loss;
  });
  const std::string text = error_text([&] { step(tensor<int64_t>({0, 7})); });
  EXPECT_NE(text.find("index 7 is out of range [0, 3)"), std::string::npos) << text;
  EXPECT_NE(text.find(" in kernel "), std::string::npos) << text;
  EXPECT_EQ(table.value().to_vector<float>(), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(step(tensor<int64_t>({0, 1})).item(), 3);
  // And in the plain style a step that failed does not come back with the next read.
  table.assign(table.value() + take(table, tensor<int64_t>({5, 5, 5})));
  EXPECT_NE(error_text([] { flush(); }), "");
  EXPECT_EQ(table.value().to_vector<float>(), (std::vector<float>{0, 1, 3}));
}

}  // namespace
}  // namespace tessera
