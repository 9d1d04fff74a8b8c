#include <iomanip>
#include <ostream>
#include <sstream>

#include "tessera/bench/format.h"
#include "tessera/bench/html.h"
#include "tessera/bench/svg.h"
#include "tessera/cli/command.h"
#include "tessera/cli/lattice_words.h"
#include "tessera/io/atomic_file.h"
#include "tessera/io/json.h"
#include "tessera/lattice/measure.h"

namespace tessera::cli {

namespace {

constexpr Option kOptions[] = {
    {"--data", "FILE", "the vectors that the index was made of; needed"},
    {"--queries", "FILE", "queries (default: 200 of the vectors, each without itself)"},
    kMemoryOption,
    kDimOption,
    kDTypeOption,
    kTensorOption,
    {"--json", "", "the result as a JSON document"},
    {"--html", "FILE", "write a page with charts that needs no network"},
};

constexpr std::string_view kExamples[] = {
    "tessera eval vectors.tsr --data vectors.npy",
    "tessera eval vectors.tsr --data vectors.npy --queries queries.npy --json",
    "tessera eval vectors.tsr --data vectors.npy --html eval.html",
};

constexpr int64_t kSampledQueries = 200;
constexpr int64_t kDepths[] = {1, 10, 100};

struct Row {
  int32_t nprobe;
  std::vector<double> recalls;  // at kDepths, as far as there are so many vectors
  double batch_qps, query_seconds;
};

lattice::GroundTruth truth_of(const Arguments& arguments, const VectorFile& data,
                              lattice::Metric metric) {
  const int64_t room = memory(arguments, "eval") / 8;
  if (!arguments.has("--queries")) {
    return lattice::sampled_truth(data, metric, kSampledQueries, 100, 1, room);
  }
  const VectorFile file = open_vectors(arguments, arguments.value("--queries", ""));
  if (file.dim() != data.dim()) {
    fail("eval: the vectors have ", data.dim(), " dimensions, the queries ", file.dim());
  }
  std::vector<float> queries(size_t(file.rows() * file.dim()));
  file.read(0, file.rows(), queries.data());
  return lattice::ground_truth(data, metric, queries, 100, room);
}

std::string to_text(const std::vector<Row>& rows, int64_t queries, double bytes) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(1) << bytes << " bytes a vector, " << queries
      << " queries\n"
      << "nprobe  recall@1  recall@10  recall@100     QPS  one query\n";
  for (const Row& row : rows) {
    out << std::setw(6) << row.nprobe;
    for (size_t i = 0; i < 3; ++i) {
      out << std::setw(i == 0 ? 10 : i == 1 ? 11 : 12) << std::setprecision(3);
      i < row.recalls.size() ? out << row.recalls[i] : out << "";
    }
    out << std::setw(8) << std::setprecision(0);
    row.batch_qps > 0 ? out << row.batch_qps : out << "";
    out << std::setw(8) << std::setprecision(3) << row.query_seconds * 1e3 << " ms\n";
  }
  return out.str();
}

std::string to_json(const std::vector<Row>& rows, int64_t queries, double bytes) {
  Json::Array all;
  for (const Row& row : rows) {
    Json one = Json().set("nprobe", row.nprobe);
    for (size_t i = 0; i < row.recalls.size(); ++i) {
      one.set(cat("recall_at_", kDepths[i]), row.recalls[i]);
    }
    one.set("qps", row.batch_qps > 0 ? Json(row.batch_qps) : Json());
    one.set("query_seconds", row.query_seconds);
    all.push_back(std::move(one));
  }
  return Json()
             .set("bytes_per_vector", bytes)
             .set("queries", queries)
             .set("rows", std::move(all))
             .dump(2) +
         "\n";
}

// A bar for each nprobe.
template <class Value>
bench::BarGroup bars(std::string title, const char* css_class, const std::vector<Row>& rows,
                     Value value, int digits) {
  bench::BarGroup group{std::move(title), {}};
  for (const Row& row : rows) {
    const double number = value(row);
    group.bars.push_back(
        {css_class, cat(bench::fixed(number, digits), " at nprobe ", row.nprobe), number});
  }
  return group;
}

std::string to_html(const std::vector<Row>& rows, const std::string& index,
                    const std::string& text) {
  std::vector<bench::BarGroup> recalls, speeds;
  for (size_t i = 0; i < rows.front().recalls.size(); ++i) {
    recalls.push_back(bars(
        cat("recall@", kDepths[i]), "own", rows, [i](const Row& row) { return row.recalls[i]; },
        3));
  }
  if (rows.front().batch_qps > 0) {
    speeds.push_back(bars(
        "queries a second, all at once", "gpu", rows, [](const Row& row) { return row.batch_qps; },
        0));
  }
  speeds.push_back(bars(
      "queries a second, one at a time", "gpu", rows,
      [](const Row& row) { return 1 / row.query_seconds; }, 0));
  return bench::page(
      cat("tessera eval ", index),
      cat(bench::element("pre", text), "\n<h2>recall</h2>\n<div class=\"scroll\">",
          bench::bar_chart("recall by cells looked into, longer is better", recalls),
          "</div>\n<h2>speed</h2>\n<div class=\"scroll\">",
          bench::bar_chart("speed by cells looked into, longer is faster", speeds), "</div>\n"));
}

Status run_eval(const Arguments& arguments, Console& console) {
  if (arguments.words.size() != 1 || !arguments.has("--data")) {
    throw UsageError("eval: expected one index and --data FILE");
  }
  if (arguments.has("--html")) AtomicFile{arguments.value("--html", "")};  // that it can be written
  const lattice::VectorIndex index(arguments.words[0]);
  const VectorFile data = open_vectors(arguments, arguments.value("--data", ""));
  if (data.dim() != index.snapshot().info().dim || data.rows() <= index.snapshot().max_id()) {
    fail("eval: the index was not made of these vectors");
  }
  Progress progress(console);
  progress.show("comparing all vectors");
  const lattice::GroundTruth truth = truth_of(arguments, data, index.snapshot().info().metric);
  std::vector<Row> rows;
  const int32_t cells = index.snapshot().info().cells();
  for (int32_t nprobe = 1;; nprobe = std::min(2 * nprobe, cells)) {
    progress.show(cat("nprobe ", nprobe));
    Row row = {nprobe, {}, 0, 0};
    for (const int64_t k : kDepths) {
      if (k > truth.k) continue;
      const lattice::Measured measured = lattice::measure(index, data, truth, k, nprobe);
      row.recalls.push_back(measured.recall);
      if (k > 10) continue;
      row.batch_qps = measured.batch_qps;
      row.query_seconds = measured.query_seconds;
    }
    rows.push_back(std::move(row));
    if (nprobe == cells) break;
  }
  progress.clear();
  const int64_t live = std::max<int64_t>(1, index.snapshot().live());
  const double bytes = double(index.snapshot().bytes()) / double(live);
  const std::string text = to_text(rows, truth.count(), bytes);
  console.out << (arguments.has("--json") ? to_json(rows, truth.count(), bytes) : text);
  if (arguments.has("--html")) {
    write_result(arguments.value("--html", ""), to_html(rows, arguments.words[0], text));
  }
  return Status::done;
}

}  // namespace

const Command kEval = {"eval",    "recall, size and speed of an index by cells looked into",
                       "INDEX",   kOptions,
                       kExamples, nullptr,
                       run_eval};

}  // namespace tessera::cli
