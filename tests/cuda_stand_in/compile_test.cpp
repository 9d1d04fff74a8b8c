// Kernels that are compiled by several threads.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <thread>

#include "cuda_stand_in/stand_in_test.h"
#include "support/expect_error.h"
#include "tessera/backend/cuda/session.h"
#include "tessera/conformance/check_op.h"
#include "tessera/tessera.h"

namespace tessera::test {
namespace {

class CudaCompile : public OnStandIn<> {
 protected:
  void TearDown() override {
    wait_for(1);
    OnStandIn::TearDown();
  }

  static void wait_for(int together) {
    backend(kCuda);  // opens the compiler
    stand_in<void(int)>(STAND_IN_COMPILER, "stand_in_wait_for")(together);
  }
  static int most_at_once() {
    return stand_in<int()>(STAND_IN_COMPILER, "stand_in_most_at_once")();
  }

  // A text that no run before had: nothing is found on disk.
  static std::string unique() {
    return cat("// ", std::chrono::system_clock::now().time_since_epoch().count(), "\n");
  }

  // y = factor x, in f32.
  static CustomFunction scale(const std::string& name, const std::string& factor) {
    return custom_op(
        {.name = name,
         .types = [](std::span<const Type> inputs) { return std::vector<Type>{inputs[0]}; },
         .cuda = cat(unique(), "extern \"C\" __global__ void ", name,
                     "(const float* x, float* y, long long n) {\n"
                     "  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;\n"
                     "  if (i < n) y[i] = ",
                     factor, " * x[i];\n}\n")});
  }
};

TEST_F(CudaCompile, KernelsOfAProgramSideBySide) {
  const CustomFunction twice = scale("twice", "2"), thrice = scale("thrice", "3"),
                       half = scale("half_of", "0.5f");
  const auto all = compile([&](const Tensor& x) { return half(thrice(twice(x))); });
  const Tensor x = tensor(std::vector<float>{1, 2, 3, 4}, {4});
  wait_for(3);
  EXPECT_EQ(all(x).to_vector<float>(), (std::vector<float>{3, 6, 9, 12}));
  EXPECT_GE(most_at_once(), 3);
}

TEST_F(CudaCompile, NamesTheFirstKernelThatFails) {
  const CustomFunction good = scale("good", "2"), bad = scale("bad", "first_fault"),
                       worse = scale("worse", "second_fault");
  const auto all = compile([&](const Tensor& x) { return worse(bad(good(x))); });
  const Tensor x = tensor(std::vector<float>{1, 2}, {2});
  wait_for(3);
  const std::string text = error_text([&] { all(x); });
  EXPECT_GE(most_at_once(), 3);
  EXPECT_TRUE(text.starts_with("bad: the kernel does not compile for cuda:0 (Stand-in, sm_90a, "))
      << text;
  EXPECT_NE(text.find("first_fault"), std::string::npos) << text;
  for (const std::string kept : {"bad", "worse"}) {
    for (const auto& file :
         std::filesystem::directory_iterator(std::filesystem::temp_directory_path())) {
      const std::string path = file.path().filename().native();
      if (path.starts_with("tessera_" + kept + "_") && path.ends_with(".cu")) {
        std::filesystem::remove(file);
      }
    }
  }
}

// Threads that need one source at a time make one module of it.
TEST_F(CudaCompile, ASourceOnce) {
  const std::string source =
      cat(unique(), "extern \"C\" __global__ void one(float* y) { y[0] = 8; }");
  cuda::Session session(0, cuda::devices().list[0], "cuda:0");
  const auto loads = stand_in<size_t()>(STAND_IN_DRIVER, "stand_in_loads");
  const size_t before = loads();
  std::vector<std::unique_ptr<gpu::Kernel>> kernels(4);
  std::vector<std::thread> threads;
  for (auto& kernel : kernels) {
    threads.emplace_back([&] { kernel = session.build("op", source, "one"); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(loads(), before + 1);
  const cuda::Address memory = session.allocate(4);
  for (const auto& kernel : kernels) (*kernel)(Stream{}, gpu::Range{}, memory);
  float value = 0;
  session.download(&value, memory, sizeof value, Stream{});
  EXPECT_EQ(value, 8);
  session.free(memory);
}

// Behind prepare_ops() nothing is left to compile or to load.
TEST_F(CudaCompile, PreparesWhatOpsLaunch) {
  const auto loads = stand_in<size_t()>(STAND_IN_DRIVER, "stand_in_loads");
  for (const Op op : {Op::expm1, Op::sum, Op::topk}) {
    const auto row = std::ranges::find(rows(), op, &Row::op);
    ASSERT_NE(row, rows().end());
    const size_t before = loads();
    prepare_ops({row, row + 1}, first_dtype);
    const size_t prepared = loads();
    EXPECT_GT(prepared, before) << name(op);
    const OpCheck check = check_op(*row, first_dtype(*row));
    EXPECT_EQ(check.failure, "");
    EXPECT_EQ(loads(), prepared) << name(op);
  }
}

TEST_F(CudaCompile, SelftestPasses) {
  FILE* pipe = ::popen(TESSERA_COMMAND " selftest --device cuda:0 --quick 2>&1", "r");
  std::string out;
  char block[4096];
  for (size_t n = 0; (n = ::fread(block, 1, sizeof block, pipe)) > 0;) out.append(block, n);
  EXPECT_EQ(::pclose(pipe), 0) << out;
  EXPECT_NE(out.find(cat("\n", rows().size(), "/", rows().size(), " passed\n")), std::string::npos)
      << out;
}

}  // namespace
}  // namespace tessera::test
