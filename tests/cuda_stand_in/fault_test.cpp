// Faults of kernels, each in a process of its own: the device is lost.
#include <cstdlib>
#include <iostream>

#include "cuda_stand_in/stand_in_test.h"
#include "runtime/child.h"
#include "support/expect_error.h"
#include "tessera/backend/cuda/session.h"
#include "tessera/tessera.h"

namespace tessera::test {
namespace {

class CudaFault : public OnStandIn<> {};

Backend& device() { return backend(kCuda); }

TEST_F(CudaFault, IsReportedOnce) {
  const auto work = [] {
    const auto memory = device().allocate(64);
    device().synchronize(Stream{});
    tell(STAND_IN_DRIVER, "stand_in_fault", true);
    const std::string first = error_text([] { device().synchronize(Stream{}); });
    const std::string second = error_text([&] {
      device().copy({memory->handle, 0}, {memory->handle, 0}, 8, Stream{});
    });
    const bool right =
        first ==
            "waiting for the device: cuda:0 reports: an illegal memory access was encountered "
            "(700); launched before: nothing; TESSERA_CUDA_SYNC=1 finds the kernel at fault" &&
        second == "cuda:0: the device was lost to an earlier fault of a kernel";
    if (!right) std::cerr << first << "\n" << second << "\n";
    return right ? 0 : 1;
  };
  EXPECT_EQ(wait_for_child(start_child(work)), 0);
}

TEST_F(CudaFault, NamesWhatWasLaunched) {
  const auto work = [] {
    auto rows = compile([](const Tensor& x) { return softmax(x, 1); });
    const Tensor x = reshape(arange(6, DType::f32), {2, 3});
    for (int i = 0; i < 4; ++i) rows(x).to_vector<float>();  // recorded at last
    rows(x);
    tell(STAND_IN_DRIVER, "stand_in_fault", true);
    const std::string text = error_text([] { device().synchronize(Stream{}); });
    const bool right =
        text.find("; launched before: a copy, a recorded program (max_sub_exp_sum_div); ") !=
        std::string::npos;
    if (!right) std::cerr << text << "\n";
    return right ? 0 : 1;
  };
  EXPECT_EQ(wait_for_child(start_child(work)), 0);
}

// With TESSERA_CUDA_SYNC nothing is recorded: each kernel is waited for, and named.
TEST_F(CudaFault, IsFoundByWaitingForEveryKernel) {
  const auto work = [] {
    ::setenv("TESSERA_CUDA_SYNC", "1", 1);
    const std::string source = "extern \"C\" __global__ void one(float* y) { y[0] = 7; }";
    cuda::Session session(0, cuda::devices().list[0], "cuda:0");
    const auto kernel = session.build("op", source, "one");
    const cuda::Address memory = session.allocate(64);
    (*kernel)(Stream{}, gpu::Range{}, memory);
    const bool records = session.begin_recording(Stream{});
    tell(STAND_IN_DRIVER, "stand_in_fault", true);
    const std::string text = error_text([&] { (*kernel)(Stream{}, gpu::Range{}, memory); });
    const bool named = text == "op: cuda:0 reports: an illegal memory access was encountered (700)";
    if (!named) std::cerr << text << "\n";
    return named && !records ? 0 : 1;
  };
  EXPECT_EQ(wait_for_child(start_child(work)), 0);
}

TEST(CudaSuspects, AreTheLatestKernels) {
  cuda::Suspects suspects;
  EXPECT_EQ(suspects.text(), "nothing");
  for (const char* op : {"a", "b", "a"}) suspects.add(op);
  EXPECT_EQ(suspects.text(), "a, b");
  for (int i = 0; i < 9; ++i) suspects.add(cat(i));
  EXPECT_EQ(suspects.text(), "…, 1, 2, 3, 4, 5, 6, 7, 8");
  suspects.clear();
  suspects.add("c");
  EXPECT_EQ(suspects.text(), "c");
}

}  // namespace
}  // namespace tessera::test
