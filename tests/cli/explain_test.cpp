#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "cli/run_command.h"
#include "io/temp_folder.h"
#include "tessera/io/json.h"

namespace tessera {
namespace {

std::string explain(Words words) {
  words.insert(words.begin(), "explain");
  const CommandResult result = run_command(words);
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.err, "");
  return result.out;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// The number behind a word of the report, such as "kernels        31 (…".
double reported(const std::string& text, const std::string& word) {
  const size_t at = text.find("\n" + word + " ", text.find("== report"));
  if (at == std::string::npos) {
    ADD_FAILURE() << "no '" << word << "' in\n" << text;
    return -1;
  }
  return std::stod(text.substr(at + word.size() + 2));
}

double peak_kib(const std::string& text) {
  const size_t end = text.find(" temporaries at peak");
  if (end == std::string::npos) {
    ADD_FAILURE() << "no peak in\n" << text;
    return -1;
  }
  const size_t start = text.rfind(", ", end) + 2;
  const double value = std::stod(text.substr(start));
  return contains(text.substr(start, end - start), "MiB") ? 1024 * value : value;
}

class ExplainModel : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Models, ExplainModel, ::testing::Values("mlp", "softmax", "attention"));

TEST_P(ExplainModel, ShowsGraphKernelsAndReport) {
  const std::string text = explain({GetParam()});
  EXPECT_TRUE(contains(text, "== graph\n%0 = leaf "));
  EXPECT_TRUE(contains(text, " = matmul f32("));
  EXPECT_TRUE(contains(text, "\n== kernels\n#0 "));
  EXPECT_TRUE(contains(text, "\nkernel "));
  EXPECT_GT(reported(text, "nodes"), 0);
  EXPECT_GT(reported(text, "kernels"), 0);
  EXPECT_TRUE(contains(text, "\nbytes moved "));
  EXPECT_TRUE(contains(text, "\ncopies "));
  EXPECT_TRUE(contains(text, "\n  at peak "));
  EXPECT_EQ(text, explain({GetParam(), "--text", "--kernels", "ir"})) << "these are the defaults";
}

TEST_P(ExplainModel, JsonHoldsTheReport) {
  const std::string text = explain({GetParam()});
  const Json document = Json::parse(explain({GetParam(), "--json"}), "explain --json");
  EXPECT_EQ(document.get<std::string>("model"), GetParam());
  const Json& report = document.at("report");
  EXPECT_EQ(double(report.get<int64_t>("nodes")), reported(text, "nodes"));
  EXPECT_EQ(double(report.get<int64_t>("kernels")), reported(text, "kernels"));
  EXPECT_EQ(double(report.get<int64_t>("copies")), reported(text, "copies"));
  EXPECT_GT(report.get<int64_t>("bytes_moved"), report.get<int64_t>("external_bytes"));
  EXPECT_NEAR(double(report.get<int64_t>("temporary_bytes")) / 1024, peak_kib(text), 60);
  int64_t at_peak = 0, generated = 0;
  for (const Json& item : report.at("at_peak").as_array()) at_peak += item.get<int64_t>("bytes");
  EXPECT_GT(at_peak, 0);
  EXPECT_LE(at_peak, report.get<int64_t>("temporary_bytes"));
  EXPECT_EQ(at_peak, report.get<int64_t>("peak_bytes"));
  int64_t by_scope = 0, moved = 0;
  for (const Json& item : report.at("peak_by_scope").as_array()) {
    by_scope += item.get<int64_t>("bytes");
  }
  EXPECT_EQ(by_scope, at_peak);
  const Json::Array& timeline = report.at("timeline").as_array();
  EXPECT_EQ(int64_t(timeline.size()), report.get<int64_t>("kernels"));
  EXPECT_EQ(timeline.at(size_t(report.get<int64_t>("peak_kernel"))).as_int(), at_peak);
  const Json::Array& kernels = document.at("kernels").as_array();
  EXPECT_EQ(int64_t(kernels.size()), report.get<int64_t>("kernels"));
  for (const Json& kernel : kernels) {
    generated += kernel.get<bool>("generated");
    moved += kernel.get<int64_t>("bytes");
  }
  EXPECT_EQ(moved, report.get<int64_t>("bytes_moved"));
  EXPECT_EQ(generated, report.get<int64_t>("generated"));
}

TEST_P(ExplainModel, DotIsOneGraph) {
  const std::string text = explain({GetParam(), "--dot"});
  EXPECT_EQ(text.rfind("digraph", 0), 0u);
  EXPECT_EQ(text.substr(text.size() - 2), "}\n");
  EXPECT_FALSE(contains(text, "== "));
}

TEST_P(ExplainModel, RendersSource) {
  const std::string cuda = explain({GetParam(), "--kernels", "cuda"});
  EXPECT_TRUE(contains(cuda, "__global__ void"));
  EXPECT_TRUE(contains(cuda, " matmul: a named kernel\n"));
  const std::string opencl = explain({GetParam(), "--kernels=opencl"});
  EXPECT_TRUE(contains(opencl, "__kernel"));
  EXPECT_FALSE(contains(opencl, "__global__"));
}

TEST_P(ExplainModel, FusionSavesKernels) {
  const std::string fused = explain({GetParam()}), separate = explain({GetParam(), "--no-fuse"});
  EXPECT_LT(reported(fused, "kernels"), reported(separate, "kernels"));
  EXPECT_EQ(reported(fused, "nodes"), reported(separate, "nodes"));
}

TEST_P(ExplainModel, MemoryIsAChartAndThePeakByScope) {
  const std::string text = explain({GetParam(), "--memory"});
  EXPECT_TRUE(text.starts_with("temporaries ")) << text;
  EXPECT_TRUE(contains(text, "\ntimeline\n  #0")) << text;
  EXPECT_TRUE(contains(text, "  " + std::string(40, '#') + "  ")) << "the peak\n" << text;
  EXPECT_TRUE(contains(text, "\npeak by scope\n")) << text;
  EXPECT_EQ(explain({GetParam(), "--memory", "--json"}), explain({GetParam(), "--json"}));
}

TEST(Explain, CheckpointLowersThePeak) {
  const std::string kept = explain({"mlp"}), again = explain({"mlp", "--checkpoint"});
  EXPECT_EQ(reported(kept, "rematerialized"), 0);
  EXPECT_GT(reported(again, "rematerialized"), 0);
  EXPECT_LT(peak_kib(again), peak_kib(kept));
}

TEST(Explain, TakesMlpWithoutAModel) { EXPECT_EQ(explain({}), explain({"mlp"})); }

TEST(Explain, HelpListsModelsAndOptions) {
  const std::string text = explain({"--help"});
  for (const char* word :
       {"mlp", "softmax", "attention", "--dot", "--kernels ir|cuda|opencl", "--checkpoint",
        "--no-fuse", "--json", "-o FILE", "--memory", "--profile FILE"}) {
    EXPECT_TRUE(contains(text, word)) << word;
  }
}

TEST(Explain, PlansForTheDeviceAskedFor) {
  const CommandResult plain = run_command({"explain", "mlp", "--memory"});
  EXPECT_EQ(run_command({"explain", "mlp", "--memory", "--device", "cpu"}).out, plain.out);
  const CommandResult wrong = run_command({"explain", "mlp", "--device", "gpu"});
  EXPECT_EQ(wrong.status, 2);
  EXPECT_EQ(wrong.err,
            "tessera: explain: device: expected cpu, cuda:N or opencl:N, got 'gpu'\n"
            "try 'tessera explain --help'\n");
  const CommandResult absent = run_command({"explain", "mlp", "--device", "cpu:99"});
  EXPECT_EQ(absent.status, 1);
  EXPECT_EQ(absent.err, "tessera: Failed to initialize CPU device 99: 1 device found\n");
}

TEST(Explain, WritesToAFile) {
  const TempFolder folder;
  const std::string path = (folder / "step.dot").string();
  EXPECT_EQ(explain({"softmax", "--dot", "-o", path}), "");
  EXPECT_EQ(read_text(path), explain({"softmax", "--dot"}));
  const CommandResult result = run_command({"explain", "-o", (folder / "none" / "x").string()});
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.err.rfind("tessera: ", 0), 0u) << result.err;
}

