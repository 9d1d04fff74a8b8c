#include "tessera/cli/lattice_bench.h"

#include <gtest/gtest.h>

#include "cli/run_command.h"
#include "io/temp_folder.h"
#include "tessera/io/json.h"

namespace tessera::cli {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(LatticeBench, PointsAreTheSameInEveryRunAndVaryLessAndLess) {
  const LatticeCase task = {"test", 2000, 16, 8};
  const std::vector<float> points = lattice_points(task);
  EXPECT_EQ(points, lattice_points(task));
  double first = 0, last = 0;
  for (size_t i = 0; i < points.size(); i += 16) {
    first += double(points[i]) * points[i];
    last += double(points[i + 15]) * points[i + 15];
  }
  // 16 times as much; centres of 8 parts are far from their mean.
  EXPECT_GT(first, 4 * last);
}

TEST(LatticeBench, TellsTrainingSizesAndRecall) {
  const LatticeRun run = run_lattice_case({"test", 600, 16, 8});
  ASSERT_EQ(run.sizes.size(), 4u);
  for (size_t i = 1; i < run.sizes.size(); ++i) {
    EXPECT_GT(run.sizes[i].report.file_bytes, run.sizes[i - 1].report.file_bytes);
    EXPECT_GT(run.sizes[i].recall, run.sizes[i - 1].recall);
    EXPECT_GT(run.sizes[i].seconds, run.sizes[i].report.train_seconds);
  }
  EXPECT_LT(run.sizes[0].recall, 0.8);
  EXPECT_GT(run.sizes[3].recall, 0.97);
  EXPECT_EQ(int64_t(run.iterations.size()), run.sizes[0].report.iterations);
  EXPECT_EQ(run.iterations.front().moved, 600);
  EXPECT_LT(run.iterations.back().energy, run.iterations.front().energy);

  const std::string text = to_text(run);
  EXPECT_TRUE(contains(text, "test: 600 points of 16 dimensions, 8 anchors\n")) << text;
  const char* end = run.sizes[0].report.converged ? "\nconverged after " : "\nnot converged after ";
  EXPECT_TRUE(contains(text, cat(end, run.iterations.size(), "\n"))) << text;

  const Json document = Json::parse(to_json({&run, 1}), "bench");
  const Json& one = document.at("cases").at(size_t(0));
  EXPECT_EQ(one.at("iterations").as_array().size(), run.iterations.size());
  EXPECT_EQ(one.at("sizes").at(size_t(2)).get<int64_t>("bits"), 4);
  EXPECT_EQ(one.at("sizes").at(size_t(2)).get<double>("recall_at_10"), run.sizes[2].recall);
  EXPECT_EQ(one.at("seconds").get<double>("all"), run.sizes[2].seconds);
  EXPECT_NEAR(one.at("iterations").at(size_t(1)).get<double>("energy_change"),
              run.iterations[1].energy - run.iterations[0].energy, 1e-9);
}

TEST(LatticeBench, RunsByItself) {
  const TempFolder folder;
  const std::string file = (folder / "bench.json").native();
  const CommandResult result = run_command({"bench", "lattice", "--small", "--json", file});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_TRUE(contains(result.out, "small: 1000 points of 64 dimensions, 32 anchors\n"));
  EXPECT_FALSE(contains(result.out, "large: "));
  const Json document = Json::parse(read_text(file), file);
  EXPECT_EQ(document.at("cases").as_array().size(), 1u);

  const std::pair<Words, std::string> calls[] = {
      {{"lattice", "rows"}, "bench: lattice runs by itself"},
      {{"rows", "--small"}, "bench: only lattice takes --small"},
      {{"lattice", "--quick"}, "bench: lattice does not take --quick"},
  };
  for (const auto& [words, text] : calls) {
    Words all = {"bench"};
    all.insert(all.end(), words.begin(), words.end());
    const CommandResult refused = run_command(all);
    EXPECT_EQ(refused.status, 2);
    EXPECT_EQ(refused.err, cat("tessera: ", text, "\ntry 'tessera bench --help'\n"));
  }
  EXPECT_EQ(run_command({"bench", "lattice", "--small"}, {"TMPDIR=/nowhere"}).err,
            "tessera: bench: expected a folder for temporary files (TMPDIR), got none to write "
            "to\n");
}

}  // namespace
}  // namespace tessera::cli
