#include <gtest/gtest.h>

#include <limits>
#include <sstream>

#include "cli/run_command.h"
#include "tessera/cli/selftest.h"
#include "tessera/cli/selftest_report.h"
#include "tessera/io/json.h"
#include "tessera/tensor/device.h"

namespace tessera::cli {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// A report in which everything passed.
SelftestReport good_report() {
  SelftestReport report;
  report.device = {"cpu", "a processor", "avx2", 4, int64_t(3) << 30, int64_t(1) << 30};
  report.memory = {int64_t(64) << 20, 0.01, 0.02, 0.04, {}};
  report.small = {{1, 2, 3, 4}, {5, 6, 7, 8}, {19, 22, 43, 50}, {19, 22, 43, 50}};
  OpCheck check{};
  check.op = Op::exp;
  check.dtypes = {DType::f32};
  check.cases = 3;
  check.add({1.5, 20, 100}, 2, "f32 (100,)");
  report.ops = {check};
  report.large = LargeProduct{1024, 256, 3, 0.5, 40, 0.01, 9};
  return report;
}

class SelftestText : public ::testing::Test {
 protected:
  std::ostringstream out_, err_;
  const Console console_{out_, err_};
};

TEST_F(SelftestText, DeviceAndMemory) {
  EXPECT_EQ(device_text(good_report().device),
            "device      cpu: a processor\n"
            "processor   avx2, threads: 4\n"
            "memory      3.0 GiB, 1.0 GiB free\n");
  EXPECT_EQ(device_text({"cuda:0", "a card", "", 0, int64_t(3) << 30, {}}),
            "device      cuda:0: a card\n"
            "memory      3.0 GiB\n");
}

TEST_F(SelftestText, RoundTrip) {
  MemoryCheck check = good_report().memory;
  EXPECT_EQ(memory_text(check, true, console_),
            "round trip  64 MiB up, copied and down: equal, 6.7 GB/s up, 3.4 GB/s copied, "
            "1.7 GB/s down  ok\n");
  check.first_difference = 17;
  EXPECT_EQ(memory_text(check, false, console_),
            "round trip  64 MiB up, copied and down: byte 17 differs  FAILED\n");
}

TEST_F(SelftestText, SmallProduct) {
  SmallProduct check = good_report().small;
  EXPECT_EQ(small_product_text(check, console_),
            "product     [1 2]   [5 6]   [19 22]\n"
            "            [3 4] @ [7 8] = [43 50]  ok\n");
  check.actual[3] = 51;
  EXPECT_EQ(small_product_text(check, console_),
            "product     [1 2]   [5 6]   [19 22]\n"
            "            [3 4] @ [7 8] = [43 51], expected [19 22] [43 50]  FAILED\n");
}

TEST_F(SelftestText, OpsLineUpBelowTheirHeader) {
  OpCheck check = good_report().ops[0];
  const std::string header = ops_header(), line = op_text(check, console_);
  EXPECT_EQ(
      line,
      "exp                   f32                           3      1.5      0.2        2  ok\n");
  EXPECT_EQ(header.find("dtypes"), line.find("f32") + 1);
  EXPECT_EQ(header.find("allowed") + 7, line.find("  ok") + 1);
  check.add({kInfinite, kInfinite, 1}, 2, "f32 (1,)");
  EXPECT_EQ(op_text(check, console_),
            "exp                   f32                           3      inf      inf        2  "
            "FAILED\n  f32 (1,): inf ulps, expected at most 2\n");
}

TEST_F(SelftestText, LargeProduct) {
  EXPECT_EQ(large_product_text(*good_report().large, console_),
            "\nmatmul      1024 x 1024 x 1024 f32: 10.00 ms (median of 9), 214.7 GFLOP/s\n"
            "            256 entries: max error 3 ulps, mean 0.5, allowed 40  ok\n");
}

TEST_F(SelftestText, ManyDTypesInFewWords) {
  std::vector<DType> all;
  for (int i = 0; i < kDTypeCount; ++i) all.push_back(DType(i));
  EXPECT_EQ(dtypes_text(all), "floats integers bool");
  all.pop_back();
  EXPECT_EQ(dtypes_text(all), "floats integers");
  EXPECT_EQ(dtypes_text({DType::f32, DType::f64, DType::i8}), "f32 f64 i8");
  EXPECT_EQ(dtypes_text({DType::boolean}), "bool");
}

TEST_F(SelftestText, CountsWhatPassed) {
  SelftestReport report = good_report();
  EXPECT_EQ(ops_summary(report, console_), "1/1 passed\n");
  report.ops.push_back(report.ops[0]);
  report.ops[1].add({3, 3, 1}, 2, "f32 (1,)");
  EXPECT_EQ(ops_summary(report, console_), "1/2 passed\n");
}

TEST(SelftestReport, FailsWithAnyOfItsParts) {
  EXPECT_TRUE(good_report().passed());
  SelftestReport report = good_report();
  report.memory.first_difference = 0;
  EXPECT_FALSE(report.passed());
  report = good_report();
  report.small.actual[0] = 0;
  EXPECT_FALSE(report.passed());
  report = good_report();
  report.ops[0].add({3, 3, 1}, 2, "f32 (1,)");
  EXPECT_FALSE(report.passed());
  report = good_report();
  report.large->max_error = 41;
  EXPECT_FALSE(report.passed());
  report.large.reset();
  EXPECT_TRUE(report.passed()) << "what was not asked for cannot fail";
}

TEST(SelftestReport, JsonHoldsTheFailure) {
  SelftestReport report = good_report();
  report.ops[0].add({kInfinite, kInfinite, 1}, 2, "f32 (1,)");
  const Json document = Json::parse(selftest_json(report), "report");
  EXPECT_FALSE(document.get<bool>("passed"));
  EXPECT_EQ(document.get<int64_t>("ops_passed"), 0);
  const Json& op = document.at("ops").at(size_t(0));
  EXPECT_EQ(op.get<std::string>("op"), "exp");
  EXPECT_FALSE(op.get<bool>("passed"));
  EXPECT_TRUE(op.at("max_error").is_null());
  EXPECT_EQ(op.get<double>("tolerance"), 2);
  EXPECT_EQ(op.get<std::string>("failure"), "f32 (1,): inf ulps, expected at most 2");
}

TEST(Selftest, FailsWithOneWrongOp) {
  // The device's answers, but for one element of the longest result of every addition.
  const Evaluate evaluate = [](std::span<const Value> outputs) {
    std::vector<Array> result = evaluate_on_device(outputs);
    const bool chosen = outputs[0].node->op == Op::add && result[0].real.size() == 1031;
    if (chosen) result[0].real[77] += 0.001;
    return result;
  };
  const std::string ops = std::to_string(rows().size() - 1) + "/" + std::to_string(rows().size());
  for (const bool json : {false, true}) {
    std::ostringstream out, err;
    Console console{out, err};
    EXPECT_EQ(selftest({default_device(), true, json}, evaluate, console), Status::failed);
    EXPECT_EQ(err.str(), "");
    if (json) {
      const Json document = Json::parse(out.str(), "report");
      EXPECT_FALSE(document.get<bool>("passed"));
      EXPECT_EQ(document.get<int64_t>("ops_passed"), int64_t(rows().size()) - 1);
    } else {
      const size_t line = out.str().find("\nadd ");
      const std::string shown = out.str().substr(line, out.str().find("\nsub ") - line);
      EXPECT_TRUE(contains(shown, "  FAILED\n  f32 (1031,): ")) << shown;
      EXPECT_TRUE(contains(out.str(), "\n" + ops + " passed\n")) << out.str();
    }
  }
}

TEST(Selftest, PassesOnTheCpu) {
  const CommandResult result = run_command({"selftest", "--device", "cpu"});
  EXPECT_EQ(result.status, 0) << result.out;
  EXPECT_EQ(result.err, "");
  EXPECT_TRUE(result.out.starts_with("device      cpu: "));
  EXPECT_TRUE(contains(result.out, "[3 4] @ [7 8] = [43 50]  ok\n"));
  EXPECT_TRUE(contains(result.out, " GB/s down  ok\n"));
  for (const Row& row : rows()) {
    EXPECT_TRUE(contains(result.out, "\n" + std::string(name(row.op)) + " "));
  }
  const std::string ops = std::to_string(rows().size());
  EXPECT_TRUE(contains(result.out, "\n" + ops + "/" + ops + " passed\n"));
  EXPECT_TRUE(contains(result.out, "\nmatmul      1024 x 1024 x 1024 f32: "));
  EXPECT_TRUE(contains(result.out, " GFLOP/s\n"));
}

TEST(Selftest, QuickIsF32AndNotTimed) {
  const CommandResult result = run_command({"selftest", "--quick", "--json"});
  EXPECT_EQ(result.status, 0);
  const Json document = Json::parse(result.out, "standard output");
  EXPECT_TRUE(document.get<bool>("passed"));
  EXPECT_EQ(document.find("matmul"), nullptr);
  EXPECT_EQ(document.at("round_trip").find("upload_seconds"), nullptr);
  EXPECT_GT(document.at("device").get<int64_t>("memory_bytes"), 0);
  EXPECT_GT(document.at("device").get<int64_t>("threads"), 0);
  EXPECT_EQ(document.at("ops").as_array().size(), rows().size());
  EXPECT_EQ(document.get<int64_t>("ops_passed"), int64_t(rows().size()));
  for (const Json& op : document.at("ops").as_array()) {
    EXPECT_EQ(op.at("dtypes").as_array().size(), 1u);
    EXPECT_GT(op.get<int64_t>("cases"), 0);
    if (op.get<std::string>("op") == "exp")
      EXPECT_EQ(op.at("dtypes").at(size_t(0)).as_string(), "f32");
  }
}

// By TESSERA_ISA the environment reaches the backend, and so the report.
TEST(Selftest, ReportsTheInstructionSetInUse) {
  const CommandResult result =
      run_command({"selftest", "--quick", "--json"}, {"TESSERA_ISA=baseline"});
  EXPECT_EQ(result.status, 0);
  const Json document = Json::parse(result.out, "standard output");
  EXPECT_EQ(document.at("device").get<std::string>("instruction_set"), "baseline");
}

TEST(Selftest, RefusesWhatIsNoDevice) {
  CommandResult result = run_command({"selftest", "--device", "gpu"});
  EXPECT_EQ(result.status, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(result.err,
            "tessera: selftest: device: expected cpu, cuda:N or opencl:N, got 'gpu'\n"
            "try 'tessera selftest --help'\n");
  result = run_command({"selftest", "now"});
  EXPECT_EQ(result.status, 2);
  EXPECT_EQ(result.err,
            "tessera: selftest: expected options alone, got 'now'\n"
            "try 'tessera selftest --help'\n");
}

TEST(Selftest, SaysWhyADeviceIsAbsent) {
  const CommandResult result = run_command({"selftest", "--device", "cpu:99"});
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(result.err, "tessera: Failed to initialize CPU device 99: 1 device found\n");
}

}  // namespace
}  // namespace tessera::cli
