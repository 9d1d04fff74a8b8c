#include "tessera/bench/results.h"

#include <gtest/gtest.h>

#include "bench/sample_results.h"

namespace tessera::bench {
namespace {

TEST(Results, RatioIsToTheLibraryElseToThePlainLoop) {
  const Results results = sample_results();
  const Line& product = results.lines[0];
  EXPECT_EQ(product.subject()->column, "cpu");
  EXPECT_DOUBLE_EQ(product.ratio()->value, 0.03 / 0.025);
  EXPECT_EQ(product.ratio()->to, "library");
  EXPECT_DOUBLE_EQ(results.lines[1].ratio()->value, 0.4 / 0.3);
  EXPECT_EQ(results.lines[1].ratio()->to, "plain");
  EXPECT_FALSE(product_line("x", {cell("cpu", 1)}).ratio());
  EXPECT_DOUBLE_EQ(product.rate(*product.subject()), 80);
}

TEST(Results, ShareIsOfTheLimit) {
  const Results results = sample_results();
  EXPECT_DOUBLE_EQ(results.limits.best_fma(), 1e11);
  EXPECT_DOUBLE_EQ(results.lines[0].share(results.limits)->value, 2e9 / 0.025 / 1e11);
  EXPECT_DOUBLE_EQ(results.lines[1].share(results.limits)->value, 0.1 / 0.3);
  EXPECT_EQ(results.lines[1].share(results.limits)->to, "the same bytes");
  Line unaccompanied = results.lines[1];
  std::erase_if(unaccompanied.cells, [](const auto& c) { return c.column == kBytes; });
  EXPECT_DOUBLE_EQ(unaccompanied.share(results.limits)->value, 1e9 / 0.3 / 2e10);
  EXPECT_EQ(unaccompanied.share(results.limits)->to, "copy bandwidth");
  EXPECT_FALSE(unaccompanied.share({})) << "nothing was measured";
  EXPECT_FALSE(product_line("x", {cell("cuda:0", 1)}).share(results.limits))
      << "a limit of another device";
  Line free = results.lines[0];
  free.limit = LimitKind::none;
  EXPECT_FALSE(free.share(results.limits));
}

TEST(Results, ShareOfAGpuIsOfItsOwnLimits) {
  const Results results = gpu_results();
  const Line &product = results.lines[0], &rows = results.lines[1];
  EXPECT_DOUBLE_EQ(product.share(results.limits, *product.find("cuda:0"))->value, 0.8);
  EXPECT_EQ(product.share(results.limits, *product.find("cuda:0"))->to, "products of f32");
  EXPECT_FALSE(product.share(results.limits, *product.find("cuda:0 + transfers")));
  Line half = product;
  half.dtype = DType::bf16;
  EXPECT_FALSE(half.share(results.limits, *half.find("cpu"))) << "no limit was measured";
  EXPECT_FALSE(half.share(results.limits, *half.find("cuda:0")));
  Limits limits = results.limits;
  limits.devices[0].products.push_back({DType::bf16, 8192, 1e14});
  EXPECT_DOUBLE_EQ(half.share(limits, *half.find("cuda:0"))->value, 0.4);
  EXPECT_EQ(half.share(limits, *half.find("cuda:0"))->to, "products of bf16");
  EXPECT_FALSE(product.share(results.limits, *product.find("library")));
  EXPECT_DOUBLE_EQ(rows.share(results.limits, *rows.find("cuda:0"))->value, 0.5);
  EXPECT_EQ(rows.share(results.limits, *rows.find("cuda:0"))->to, "copy bandwidth");
  Line over_a_bus = rows;
  over_a_bus.limit = LimitKind::host_bytes;
  EXPECT_FALSE(over_a_bus.share(results.limits, *over_a_bus.find("cuda:0")));
  EXPECT_DOUBLE_EQ(over_a_bus.share(results.limits)->value, 0.1 / 0.3);
  EXPECT_EQ(results.limits.devices[0].product_flops(DType::bf16), 0);
}

TEST(Results, AWrongLineHasNoSubject) {
  const Results results = wrong_results();
  EXPECT_FALSE(results.passed());
  EXPECT_TRUE(sample_results().passed());
  EXPECT_EQ(results.lines[0].subject(), nullptr);
  EXPECT_FALSE(results.lines[0].ratio());
  EXPECT_FALSE(results.lines[0].share(results.limits));
}

TEST(Results, AreFoundByName) {
  const Results results = sample_results();
  EXPECT_EQ(results.find("rows", "softmax 64 x 1024"), &results.lines[1]);
  EXPECT_EQ(results.find("rows", "f32 1024"), nullptr);
  EXPECT_EQ(results.suites(), (std::vector<std::string>{"matmul", "rows"}));
  EXPECT_EQ(results.lines[1].fact("kernels"), 1);
  EXPECT_FALSE(results.lines[1].fact("bytes"));
}

}  // namespace
}  // namespace tessera::bench
