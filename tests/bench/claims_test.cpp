#include "tessera/bench/claims.h"

#include <gtest/gtest.h>

#include "bench/sample_results.h"
#include "tessera/bench/suites.h"

namespace tessera::bench {
namespace {

Claim find(const Results& results, const std::string& part) {
  for (const Claim& claim : judge_claims(results)) {
    if (claim.statement.find(part) != std::string::npos) return claim;
  }
  ADD_FAILURE() << "no claim says: " << part;
  return {};
}

Verdict verdict(const Results& results, const std::string& part) {
  return find(results, part).verdict;
}

Results with(std::vector<Line> lines) {
  Results results = sample_results();
  results.lines = std::move(lines);
  return results;
}

Line timed(std::string suite, std::string name, double seconds) {
  return memory_line(std::move(suite), std::move(name), seconds, seconds);
}

TEST(Claims, AboutAGpuNeedOne) {
  Results results = sample_results();
  const std::string claim = "A GPU multiplies f32 matrices of 1024";
  EXPECT_EQ(verdict(results, claim), Verdict::no_device);
  EXPECT_EQ(find(results, claim).measured,
            "plain 2.00 GFLOP/s, oneDNN 2.6.3 66.7 GFLOP/s, cpu 80.0 GFLOP/s");
  results.lines[0].cells.push_back(cell("cuda:0", 0.0025));
  EXPECT_EQ(verdict(results, claim), Verdict::holds);
  results.lines[0].cells.back() = cell("cuda:0", 0.003);
  EXPECT_EQ(verdict(results, claim), Verdict::does_not_hold);
}

TEST(Claims, OfAGpuWithTransfersLookAtThatColumn) {
  Results results = with({timed("elementwise", "gelu 262,144", 1e-4)});
  results.lines[0].cells.push_back(cell("cuda:0", 1e-5));
  results.lines[0].cells.push_back(cell("cuda:0 + transfers", 2e-4));
  EXPECT_EQ(verdict(results, "gelu to 262,144 numbers faster than the CPU, transfers not counted"),
            Verdict::holds);
  EXPECT_EQ(verdict(results, "gelu to 262,144 numbers faster than the CPU, transfers included"),
            Verdict::does_not_hold);
}

TEST(Claims, OfAGpuAloneNeedNoCpu) {
  Line softmax = timed("rows", "softmax 4096 x 1024", 1);
  Line replay = timed("step", "replay of 1,000 nodes on 2 x 2 matrices", 1);
  const std::string speed = "A GPU computes softmax 4096 x 1024 at 67 % of its copy bandwidth";
  const std::string each = "A GPU runs a recorded program of small kernels";
  Results results = with({softmax, replay});
  EXPECT_EQ(verdict(results, speed), Verdict::no_device);
  EXPECT_EQ(verdict(results, each), Verdict::no_device);
  for (Line& line : results.lines) line.cells = {cell("cuda:0", 1)};
  EXPECT_EQ(find(results, speed).measured, "its bandwidth was not measured");
  EXPECT_EQ(find(results, each).measured, "its kernels were not counted");
  results.limits = gpu_results().limits;
  results.lines[0].cells = {cell("cuda:0", 1e9 / 4e12 / 0.68)};
  EXPECT_EQ(verdict(results, speed), Verdict::holds);
  EXPECT_EQ(find(results, speed).measured, "cuda:0 368 µs: 68 % of 4,000 GB/s");
  results.lines[0].cells = {cell("cuda:0", 1e9 / 4e12 / 0.66)};
  EXPECT_EQ(verdict(results, speed), Verdict::does_not_hold);
  results.lines[1].facts = {{"kernels on cuda:0", 1000}};
  results.lines[1].cells = {cell("cuda:0", 2.4e-3)};
  EXPECT_EQ(verdict(results, each), Verdict::holds);
  results.lines[1].cells = {cell("cuda:0", 2.6e-3)};
  EXPECT_EQ(verdict(results, each), Verdict::does_not_hold);
}

TEST(Claims, OfAGpuAboutFusionAndSteps) {
  const std::string step = "mlp 784-256-10, B = 64, step with AdamW";
  Results results =
      with({timed("elementwise", "chain of six 16 M, fused", 1),
            timed("elementwise", "chain of six 16 M, unfused", 1), timed("step", step, 1)});
  const std::string fusion = "On a GPU, fusing that chain",
                    training = "A GPU makes a training step";
  EXPECT_EQ(verdict(results, fusion), Verdict::no_device);
  EXPECT_EQ(verdict(results, training), Verdict::no_device);
  results.lines[0].cells.push_back(cell("cuda:0", 1e-4));
  results.lines[1].cells.push_back(cell("cuda:0", 3.1e-4));
  results.lines[2].cells.push_back(cell("cuda:0", 0.09));
  EXPECT_EQ(verdict(results, fusion), Verdict::holds);
  EXPECT_EQ(find(results, fusion).measured,
            "cuda:0 unfused 310 µs, fused 100 µs: 3.10 times as fast");
  EXPECT_EQ(verdict(results, training), Verdict::holds);
  results.lines[1].cells.back() = cell("cuda:0", 2.9e-4);
  results.lines[2].cells.back() = cell("cuda:0", 0.11);
  EXPECT_EQ(verdict(results, fusion), Verdict::does_not_hold);
  EXPECT_EQ(verdict(results, training), Verdict::does_not_hold);
}

TEST(Claims, LibraryMayBeATenthFaster) {
  const std::string claim = "No CPU library multiplies f32 matrices of 1024";
  Results results = sample_results();
  EXPECT_EQ(verdict(results, claim), Verdict::holds);
  results.lines[0].cells[1] = cell("library", 0.0226, "oneDNN");
  EXPECT_EQ(verdict(results, claim), Verdict::holds);
  results.lines[0].cells[1] = cell("library", 0.0224, "oneDNN");
  EXPECT_EQ(verdict(results, claim), Verdict::does_not_hold);
}

TEST(Claims, WithoutAColumnIsNotMeasured) {
  const Results alone = with({product_line("f32 1024", {cell("cpu", 1)})});
  const Claim library = find(alone, "No CPU library multiplies f32 matrices of 1024");
  EXPECT_EQ(library.verdict, Verdict::not_measured);
  EXPECT_EQ(library.measured, "no library was found");
  EXPECT_EQ(find(alone, "Tuning makes an f32 product").measured, "the plain loop was not run");
  Results results = with({memory_line("rows", "softmax 64 x 1024", 0.15, 0.1)});
  results.lines[0].cells.erase(results.lines[0].cells.begin() + 1);
  EXPECT_EQ(find(results, "softmax 64 x 1024 takes at most").measured,
            "nobody moved the same bytes");
}

TEST(Claims, MemorySpeedIsATimeRelativeToTheBytes) {
  const std::string claim = "softmax 64 x 1024 takes at most 1.5 times";
  EXPECT_EQ(verdict(with({memory_line("rows", "softmax 64 x 1024", 0.15, 0.1)}), claim),
            Verdict::holds);
  EXPECT_EQ(verdict(with({memory_line("rows", "softmax 64 x 1024", 0.151, 0.1)}), claim),
            Verdict::does_not_hold);
}

TEST(Claims, FusionTellsKernelsBytesAndTimes) {
  Results results = with({timed("elementwise", "chain of six 16 M, fused", 0.01),
                          timed("elementwise", "chain of six 16 M, unfused", 0.031)});
  results.lines[0].facts = {{"kernels", 1}, {"moved bytes", 2e8}};
  results.lines[1].facts = {{"kernels", 6}, {"moved bytes", 9e8}};
  const Claim claim = find(results, "Fusing a chain of six");
  EXPECT_EQ(claim.measured,
            "unfused 6 kernels, 900 MB, 31.0 ms; fused 1 kernels, 200 MB, 10.0 ms: 3.10 "
            "times as fast");
  EXPECT_EQ(claim.verdict, Verdict::holds);
  results.lines[1].cells[2] = cell("cpu", 0.029);
  EXPECT_EQ(verdict(results, "Fusing a chain of six"), Verdict::does_not_hold);
}

TEST(Claims, BackwardIsJudgedBesideItsOperations) {
  Results results = with({timed("step", "mlp 784-256-10, forward", 1),
                          timed("step", "mlp 784-256-10, forward + backward", 3)});
  results.lines[0].flops = 100;
  results.lines[1].flops = 250;
  const Claim claim = find(results, "A backward pass takes twice");
  EXPECT_EQ(claim.verdict, Verdict::holds);
  EXPECT_EQ(claim.measured,
            "forward 1.00 s, with backward 3.00 s: backward takes 2.00 times forward, and has 1.50 "
            "times its operations");
  results.lines[1].cells[2] = cell("cpu", 2.5);
  EXPECT_EQ(verdict(results, "A backward pass takes twice"), Verdict::does_not_hold);
}

TEST(Claims, UpdatesAndReplay) {
  const std::string name = "mlp 784-256-10, B = 64, step with AdamW";
  EXPECT_EQ(verdict(with({timed("step", name, 0.9e-3)}), "AdamW makes more than 1,000 updates"),
            Verdict::holds);
  EXPECT_EQ(verdict(with({timed("step", name, 1.1e-3)}), "AdamW makes more than 1,000 updates"),
            Verdict::does_not_hold);
  Results results = with({timed("step", "replay of 1,000 nodes on 2 x 2 matrices", 319e-6)});
  results.lines[0].facts = {{"kernels", 1000}};
  EXPECT_EQ(verdict(results, "Replaying a compiled program"), Verdict::holds);
  results.lines[0].facts = {{"kernels", 990}};
  EXPECT_EQ(verdict(results, "Replaying a compiled program"), Verdict::does_not_hold);
}

TEST(Claims, WithoutItsLineIsNotMeasured) {
  const Claim absent = find(sample_results(), "Replaying a compiled program");
  EXPECT_EQ(absent.verdict, Verdict::not_measured);
  EXPECT_EQ(absent.measured, "step replay of 1,000 nodes on 2 x 2 matrices was not run");
  const Claim wrong = find(wrong_results(), "No CPU library multiplies f32 matrices of 1024");
  EXPECT_EQ(wrong.verdict, Verdict::not_measured);
  EXPECT_EQ(wrong.measured, "matmul f32 1024 is wrong");
  const Results elsewhere = with({product_line("f32 1024", {cell("cuda:0", 1)})});
  EXPECT_EQ(find(elsewhere, "No CPU library multiplies f32 matrices of 1024").measured,
            "matmul f32 1024 was not run on the CPU");
}

TEST(Claims, AreAllAboutLinesThatExist) {
  Results everything = sample_results();
  everything.lines.clear();
  for (const Case& one : all_cases()) {
    everything.lines.push_back(timed(one.suite, one.name, 1));
    everything.lines.back().cells.push_back(cell("library", 1));
  }
  for (const Claim& claim : judge_claims(everything)) {
    EXPECT_NE(claim.verdict, Verdict::not_measured) << claim.statement << ": " << claim.measured;
  }
}

}  // namespace
}  // namespace tessera::bench
