// Tensors on several devices. A second CPU stands in for an OpenCL device: it has memory, kernels
// and an arena of its own.
#include "tessera/tensor/device.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "tessera/backend/cpu/cpu_backend.h"
#include "tessera/conformance/reference.h"
#include "tessera/runtime/registry.h"
#include "tessera/tensor/autograd.h"
#include "tessera/tensor/compiled.h"
#include "tessera/tensor/ops.h"
#include "tessera/tessera.h"

namespace tessera {
namespace {

using Doubles = std::vector<double>;

// Before init(), whose own registration then comes second and is ignored.
[[maybe_unused]] const bool kStandsIn = [] {
  register_backend(DeviceKind::opencl, {[] { return 2; }, [](int) { return make_cpu_backend(); }});
  return true;
}();

class Devices : public ::testing::Test {
 protected:
  ~Devices() override { set_default_device("cpu"); }

  const Tensor x = tensor(std::vector<float>{1, 2, 3});
};

TEST_F(Devices, TensorsMoveAndStayWhereTheyAre) {
  EXPECT_EQ(x.device(), Device("cpu"));
  const Tensor moved = x.to("opencl:1");
  EXPECT_EQ(moved.device(), Device("opencl:1"));
  EXPECT_EQ(to_doubles(moved), (Doubles{1, 2, 3}));
  const Tensor y = exp(moved) * 0 + moved * 2;
  EXPECT_EQ(y.device(), Device("opencl:1"));
  EXPECT_EQ(to_doubles(y), (Doubles{2, 4, 6}));
  EXPECT_EQ(y.device(), Device("opencl:1"));
  EXPECT_EQ(y.detach().device(), Device("opencl:1"));
  EXPECT_EQ(to_doubles(y.to("cpu") + x), (Doubles{3, 6, 9}));
  EXPECT_EQ(moved.to("opencl:1").value(), moved.value());
  EXPECT_EQ(x.to(DType::f64).device(), Device("cpu"));
}

TEST_F(Devices, LiteralsJoinTheDeviceOfTheirNeighbours) {
  const Tensor moved = x.to("opencl:0");
  EXPECT_EQ(to_doubles(moved + ones({3})), (Doubles{2, 3, 4}));
  EXPECT_EQ((moved + ones({3})).device(), Device("opencl:0"));
}

TEST_F(Devices, GradientsAndVarsStayOnTheirDevice) {
  const Var w(x.to("opencl:0"), "w");
  const Tensor loss = sum(square(w));
  backward(loss);
  EXPECT_EQ(w.grad().device(), Device("opencl:0"));
  w.assign(w - 0.5 * w.grad());
  const Var v(x, "v");
  v.assign(v + 1);
  EXPECT_EQ(to_doubles(w.value()), (Doubles{0, 0, 0}));  // one flush writes both devices
  EXPECT_EQ(to_doubles(v.value()), (Doubles{2, 3, 4}));
  EXPECT_EQ(w.value().device(), Device("opencl:0"));
  w.set(7);
  EXPECT_EQ(to_doubles(w.value()), (Doubles{7, 7, 7}));
}

TEST_F(Devices, CompiledFunctionsRunWhereTheirInputsAre) {
  const auto twice = compile([](const Tensor& a) { return a * 2; });
  EXPECT_EQ(twice(x).device(), Device("cpu"));
  const Tensor moved = x.to("opencl:1");
  const Tensor y = twice(moved);
  EXPECT_EQ(y.device(), Device("opencl:1"));
  EXPECT_EQ(to_doubles(y), (Doubles{2, 4, 6}));
  EXPECT_EQ(twice.stats().compilations, 2);
  const Var w(moved, "w");
  const auto step = compile([&] {
    w.assign(w + 1);
    return sum(w);
  });
  EXPECT_EQ(step().item(), 9);
  EXPECT_EQ(step().item(), 12);
  EXPECT_EQ(step().device(), Device("opencl:1"));
}

TEST_F(Devices, VarsMoveInPlace) {
  const Var w(x, "w");
  const Var copy = w;
  const auto twice = compile([&] { return w * 2; });
  EXPECT_EQ(twice().device(), Device("cpu"));
  const Tensor old = w;
  w.move("opencl:1");
  EXPECT_EQ(copy.value().device(), Device("opencl:1"));
  EXPECT_EQ(w.name(), "w");
  EXPECT_EQ(to_doubles(copy.value()), (Doubles{1, 2, 3}));
  w.set(4);
  const Tensor y = twice();  // traced anew, on the other device
  EXPECT_EQ(y.device(), Device("opencl:1"));
  EXPECT_EQ(to_doubles(y), (Doubles{8, 8, 8}));
  EXPECT_EQ(twice.stats().compilations, 2);
  EXPECT_TRUE(error_text([&] { old.eval(); }).starts_with("w: value was replaced by step "));
  const auto moving = compile([&] {
    w.move("cpu");
    return w * 1;
  });
  EXPECT_EQ(error_text([&] { moving(); }),
            "move: 'w' cannot be changed while a function is being compiled: do it before");
}

TEST_F(Devices, AMovedModelTrainsThere) {
  Linear here("fc", 3, 2, Random(1)), there("fc", 3, 2, Random(1));
  there.to("opencl:1");
  const auto train = [&](const Linear& fc, Device device) {
    AdamW optimizer(fc.named_parameters(), {.lr = 0.1, .skip_nonfinite = true});
    const LossScaler scaler({}, device);
    const Ema ema(fc.named_parameters());
    GradientAccumulator accumulator(fc.parameters());
    const auto step = compile([&](const Tensor& input) {
      scaler.backward(sum(square(fc(input))));
      scaler.unscale(optimizer);
      accumulator.add();
      accumulator.take();
      clip_grad_norm(fc.parameters(), 1);
      optimizer.step();
      ema.update();
    });
    for (int i = 0; i < 3; ++i) step(x.to(device));
    EXPECT_EQ(fc.weight().value().device(), device);
    EXPECT_EQ(ema.averages()[0].value().device(), device);
    return to_doubles(fc.weight().value());
  };
  EXPECT_EQ(train(here, "cpu"), train(there, "opencl:1"));
}

TEST_F(Devices, TheDefaultIsWhereNewTensorsAreMade) {
  EXPECT_EQ(default_device(), Device("cpu"));
  set_default_device("opencl:1");
  EXPECT_EQ(tensor(std::vector<float>{1}).device(), Device("opencl:1"));
  const Tensor z = zeros({2}) + 1;
  EXPECT_EQ(z.eval().device(), Device("opencl:1"));
  EXPECT_EQ((x + 1).eval().device(), Device("cpu"));
}

TEST_F(Devices, MixingIsAnErrorThatNamesBoth) {
  const Tensor moved = x.to("opencl:0");
  EXPECT_EQ(error_text([&] { (x + moved).eval(); }),
            "the tensors of an expression are on cpu and opencl:0: move one with .to()");
  const auto add_moved = compile([&](const Tensor& a) { return a + moved; });
  EXPECT_EQ(error_text([&] { add_moved(x); }),
            "the tensors of an expression are on cpu and opencl:0: move one with .to()");
}

TEST_F(Devices, AnAbsentOneIsSaidInASentence) {
  EXPECT_EQ(error_text([&] { x.to("opencl:9"); }),
            "Failed to initialize OpenCL device 9: 2 devices found");
  EXPECT_EQ(default_device(), Device("cpu"));
  const std::string reason = why_absent(DeviceKind::cuda);
  if (reason.empty()) GTEST_SKIP() << "there is a CUDA device";
  EXPECT_EQ(error_text([&] { x.to("cuda:0"); }), "Failed to initialize CUDA device 0: " + reason);
  EXPECT_EQ(error_text([] { set_default_device("cuda:1"); }),
            "Failed to initialize CUDA device 1: " + reason);
  EXPECT_EQ(default_device(), Device("cpu"));
}

}  // namespace
}  // namespace tessera
