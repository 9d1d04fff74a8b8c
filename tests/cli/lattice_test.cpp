// compress, search, eval, info and maintain, as a user calls them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <sstream>

#include "cli/run_command.h"
#include "io/temp_folder.h"
#include "tessera/io/json.h"
#include "tessera/io/npy.h"
#include "tessera/io/vector_file.h"

namespace tessera {
namespace {

struct Files {
  Files() {
    write("vectors.npy", 3000, 0.37f);
    write("queries.npy", 30, 0.11f);
    built = run_command({"compress", at("vectors.npy"), "-o", index, "--anchors", "30", "--bits",
                         "8", "--seed", "5", "--memory", "64MiB"});
  }

  std::string at(const char* name) const { return (folder / name).native(); }
  void write(const char* name, int64_t rows, float step, int64_t dim = 24) const {
    std::vector<float> numbers(size_t(rows * dim));
    for (size_t i = 0; i < numbers.size(); ++i) {
      numbers[i] = std::sin(step * float(i * i % 4999)) + float(i / size_t(dim) % 7);
    }
    write_npy(at(name), DType::f32, {rows, dim}, std::as_bytes(std::span(numbers)));
  }
  std::string failure(Words words, int status = 1) const {
    const CommandResult result = run_command(words);
    EXPECT_EQ(result.status, status);
    return result.err.substr(0, result.err.find('\n'));
  }

