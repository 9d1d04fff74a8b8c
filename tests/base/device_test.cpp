#include "tessera/base/device.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"

namespace tessera {
namespace {

TEST(Device, IsNamedByKindAndNumber) {
  EXPECT_EQ(to_string(Device()), "cpu");
  EXPECT_EQ(to_string(Device("cpu")), "cpu");
  EXPECT_EQ(to_string(Device("cpu:3")), "cpu:3");
  EXPECT_EQ(to_string(Device("cuda")), "cuda:0");
  EXPECT_EQ(to_string(Device(std::string("opencl:12"))), "opencl:12");
  EXPECT_EQ(Device("cuda:1"), Device(DeviceKind::cuda, 1));
  EXPECT_NE(Device("cuda:1"), Device("opencl:1"));
}

TEST(Device, RefusesOtherNames) {
  for (const char* text : {"", "gpu", "CPU", "cuda:", "cuda:x", "cuda:-1", "cuda:1x", "cuda: 1",
                           "cuda:99999999999", ":0", "cuda:0:0"}) {
    EXPECT_EQ(error_text([&] { Device device(text); }),
              std::string("device: expected cpu, cuda:N or opencl:N, got '") + text + "'");
  }
}

}  // namespace
}  // namespace tessera
