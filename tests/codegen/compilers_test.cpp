// The rendered texts through the compilers of their dialects, where those are installed.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <iostream>
#include <mutex>
#include <thread>
#include <tuple>

#include "codegen/emitted.h"
#include "codegen/host_kernel.h"
#include "codegen/nvrtc.h"
#include "codegen/zoo.h"
#include "tessera/codegen/render.h"
#include "tessera/conformance/reference.h"
#include "tessera/tessera.h"

namespace tessera {
namespace {

std::vector<KernelIR> zoo_kernels() {
  std::vector<KernelIR> kernels = golden_kernels();
  for (int i = 0; i < kDTypeCount; ++i) {
    const DType dtype = static_cast<DType>(i);
    kernels.push_back(all_ops_kernel(dtype).ir);
    kernels.push_back(all_casts_kernel(dtype));
    if (dtype != DType::boolean) kernels.push_back(all_reductions_kernel(dtype, 100));
  }
  for (const int64_t cols : {3, 64, 768, 1024, 4096, 8192, 50257}) {
    kernels.push_back(softmax_kernel(DType::bf16, 4, cols));
    kernels.back().name = cat("softmax_", cols);
  }
  kernels.push_back(vector_softmax_kernel(DType::f32));
  return kernels;
}

// Of forward and backward passes, with several inputs and outputs.
void add_emitted(int64_t cols, DType dtype, std::vector<KernelIR>& kernels) {
  const Tensor x = random_tensor({2, cols}, 1, dtype), g = random_tensor({2, cols}, 2, dtype);
  const Tensor weight = random_tensor({cols}, 3, dtype);
  const Tensor y = softmax(x, -1), gy = g * y, centred = x - mean(x, -1, true);
  const Tensor rstd = rsqrt(mean(centred * centred, -1, true) + 1e-5);
  const Tensor normed = centred * rstd, gw = g * weight;
  const Tensor all[] = {log_softmax(x, -1), gy - y * sum(gy, -1, true), x * 2 + y,
                        (gw - mean(gw, -1, true) - normed * mean(gw * normed, -1, true)) * rstd};
  for (const Tensor& each : all) {
    const std::vector<Value> outputs = {each.value()};
    for (const EmittedKernel& kernel : emitted_kernels(outputs, "long rows")) {
      kernels.push_back(*kernel.ir);
      kernels.back().name += cat(" ", dtype, " ", cols);
    }
  }
}

// Rows for the registers of two, four and eight groups, some of which start anywhere.
std::vector<KernelIR> long_row_kernels() {
  std::vector<KernelIR> kernels;
  for (const int64_t cols : {20011, 32768, 50257, 65536, 131072}) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      kernels.push_back(softmax_kernel(dtype, 4, cols));
      kernels.push_back(layer_norm_kernel(dtype, 4, cols));
      for (size_t i = kernels.size() - 2; i < kernels.size(); ++i) {
        kernels[i].name += cat(" ", dtype, " ", cols);
      }
    }
  }
  for (const int64_t cols : {32768, 50257}) {
    for (const DType dtype : {DType::f32, DType::bf16}) add_emitted(cols, dtype, kernels);
  }
  return kernels;
}

bool has_clusters(const std::string& architecture) { return architecture != "sm_80"; }

struct Text {
  std::string name, source, architecture;
};

// Mostly the fast text, split where that can be; now and then the plain one.
void add_text(const KernelIR& ir, size_t number, const std::string& architecture,
              std::vector<Text>& texts) {
  const bool fast = number / 2 % 4 != 0;
  RenderOptions options;
  options.alignment = fast ? 16 : 1;
  options.narrow_index = fast;
  options.split = fast && can_split(ir);
  if (fast) {
    options.turns = 1 + int(number % 2);
    options.max_row_group = 1024;
    options.local_bytes = 216 << 10;
    options.cluster_groups = has_clusters(architecture) ? 8 : 1;
  }
  // Some with a table of parts: an optimiser's for the tensors of a model.
  if (fast && number / 2 % 4 == 1 && ir.operands.size() <= 12) options.parts = 160;
  const RenderedKernel kernel = render(ir, cuda_dialect(), options);
  texts.push_back({cat(number, " ", kernel.entry), kernel.source, architecture});
}

// Compiles on two threads and prints a line for each text.
void expect_no_spills(const Nvrtc& nvrtc, const std::vector<Text>& texts, bool print) {
  std::vector<CompiledText> results(texts.size());
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < texts.size(); i = next++) {
      results[i] = nvrtc.compile(texts[i].source, texts[i].architecture);
    }
  };
  std::thread other(work);
  work();
  other.join();
  int most = 0;
  for (size_t i = 0; i < texts.size(); ++i) {
    const CompiledText& result = results[i];
    EXPECT_TRUE(result.compiled) << texts[i].architecture << result.log << texts[i].source;
    // With every function in one kernel, the slow paths of some become calls that save registers.
    const int allowed = texts[i].name.find("all_ops") != std::string::npos ? 64 : 0;
    EXPECT_LE(result.spill_bytes, allowed) << texts[i].architecture << "\n" << texts[i].source;
    EXPECT_GT(result.registers, 0) << result.log;
    most = std::max(most, result.registers);
    if (print) {
      std::cout << cat(result.registers, " registers, ", result.spill_bytes, " bytes spilled, ",
                       texts[i].architecture, ": ", texts[i].name, "\n");
    }
  }
  std::cout << cat(texts.size(), " texts, at most ", most, " registers\n");
}