  TempFolder folder;
  const std::string index = at("vectors.tsr");
  CommandResult built;
};

TEST(LatticeCommands, GoFromVectorsToResults) {
  const Files files;
  ASSERT_EQ(files.built.status, 0) << files.built.err;
  EXPECT_NE(files.built.out.find(": 3000 vectors of 24, 30 anchors, 8 bits, "), std::string::npos);
  EXPECT_NE(files.built.out.find("\nrecall@10   "), std::string::npos) << files.built.out;

  const Words search = {"search", files.index, files.at("queries.npy"), "-k", "5"};
  Words words = search;
  words.insert(words.end(), {"--nprobe", "30", "--json"});
  const Json found = Json::parse(run_command(words).out, "search");
  ASSERT_EQ(found.at("queries").as_array().size(), 30u);
  EXPECT_EQ(found.at("queries").at(size_t(0)).at("ids").as_array().size(), 5u);

  words = search;
  words.insert(words.end(), {"--nprobe", "30", "-o", files.at("ids.ivecs")});
  EXPECT_EQ(run_command(words).out, "30 queries, 5 results each, nprobe 30\n");
  const VectorFile ids = VectorFile::open(files.at("ids.ivecs"));
  EXPECT_EQ(ids.rows(), 30);
  std::vector<float> first(5);
  ids.read(0, 1, first.data());
  EXPECT_EQ(int64_t(first[0]),
            found.at("queries").at(size_t(0)).at("ids").at(size_t(0)).as_int("id"));

  // Measured by the vectors themselves, the best comes first.
  words = search;
  words.insert(words.end(), {"--nprobe", "30", "--data", files.at("vectors.npy"), "--json"});
  const Json exact = Json::parse(run_command(words).out, "search");
  const Json& distances = exact.at("queries").at(size_t(3)).at("distances");
  EXPECT_LE(distances.at(size_t(0)).as_double("d"), distances.at(size_t(4)).as_double("d"));

  const Json eval = Json::parse(run_command({"eval", files.index, "--data", files.at("vectors.npy"),
                                             "--queries", files.at("queries.npy"), "--json"})
                                    .out,
                                "eval");
  const Json& last = eval.at("rows").as_array().back();
  EXPECT_EQ(last.get<int64_t>("nprobe"), 30);
  EXPECT_GE(last.get<double>("recall_at_10"), 0.95);
  EXPECT_EQ(eval.get<int64_t>("k"), 10);
}

TEST(LatticeCommands, EvalTimesAndCountsTheKAskedFor) {
  const Files files;
  const Words words = {"eval", files.index, "--data", files.at("vectors.npy"),
                       "-k",   "25",        "--json"};
  const Json eval = Json::parse(run_command(words).out, "eval");
  EXPECT_EQ(eval.get<int64_t>("k"), 25);
  for (const Json& row : eval.at("rows").as_array()) {
    for (const char* depth : {"recall_at_1", "recall_at_10", "recall_at_25", "recall_at_100"}) {
      EXPECT_GT(row.get<double>(depth), 0) << depth;
    }
    EXPECT_GT(row.get<double>("query_seconds"), 0);
  }
  const std::string text = run_command({"eval", files.index, "--data", files.at("vectors.npy"),
                                        "--queries", files.at("queries.npy"), "-k", "100"})
                               .out;
  EXPECT_NE(text.find(", 30 queries, timed with k = 100\n"
                      "nprobe  recall@1  recall@10  recall@100     QPS  one query\n"),
            std::string::npos)
      << text;
  // Fewer vectors than k: all of them.
  files.write("few.npy", 12, 0.2f);
  const std::string few = files.at("few.npy"), index = files.at("few.tsr");
  ASSERT_EQ(run_command({"compress", few, "-o", index, "--anchors", "2"}).status, 0);
  const Json all =
      Json::parse(run_command({"eval", index, "--data", few, "-k", "1000", "--json"}).out, "eval");
  EXPECT_EQ(all.get<int64_t>("k"), 11);  // each without itself
  EXPECT_EQ(all.at("rows").as_array().back().get<double>("recall_at_11"), 1);
}

TEST(LatticeCommands, SplitPlanes) {
  const Files files;
  const std::string split = files.at("split.tsr"), vectors = files.at("vectors.npy");
  ASSERT_EQ(run_command({"compress", vectors, "-o", split, "--anchors", "30", "--bits", "8",
                         "--seed", "5", "--planes", "split"})
                .status,
            0);
  EXPECT_NE(run_command({"info", split}).out.find(", split planes\n"), std::string::npos);
  EXPECT_EQ(
      Json::parse(run_command({"info", split, "--json"}).out, "info").get<std::string>("planes"),
      "split");
  const auto found = [&](const std::string& index) {
    return run_command({"search", index, files.at("queries.npy"), "-k", "5", "--nprobe", "30"}).out;
  };
  EXPECT_EQ(found(split), found(files.index));
  EXPECT_EQ(files.failure({"compress", vectors, "-o", split, "--bits", "1", "--planes", "split"}),
            "tessera: compress: split planes need at least 2 bits, got 1");
}

TEST(LatticeCommands, EvalDrawsAPage) {
  const Files files;
  const std::string page = files.at("eval.html");
  const Words words = {"eval",   files.index, "--data", files.at("vectors.npy"),
                       "--html", page,        "--json"};
  const Json eval = Json::parse(run_command(words).out, "eval");
  const std::string html = read_text(page);
  EXPECT_TRUE(html.starts_with("<!DOCTYPE html>")) << html;
  const auto count = [&](std::string_view part) {
    size_t met = 0;
    for (size_t at = html.find(part); at != html.npos; at = html.find(part, at + 1)) ++met;
    return met;
  };
  // Recall at three depths, and the speed of one at a time.
  EXPECT_EQ(count("<svg "), 2u);
  EXPECT_EQ(count("<rect "), 4 * eval.at("rows").as_array().size());
  for (const Json& row : eval.at("rows").as_array()) {
    std::ostringstream label;
    label << std::fixed << std::setprecision(3) << row.get<double>("recall_at_10") << " at nprobe "
          << row.get<int64_t>("nprobe") << "<";
    EXPECT_GE(count(label.str()), 1u) << label.str();
  }
  for (const char* part : {"http", "<script", "<link", "src="}) EXPECT_EQ(count(part), 0u) << part;
  EXPECT_EQ(run_command({"eval", files.index, "--data", files.at("vectors.npy"), "--html",
                         files.at("none/eval.html")})
                .out,
            "");  // nothing was measured
}

// 3 anchors of 2 dimensions and 4 points, as the Voronoi lattice compressor wrote it.
TEST(LatticeCommands, ImportAnOldIndex) {
  const TempFolder folder;
  const std::string from = (folder / "old.idx").native(), to = (folder / "new.tsr").native();
  std::string file("\x41\x43\x4C\x56\1\0\3\0\0\0\2\0\0\0\4\0\0\0\0", 19);
  file += std::string("\0\x3C\0\0\0\0\0\x3C\0\xBC\0\0", 12);  // (1, 0), (0, 1), (-1, 0)
  file += std::string("\2\0\0\0\0\0\0\0\2\0\0\0\1\0\0\0", 16);
  write_text(from, file);
  EXPECT_EQ(run_command({"maintain", "import", from, "-o", to}).out,
            "imported 4 vectors of 2 dimensions in 3 cells, without codes: a search ranks cells, "
            "not vectors\n");
  const std::vector<float> query = {-3, 1};
  write_npy(folder / "q.npy", DType::f32, {1, 2}, std::as_bytes(std::span(query)));
  const Json found = Json::parse(
      run_command({"search", to, (folder / "q.npy").native(), "-k", "4", "--json"}).out, "search");
  const Json& ids = found.at("queries").at(size_t(0)).at("ids");
  std::vector<int64_t> order;
  for (size_t i = 0; i < 4; ++i) order.push_back(ids.at(i).as_int("id"));
  EXPECT_EQ(order, (std::vector<int64_t>{0, 2, 3, 1}));
  EXPECT_EQ(run_command({"maintain", "import", from}).err,
            "tessera: maintain: expected import FILE -o INDEX\ntry 'tessera maintain --help'\n");
}

std::vector<float> rows_of(const std::string& path) {
  const VectorFile file = VectorFile::open(path);
  std::vector<float> rows(size_t(file.rows() * file.dim()));
  file.read(0, file.rows(), rows.data());
  return rows;
}

// The share of ids (n, 10) that are no farther than the true tenth, by brute force.
double true_recall(std::span<const float> rows, std::span<const float> queries,
                   std::span<const float> ids) {
  constexpr size_t kDim = 24, kDepth = 10;
  size_t hits = 0;
  for (size_t q = 0; q < queries.size() / kDim; ++q) {
    std::vector<double> all(rows.size() / kDim, 0);
    for (size_t i = 0; i < all.size(); ++i) {
      for (size_t j = 0; j < kDim; ++j) {
        all[i] += std::pow(double(rows[i * kDim + j]) - double(queries[q * kDim + j]), 2);
      }
    }
    std::vector<double> sorted = all;
    std::nth_element(sorted.begin(), sorted.begin() + kDepth - 1, sorted.end());
    for (size_t i = 0; i < kDepth; ++i) {
      const float id = ids[q * kDepth + i];  // -1: nothing found
      hits += id >= 0 && all[size_t(id)] <= sorted[kDepth - 1] * 1.001;
    }
  }
  return double(hits) / double(ids.size());
}

// The word of --recall, on queries that it has not seen; and one cell alone would not keep it.
TEST(LatticeCommands, RecallIsKept) {
  const Files files;
  const auto recall = [&](const char* option, const char* value) {
    Words words = {"search", files.index, files.at("queries.npy"), option,
                   value,    "-o",        files.at("ids.ivecs")};
    if (std::string_view(option) == "--recall") {
      words.insert(words.end(), {"--data", files.at("vectors.npy")});
    }
    EXPECT_EQ(run_command(words).status, 0);
    return true_recall(rows_of(files.at("vectors.npy")), rows_of(files.at("queries.npy")),
                       rows_of(files.at("ids.ivecs")));
  };
  const double kept = recall("--recall", "0.9"), of_one_cell = recall("--nprobe", "1");
  EXPECT_GE(kept, 0.85) << "300 results: a deviation is about 0.02";
  EXPECT_LT(of_one_cell, kept);
}

TEST(LatticeCommands, MaintainAnIndex) {
  const Files files;
  EXPECT_EQ(run_command({"maintain", "delete", files.index, "3", "17", "999999"}).out,
            "deleted 2 of 3 ids\n");
  EXPECT_EQ(run_command({"maintain", "add", files.index, files.at("queries.npy")}).out,
            "added 30 vectors, ids 3000 to 3029\n");
  const Json info = Json::parse(run_command({"info", files.index, "--json"}).out, "info");
  EXPECT_EQ(info.get<int64_t>("vectors"), 3028);
  EXPECT_EQ(info.get<int64_t>("stored"), 3030);
  EXPECT_EQ(info.get<std::string>("metric"), "l2");
  // 24 dimensions of 8 bits and two factors; 30 anchors of 24 f16.
  const Json& parts = info.at("parts");
  EXPECT_EQ(parts.get<int64_t>("codes"), 3030 * (24 + 4));
  EXPECT_EQ(parts.get<int64_t>("anchors"), 30 * 24 * 2);
  int64_t sum = 0;
  for (const char* part : {"codes", "ids", "anchors", "transform", "tables"}) {
    EXPECT_GT(parts.get<int64_t>(part), 0) << part;
    sum += parts.get<int64_t>(part);
  }
  EXPECT_EQ(sum, info.get<int64_t>("bytes"));
  EXPECT_NE(run_command({"info", files.index})
                .out.find("vectors     3028 of 24 dimensions, l2, "
                          "and 2 dead ones\n"),
            std::string::npos);
  EXPECT_EQ(run_command({"maintain", "compact", files.index}).status, 0);
  EXPECT_EQ(run_command({"maintain", "verify", files.index}).out.substr(0, 26),
            "all is well: 3028 vectors ");
  EXPECT_EQ(run_command({"maintain", "export", files.index, "-o", files.at("back.npy")}).out,
            "wrote 3028 vectors\n");
  EXPECT_EQ(VectorFile::open(files.at("back.npy")).rows(), 3028);
  EXPECT_EQ(run_command(
                {"maintain", "add", files.index, files.at("queries.npy"), "--first", "3000000000"})
                .status,
            0);
  files.write("one.npy", 1, 0.11f);  // the first query, which has that id
  EXPECT_EQ(files
                .failure({"search", files.index, files.at("one.npy"), "-k", "10", "--nprobe", "30",
                          "-o", files.at("ids.ivecs")})
                .substr(0, 55),
            "tessera: search: an .ivecs file cannot hold the id 3000");
}

TEST(LatticeCommands, SayWhatIsWrong) {
  const Files files;
  files.write("narrow.npy", 4000, 0.3f, 8);
  const std::string narrow = files.at("narrow.npy"), vectors = files.at("vectors.npy");
  EXPECT_EQ(files.failure({"search", files.index, narrow}),
            "tessera: search: the index has vectors of 24 dimensions, the queries have 8");
  EXPECT_EQ(files.failure({"maintain", "add", files.index, narrow}),
            "tessera: maintain: the index has vectors of 24 dimensions, the file has 8");
  EXPECT_EQ(files.failure({"eval", files.index, "--data", narrow}),
            "tessera: eval: the index was not made of these vectors");
  EXPECT_EQ(files.failure({"eval", files.index, "--data", vectors, "--queries", narrow}),
            "tessera: eval: the vectors have 24 dimensions, the queries 8");
  const std::pair<Words, std::string> calls[] = {
      {{"compress"}, "compress: expected one file of vectors, got 0"},
      {{"compress", vectors, "--bits", "9"},
       "compress: --bits expects a number from 0 to 8, got '9'"},
      {{"compress", vectors, "--memory", "much"},
       "compress: --memory expects a size like 512MiB, got 'much'"},
      {{"search", files.index}, "search: expected an index and a file of queries, got 1 word"},
      {{"search", files.index, vectors, "--recall", "0.9"},
       "search: --recall needs the original vectors: --data FILE"},
      {{"search", files.index, vectors, "--recall", "2", "--data", vectors},
       "search: --recall expects a number above 0, up to 1, got '2'"},
      {{"info"}, "info: expected one index, got 0"},
      {{"eval", files.index}, "eval: expected one index and --data FILE"},
      {{"eval", files.index, "--data", vectors, "-k", "1001"},
       "eval: -k expects a number from 1 to 1000, got '1001'"},
      {{"maintain", "add", files.index}, "maintain: expected add INDEX VECTORS"},
      {{"maintain", "delete", files.index, "x"}, "maintain: expected an id, got 'x'"},
      {{"maintain", "grow"},
       "maintain: expected add, delete, compact, verify, export or import, got grow"},
  };
  for (const auto& [words, text] : calls) EXPECT_EQ(files.failure(words, 2), "tessera: " + text);
}

}  // namespace
}  // namespace tessera
