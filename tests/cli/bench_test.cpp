#include "tessera/cli/bench.h"

#include <gtest/gtest.h>

#include <sstream>

#include "cli/run_command.h"
#include "io/temp_folder.h"
#include "tessera/bench/op_case.h"
#include "tessera/io/json.h"
#include "tessera/runtime/registry.h"
#include "tessera/tensor/elementwise.h"

namespace tessera::cli {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// x + 1, computed as x + `added`.
bench::Case increment(double added) {
  bench::OpCase op;
  op.suite = "elementwise";
  op.name = "increment";
  op.operands = [] { return bench::Operands{{{100}, bench::make_data(100, 0, 1, 1)}}; };
  op.apply = [added](const std::vector<Tensor>& in) { return std::vector{in[0] + added}; };
  op.loop = bench::loop_of([](const bench::Operands& in, auto& out) {
    for (size_t i = 0; i < out[0].size(); ++i) out[0][i] = in[0].values[i] + 1;
  });
  op.outputs = {{100, 1}};
  return bench::to_case(std::move(op));
}

TEST(Bench, AWrongLineFails) {
  for (const bool wrong : {false, true}) {
    const bench::Case one = increment(wrong ? 1.001 : 1);
    std::ostringstream out, err;
    Console console{out, err};
    const Status status = run_lines({{Device()}, true}, {&one, 1}, console);
    EXPECT_EQ(status, wrong ? Status::failed : Status::done);
    EXPECT_EQ(contains(out.str(), "wrong: cpu: largest error "), wrong) << out.str();
    EXPECT_EQ(contains(out.str(), "\n1 of 1 lines are wrong\n"), wrong) << out.str();
    EXPECT_EQ(err.str(), "");
  }
}

TEST(Bench, WritesItsFiles) {
  const TempFolder folder;
  const bench::Case one = increment(1);
  BenchOptions options{{Device()}, true};
  options.claims = true;
  options.json = (folder / "bench.json").string();
  options.html = (folder / "bench.html").string();
  std::ostringstream out, err;
  Console console{out, err};
  EXPECT_EQ(run_lines(options, {&one, 1}, console), Status::done);
  const Json document = Json::parse(read_text(options.json), "bench.json");
  EXPECT_TRUE(document.get<bool>("quick"));
  EXPECT_EQ(document.at("lines").at(size_t(0)).get<std::string>("name"), "increment");
  EXPECT_GT(document.at("claims").as_array().size(), 20u);
  EXPECT_FALSE(document.at("machine").get<std::string>("compiler").empty());
  EXPECT_TRUE(contains(read_text(options.html), "<svg "));
  EXPECT_TRUE(contains(out.str(), "\nThe claims of the field, measured\n"));
  EXPECT_TRUE(contains(out.str(), "\nnot measured  "));
}

TEST(Bench, ShowsProgressOnATerminal) {
  const bench::Case one = increment(1);
  std::ostringstream out, err;
  Console console{out, err};
  console.progress = true;
  run_lines({{Device()}, true}, {&one, 1}, console);
  EXPECT_TRUE(contains(err.str(), "1/1 elementwise: increment"));
  EXPECT_TRUE(err.str().ends_with("\r\x1b[K"));
}

TEST(Bench, RefusesWhatIsNoSuiteOrDevice) {
  CommandResult result = run_command({"bench", "matmull"});
  EXPECT_EQ(result.status, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(result.err,
            "tessera: bench: expected matmul|elementwise|rows|transfer|step|claims|lattice, got "
            "'matmull'; "
            "did you mean 'matmul'?\ntry 'tessera bench --help'\n");
  result = run_command({"bench", "transfer", "--device", "cpu,gpu"});
  EXPECT_EQ(result.status, 2);
  EXPECT_EQ(result.err,
            "tessera: bench: device: expected cpu, cuda:N or opencl:N, got 'gpu'\n"
            "try 'tessera bench --help'\n");
}

TEST(Bench, FilesAreCheckedBeforeTheWork) {
  const TempFolder folder;
  const std::string file = (folder / "a").native();
  EXPECT_EQ(run_command({"bench", "transfer", "--json", file, "--html", file}).err,
            cat("tessera: bench: --json and --html are one file, '", file,
                "'\ntry 'tessera bench --help'\n"));
  EXPECT_EQ(run_command({"bench", "transfer", "--html", "-"}).err,
            "tessera: bench: --html expects a file, got '-'\ntry 'tessera bench --help'\n");
  for (const char* option : {"--json", "--html"}) {
    const CommandResult outcome = run_command({"bench", option, (folder / "none/b").native()});
    EXPECT_EQ(outcome.status, 1);
    EXPECT_EQ(outcome.out, "");  // nothing was measured
  }
}

// A build that opens libraries at run time has no CUDA device where there is no driver.
TEST(Bench, AnAbsentDeviceHasColumnsThatSaySo) {
  if (why_absent(DeviceKind::cuda).empty()) GTEST_SKIP() << "there is a CUDA device";
  const bench::Case one = increment(1);
  std::ostringstream out, err;
  Console console{out, err};
  EXPECT_EQ(run_lines({{Device(), Device("cuda:0")}, true}, {&one, 1}, console), Status::done);
  EXPECT_TRUE(contains(out.str(), "\nno device   cuda:0: ")) << out.str();
  EXPECT_TRUE(contains(out.str(), " no device           no device ")) << out.str();
  const CommandResult alone = run_command({"bench", "transfer", "--device", "cuda:0"});
  EXPECT_EQ(alone.status, 1);
  EXPECT_EQ(
      alone.err,
      cat("tessera: Failed to initialize CUDA device 0: ", why_absent(DeviceKind::cuda), "\n"));
}

TEST(Bench, ADeviceComesOnce) {
  const CommandResult outcome = run_command({"bench", "transfer", "--device", "cpu,cpu"});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_TRUE(contains(outcome.err, "device cpu comes twice")) << outcome.err;
}

TEST(Bench, SaysWhyADeviceIsAbsent) {
  const CommandResult result = run_command({"bench", "transfer", "--device", "cpu,cpu:99"});
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(result.err, "tessera: Failed to initialize CPU device 99: 1 device found\n");
}

}  // namespace
}  // namespace tessera::cli