TEST(Explain, WrongUseExitsWithTwo) {
  const std::pair<Words, std::string> cases[] = {
      {{"cnn"}, "explain: expected mlp|softmax|attention, got 'cnn'"},
      {{"mpl"}, "explain: expected mlp|softmax|attention, got 'mpl'; did you mean 'mlp'?"},
      {{"mlp", "softmax"}, "explain: expected one model, got 2"},
      {{"--no-fusion"}, "explain: unknown option '--no-fusion'; did you mean '--no-fuse'?"},
      {{"--frobnicate"}, "explain: unknown option '--frobnicate'"},
      {{"--kernels", "metal"}, "explain: --kernels expects ir|cuda|opencl, got 'metal'"},
      {{"--dot", "--no-fuse"}, "explain: --dot shows the graph alone, expected no --no-fuse"},
      {{"--dot", "--json"}, "explain: --dot shows the graph alone, expected no --json"},
      {{"--dot", "--memory"}, "explain: --dot shows the graph alone, expected no --memory"},
      {{"--memory", "--text"}, "explain: --memory shows memory alone, expected no --text"},
      {{"--json", "--kernels", "ir"},
       "explain: --json shows the report alone, expected no --kernels"},
  };
  for (auto [words, message] : cases) {
    words.insert(words.begin(), "explain");
    const CommandResult result = run_command(words);
    EXPECT_EQ(result.status, 2);
    EXPECT_EQ(result.err, "tessera: " + message + "\ntry 'tessera explain --help'\n");
    EXPECT_EQ(result.out, "");
  }
}

}  // namespace
}  // namespace tessera
