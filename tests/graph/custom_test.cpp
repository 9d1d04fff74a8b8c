#include "tessera/graph/custom.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

TEST(CustomDefinition, RunsWhereItsKernelHasAForm) {
  CustomKernel kernel;
  const auto runs_on = [&](const char* kind) {
    CustomDefinition definition;
    definition.kernel = std::make_shared<const CustomKernel>(kernel);
    return definition.runs_on(kind);
  };
  for (const char* kind : {"cpu", "cuda", "opencl"}) EXPECT_FALSE(runs_on(kind)) << kind;
  kernel.cuda = "the source";
  EXPECT_TRUE(runs_on("cuda"));
  EXPECT_FALSE(runs_on("opencl") || runs_on("cpu"));
  kernel.opencl = "the source";
  kernel.cpu = [](std::span<const CustomOperand>, std::span<const CustomOperand>) {};
  for (const char* kind : {"cpu", "cuda", "opencl"}) EXPECT_TRUE(runs_on(kind)) << kind;
}

}  // namespace
}  // namespace tessera
