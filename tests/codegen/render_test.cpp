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

// Everything a launcher may promise; `split` where the kernel is made for it.
RenderOptions promises(const KernelIR& ir) {
  return {.max_row_group = 1024,
          .cluster_groups = 8,
          .alignment = 16,
          .narrow_index = true,
          .split = ir.name == "mul sum sqrt"};
}

// TESSERA_REWRITE_GOLDEN=1 writes the files anew; read the difference before keeping it.
TEST(Render, MatchesGoldenText) {
  const char* rewrite = std::getenv("TESSERA_REWRITE_GOLDEN");
  for (const Dialect* dialect : {&cuda_dialect(), &opencl_dialect()}) {
    for (const KernelIR& ir : golden_kernels()) {
      const RenderedKernel kernel = render(ir, *dialect, promises(ir));
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
    const RenderOptions options = promises(ir);
    const std::string text = render(ir, cuda_dialect(), options).source;
    for (const int64_t extent : {int64_t{0}, int64_t{1}, int64_t{1} << 40}) {
      ir.extents[0] = extent;
      EXPECT_EQ(render(ir, cuda_dialect(), options).source, text);
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

TEST(Render, TakesWhereOperandsStart) {
  IrBuilder b("neg", {4}, 0);
  const int x = b.in(DType::f32);
  b.store(b.out(DType::f32), {1}, b.scalar(ScalarOp::neg, {b.load(x, {1})}));
  const std::string text = render(b.build(), opencl_dialect(), {.operand_offsets = true}).source;
  EXPECT_NE(text.find("__global const f32* in0, i64 start0,\n"), std::string::npos) << text;
  EXPECT_NE(text.find("{\n  in0 += start0;\n  out1 += start1;\n"), std::string::npos) << text;
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
  EXPECT_EQ(grouped.group_count(rows, 77), 10);  // 8 rows a group

  IrBuilder b("sum", {4}, 0);
  const int x = b.in(DType::f32), y = b.out(DType::f32);
  b.store(y, {0}, b.reduce(ReduceOp::sum, b.load(x, {1})));
  const KernelIR whole = b.build();
  EXPECT_EQ(render(whole, cuda_dialect()).group_count(whole, 0), 1);
}

}  // namespace
}  // namespace tessera
