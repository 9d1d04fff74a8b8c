// Products and what they take along, beside the CPU: by the library, and where it refuses.
#include <algorithm>
#include <cmath>

#include "cuda_stand_in/stand_in_test.h"
#include "tessera/tessera.h"

namespace tessera::test {
namespace {

class CudaLinear : public OnStandIn<> {
 protected:
  void TearDown() override {
    if (!IsSkipped()) tell(STAND_IN_PRODUCTS, "stand_in_refuse_epilogues", false);
    OnStandIn<>::TearDown();
  }
};

struct Layers {
  std::vector<std::vector<float>> values;
  std::vector<std::string> kernels;

  int64_t count(const char* name) const { return std::count(kernels.begin(), kernels.end(), name); }
};

// Two layers with relu between them, and the gradients of all parameters.
Layers run_layers(Device device, DType dtype, int64_t width) {
  set_default_device(device);
  const auto made = [&](const Shape& shape, int seed) {
    return cast(Random(uint64_t(seed)).uniform(shape) - 0.5f, dtype).eval();
  };
  const Tensor x = made({2, 8, 16}, 1), g = made({2, 8, 16}, 2);
  const std::vector<Tensor> parameters = {made({width, 16}, 3), made({width}, 4),
                                          made({16, width}, 5), made({16}, 6)};
  const auto step = compile([&](const Tensor& in) {
    const Tensor hidden = relu(matmul(in, transpose(parameters[0])) + parameters[1]);
    const Tensor y = matmul(hidden, transpose(parameters[2])) + parameters[3];
    std::vector<Tensor> all = {y};
    for (const Tensor& gradient : grad(sum(y * g), parameters)) all.push_back(gradient);
    return all;
  });
  Layers run;
  for (const Tensor& result : step(x)) {
    run.values.push_back(cast(result, DType::f32).to_vector<float>());
  }
  for (const Instruction& one : step.program().instructions) run.kernels.push_back(one.label);
  return run;
}

TEST_F(CudaLinear, TakesReluAndTheGradientOfABiasAlong) {
  matmul(ones({2, 2}), ones({2, 2})).eval();  // opens the library
  for (const bool library : {true, false}) {
    tell(STAND_IN_PRODUCTS, "stand_in_refuse_epilogues", !library);
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::f64}) {
      // Of other shapes: algorithms that were found are kept.
      for (const int64_t width : library ? std::vector{24, 7} : std::vector{32, 9}) {
        const Layers here = run_layers(kCuda, dtype, width);
        const Layers there = run_layers(DeviceKind::cpu, dtype, width);
        const bool joins = dtype != DType::f64;
        EXPECT_EQ(here.count("linear"), joins ? 2 : 0);
        EXPECT_EQ(here.count("matmul_sums"), joins ? 2 : 0);
        EXPECT_EQ(there.count("linear"), dtype == DType::f32 ? 2 : 0);
        EXPECT_EQ(there.count("matmul_sums"), 0);
        for (size_t k = 0; k < here.values.size(); ++k) {
          ASSERT_EQ(here.values[k].size(), there.values[k].size());
          for (size_t i = 0; i < here.values[k].size(); ++i) {
            const double expected = there.values[k][i];
            const double tolerance = is_half(dtype) ? 0.03 : 1e-5;
            EXPECT_NEAR(here.values[k][i], expected, tolerance * std::max(1.0, std::abs(expected)))
                << dtype << " " << width << " result " << k << " element " << i;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace tessera::test