const std::vector<std::string> kArchitectures = {"sm_80", "sm_90a", "sm_100"};

bool wants_all() { return std::getenv("TESSERA_CODEGEN_ALL") != nullptr; }

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kInstrumented = true;
#else
constexpr bool kInstrumented = false;
#endif

// An architecture, and which half of the kernels: a case each, so that none takes long.
class NvrtcTest : public testing::TestWithParam<std::tuple<std::string, int>> {
 protected:
  void SetUp() override {
    if (!nvrtc_.is_there()) GTEST_SKIP() << "no libnvrtc on this machine";
    if (kInstrumented) GTEST_SKIP() << "the compiler is not instrumented: other builds run this";
  }

  void add(const KernelIR& ir, size_t number) {
    const auto [architecture, half] = GetParam();
    if (int(number % 2) == half) add_text(ir, number, architecture, texts_);
  }

  const Nvrtc nvrtc_;
  std::vector<Text> texts_;
};

TEST_P(NvrtcTest, TakesEveryOpAndType) {
  size_t number = 0;
  for (const KernelIR& ir : zoo_kernels()) add(ir, ++number);
  expect_no_spills(nvrtc_, texts_, true);
}

TEST_P(NvrtcTest, TakesRowsOfClusters) {
  const auto [architecture, half] = GetParam();
  if (!has_clusters(architecture)) GTEST_SKIP() << "no clusters there";
  const RenderOptions options = {.max_row_group = 1024,
                                 .local_bytes = 216 << 10,
                                 .cluster_groups = 8,
                                 .alignment = 16,
                                 .narrow_index = half == 0};
  for (const KernelIR& ir : long_row_kernels()) {
    const RenderedKernel kernel = render(ir, cuda_dialect(), options);
    texts_.push_back(
        {cat(kernel.entry, ", ", kernel.cluster, " groups"), kernel.source, architecture});
  }
  expect_no_spills(nvrtc_, texts_, true);
}

// A part of the table; TESSERA_CODEGEN_ALL=1 takes every case, dtype and layout.
TEST_P(NvrtcTest, TakesTheKernelsOfTheConformanceTable) {
  size_t number = 0;
  for (const EmittedKernel& kernel : conformance_kernels(wants_all())) add(*kernel.ir, ++number);
  expect_no_spills(nvrtc_, texts_, true);
}

INSTANTIATE_TEST_SUITE_P(Cuda, NvrtcTest,
                         testing::Combine(testing::ValuesIn(kArchitectures), testing::Values(0, 1)),
                         [](const auto& test) {
                           return std::get<0>(test.param) +
                                  (std::get<1>(test.param) == 0 ? "_even" : "_odd");
                         });

TEST(Compilers, UsageIsReadFromTheLog) {
  CompiledText text;
  text.log =
      "ptxas . 0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info : Used 35 registers, used 0 barriers\n"
      "ptxas . 24 bytes stack frame, 8 bytes spill stores, 16 bytes spill loads\n"
      "ptxas info : Used 255 registers\n";
  read_usage(text);
  EXPECT_EQ(text.registers, 255);
  EXPECT_EQ(text.spill_bytes, 24);
}

TEST(Compilers, NvccTakesTheCudaText) {
  std::string output, nvcc;
  for (const char* name : {"nvcc", "/usr/local/cuda/bin/nvcc"}) {
    if (nvcc.empty() && run_command(std::string(name) + " --version", output)) nvcc = name;
  }
  if (nvcc.empty()) GTEST_SKIP() << "no nvcc on this machine";
  const TempFolder folder;
  for (const size_t i : {7, 10}) {
    const KernelIR ir = golden_kernels()[i];
    const RenderedKernel kernel =
        render(ir, cuda_dialect(), {.alignment = 16, .narrow_index = true, .split = can_split(ir)});
    const std::string path = folder.path(kernel.entry + ".cu");
    write_text(path, kernel.source);
    EXPECT_TRUE(
        run_command(cat(nvcc, " -arch=sm_80 -cubin -o '", path, ".cubin' '", path, "'"), output))
        << output;
  }
}

TEST(Compilers, ClangTakesTheOpenClText) {
  std::string clang, output;
  for (const char* name : {"clang", "clang-16", "clang-18"}) {
    if (clang.empty() && run_command(std::string(name) + " --version", output)) clang = name;
  }
  if (clang.empty()) GTEST_SKIP() << "no clang on this machine";
  const TempFolder folder;
  std::string files;
  for (const KernelIR& ir : zoo_kernels()) {
    for (const bool fast : {false, true}) {
      RenderOptions options;
      options.alignment = fast ? 16 : 1;
      options.narrow_index = fast;
      options.split = fast && can_split(ir);
      const RenderedKernel kernel = render(ir, opencl_dialect(), options);
      const std::string path = folder.path(cat(kernel.entry, fast ? "_fast" : "", ".cl"));
      write_text(path, kernel.source);
      files += " '" + path + "'";
    }
  }
  const std::string command =
      clang +
      " -x cl -cl-std=CL1.2 -target spir64-unknown-unknown -Xclang -finclude-default-header" +
      " -Wall -Werror -Wno-unused-parameter -Wno-tautological-compare -fsyntax-only";
  EXPECT_TRUE(run_command(command + files, output)) << output;
}

}  // namespace
}  // namespace tessera
