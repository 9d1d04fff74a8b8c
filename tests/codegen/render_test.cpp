#include "tessera/codegen/render.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "codegen/host_kernel.h"
#include "codegen/zoo.h"
#include "kernel/ir_builder.h"

namespace tessera {
namespace {

std::string golden_path(const RenderedKernel& kernel, const Dialect& dialect) {
  const char* extension = dialect.name == "cuda" ? ".cu" : ".cl";
  return cat(TESSERA_TEST_DIR, "/golden/", kernel.entry, extension);
}

// TESSERA_REWRITE_GOLDEN=1 writes the files anew; read the difference before keeping it.
TEST(Render, MatchesGoldenText) {
  const char* rewrite = std::getenv("TESSERA_REWRITE_GOLDEN");
  for (const Dialect* dialect : {&cuda_dialect(), &opencl_dialect()}) {
    for (const KernelIR& ir : golden_kernels()) {
      const RenderedKernel kernel = render(ir, *dialect);
      const std::string path = golden_path(kernel, *dialect);
      if (rewrite != nullptr) write_text(path, kernel.source);
      const std::optional<std::string> golden = read_text(path);
      ASSERT_TRUE(golden.has_value()) << path << " is missing; see TESSERA_REWRITE_GOLDEN";
      EXPECT_EQ(kernel.source, *golden) << path;
    }
  }
}

TEST(Render, DoesNotDependOnTheOutermostExtent) {
  for (KernelIR ir : golden_kernels()) {
    const std::string text = render(ir, cuda_dialect()).source;
    for (const int64_t extent : {int64_t{0}, int64_t{1}, int64_t{1} << 40}) {
      ir.extents[0] = extent;
      EXPECT_EQ(render(ir, cuda_dialect()).source, text);
    }
  }
}

TEST(Render, KeepsNamesFromLeavingTheComment) {
  IrBuilder b("exp\nint evil;\\", {4}, 0);
  b.store(b.out(DType::f32), {1}, b.constant(DType::f32, 1));
  const RenderedKernel kernel = render(b.build(), opencl_dialect());
  EXPECT_EQ(kernel.entry, "tessera_exp_int_evil__");
  EXPECT_NE(kernel.source.find("// exp int evil;  over (extent0)\n"), std::string::npos);
}

TEST(Render, DropsWhatNoStoreNeeds) {
  IrBuilder b("copy", {4, 5}, 1);
  const int x = b.in(DType::f32), y = b.out(DType::f32);
  const int v = b.load(x, {5, 1});
  b.reduce(ReduceOp::sum, b.scalar(ScalarOp::exp, {v}));
  b.store(y, {5, 1}, v);
  const std::string text = render(b.build(), cuda_dialect()).source;
  EXPECT_EQ(text.find("exp("), std::string::npos);
  EXPECT_EQ(text.find("__syncthreads"), std::string::npos);
}

TEST(Render, FitsTheGroupToTheRow) {
  const auto group_size = [](int64_t cols, int largest) {
    const KernelIR ir = softmax_kernel(DType::f32, 4, cols);
    return render(ir, cuda_dialect(), {.max_group_size = largest}).group_size;
  };
  EXPECT_EQ(group_size(1, 256), 32);
  EXPECT_EQ(group_size(33, 256), 64);
  EXPECT_EQ(group_size(64, 256), 64);
  EXPECT_EQ(group_size(100000, 256), 256);
  EXPECT_EQ(group_size(100000, 1024), 1024);
  EXPECT_EQ(group_size(100000, 8), 8);
}

TEST(Render, CountsGroups) {
  const KernelIR map = golden_kernels()[0];  // (extent0, 6)
  const RenderedKernel flat = render(map, cuda_dialect());
  EXPECT_EQ(flat.group_size, 256);
  EXPECT_EQ(flat.group_count(map, 0), 0);
  EXPECT_EQ(flat.group_count(map, 1), 1);
  EXPECT_EQ(flat.group_count(map, 128), 3);
  EXPECT_EQ(flat.group_count(map, 129), 4);
  EXPECT_EQ(flat.group_count(map, int64_t{1} << 50), (int64_t{1} << 31) - 1);

  const KernelIR rows = softmax_kernel(DType::f32, 4, 1000);
  const RenderedKernel grouped = render(rows, cuda_dialect());
  EXPECT_EQ(grouped.group_count(rows, 0), 0);
  EXPECT_EQ(grouped.group_count(rows, 77), 77);

  IrBuilder b("sum", {4}, 0);
  const int x = b.in(DType::f32), y = b.out(DType::f32);
  b.store(y, {0}, b.reduce(ReduceOp::sum, b.load(x, {1})));
  const KernelIR whole = b.build();
  EXPECT_EQ(render(whole, cuda_dialect()).group_count(whole, 0), 1);
}

}  // namespace
}  // namespace tessera
