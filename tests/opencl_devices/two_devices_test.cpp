// Several OpenCL devices: a CPU device divided into two.
#include <cmath>
#include <cstdlib>

#include "backend_opencl/opencl_test.h"
#include "support/expect_error.h"
#include "tessera/backend/opencl/devices.h"
#include "tessera/conformance/reference.h"
#include "tessera/tessera.h"

namespace tessera::test {
namespace {

// Before the first look at devices.
[[maybe_unused]] const int kDivided = setenv("TESSERA_OPENCL_SUBDEVICES", "2", 1);

class TwoDevices : public ::testing::Test {
 protected:
  void SetUp() override {
    if (opencl_device_count() == 0) GTEST_SKIP() << "no OpenCL device: " << opencl_absent();
    if (opencl_device_count() < 2) GTEST_SKIP() << "the OpenCL device cannot be divided";
  }
};

TEST_F(TwoDevices, ShareTheComputeUnits) {
  int64_t whole = 0, parts = 0;
  for (const opencl::DeviceInfo& info : opencl::find_devices(opencl::library(), 1, true).list) {
    whole += info.compute_units;
  }
  for (const opencl::DeviceInfo& info : opencl::devices().list) parts += info.compute_units;
  EXPECT_LE(parts, whole);
  EXPECT_GT(parts, 0);
  EXPECT_EQ(backend({DeviceKind::opencl, 1}).target().device, "opencl:1");
  EXPECT_EQ(opencl::find_devices(opencl::library(), 1024, true).list.size(),
            opencl::find_devices(opencl::library(), 1, true).list.size())
      << "what cannot be divided so stays whole";
}

struct Model {
  Tensor first, last;  // (8, 16), (16, 3)
};

// The sum over the rows of x, so that parts of a batch add up.
std::vector<Tensor> gradients_of(const Model& model, const Tensor& x, const Tensor& target) {
  const Tensor error = matmul(tanh(matmul(x, model.first)), model.last) - target;
  return grad(sum(error * error), {model.first, model.last});
}

TEST_F(TwoDevices, GiveTheGradientsOfASplitBatch) {
  const Device devices[] = {{DeviceKind::opencl, 0}, {DeviceKind::opencl, 1}};
  const Model model = {random_tensor({8, 16}, 1), random_tensor({16, 3}, 2)};
  const Tensor x = random_tensor({10, 8}, 3), target = random_tensor({10, 3}, 4);
  const std::vector<Tensor> expected = gradients_of(model, x, target);
  std::vector<Tensor> sums;
  for (int part = 0; part < 2; ++part) {
    const Device device = devices[part];
    const Model there = {model.first.to(device), model.last.to(device)};
    const auto rows = [&](const Tensor& all) {
      return slice(all, 0, 5 * part, 5 * part + 5).to(device);
    };
    const std::vector<Tensor> gradients = gradients_of(there, rows(x), rows(target));
    for (size_t i = 0; i < gradients.size(); ++i) {
      EXPECT_EQ(gradients[i].device(), device);
      const Tensor here = gradients[i].to(DeviceKind::cpu);
      if (part == 0) sums.push_back(here);
      if (part == 1) sums[i] = sums[i] + here;
    }
  }
  for (size_t i = 0; i < sums.size(); ++i) {
    const std::vector<double> actual = to_doubles(sums[i]), wanted = to_doubles(expected[i]);
    for (size_t k = 0; k < wanted.size(); ++k) {
      EXPECT_NEAR(actual[k], wanted[k], 1e-5 * (1 + std::fabs(wanted[k])));
    }
  }
}

TEST_F(TwoDevices, DoNotMixInOneExpression) {
  const Tensor a = random_tensor({4}, 1).to({DeviceKind::opencl, 0});
  const Tensor b = random_tensor({4}, 2).to({DeviceKind::opencl, 1});
  EXPECT_NE(error_text([&] { (a + b).eval(); }).find("are on opencl:0 and opencl:1"),
            std::string::npos);
}

}  // namespace
}  // namespace tessera::test
