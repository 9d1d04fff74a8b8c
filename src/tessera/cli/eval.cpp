#include <iomanip>
#include <ostream>
#include <set>
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
    {"-k", "N", "results of the searches that are timed, 1 to 1000 (default: 10)"},
    kMemoryOption,
    kDimOption,
    kDTypeOption,
    kTensorOption,
    {"--json", "", "the result as a JSON document"},
    {"--html", "FILE", "write a page with charts that needs no network"},
};

constexpr std::string_view kExamples[] = {
    "tessera eval vectors.tsr --data vectors.npy",
    "tessera eval vectors.tsr --data vectors.npy --queries queries.npy -k 20 --json",
    "tessera eval vectors.tsr --data vectors.npy --html eval.html",
};

constexpr int64_t kSampledQueries = 200;
constexpr int64_t kDepths[] = {1, 10, 100};

struct Row {
  int32_t nprobe;
  std::vector<double> recalls;  // (depths)
  double batch_qps, query_seconds;
};

struct Report {
  int64_t k = 0;                // of the searches that are timed
  std::vector<int64_t> depths;  // kDepths and k, as far as there are so many vectors; ascending
  int64_t queries = 0;
  double bytes = 0;  // a vector
  std::vector<Row> rows;
};

lattice::GroundTruth truth_of(const Arguments& arguments, const VectorFile& data,
                              lattice::Metric metric, int64_t depth) {
  const int64_t room = memory(arguments, "eval") / 8;
  if (!arguments.has("--queries")) {
    return lattice::sampled_truth(data, metric, kSampledQueries, depth, 1, room);
  }
  const VectorFile file = open_vectors(arguments, arguments.value("--queries", ""));
  if (file.dim() != data.dim()) {
    fail("eval: the vectors have ", data.dim(), " dimensions, the queries ", file.dim());
  }
  std::vector<float> queries(size_t(file.rows() * file.dim()));
  file.read(0, file.rows(), queries.data());
  return lattice::ground_truth(data, metric, queries, depth, room);
}

std::string to_text(const Report& report) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(1) << report.bytes << " bytes a vector, " << report.queries
      << " queries, timed with k = " << report.k << "\nnprobe";
  std::vector<int> widths;
  for (const int64_t depth : report.depths) {
    const std::string title = cat("  recall@", depth);
    widths.push_back(int(title.size()));
    out << title;
  }
  out << "     QPS  one query\n";
  for (const Row& row : report.rows) {
    out << std::setw(6) << row.nprobe << std::setprecision(3);
    for (size_t i = 0; i < widths.size(); ++i) out << std::setw(widths[i]) << row.recalls[i];
    out << std::setw(8) << std::setprecision(0);
    row.batch_qps > 0 ? out << row.batch_qps : out << "";
    out << std::setw(8) << std::setprecision(3) << row.query_seconds * 1e3 << " ms\n";
  }
  return out.str();
}

std::string to_json(const Report& report) {
  Json::Array all;
  for (const Row& row : report.rows) {
    Json one = Json().set("nprobe", row.nprobe);
    for (size_t i = 0; i < row.recalls.size(); ++i) {
      one.set(cat("recall_at_", report.depths[i]), row.recalls[i]);
    }
    one.set("qps", row.batch_qps > 0 ? Json(row.batch_qps) : Json());
    one.set("query_seconds", row.query_seconds);
    all.push_back(std::move(one));
  }
  return Json()
             .set("bytes_per_vector", report.bytes)
             .set("queries", report.queries)
             .set("k", report.k)
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

std::string to_html(const Report& report, const std::string& index) {
  const std::vector<Row>& rows = report.rows;
  std::vector<bench::BarGroup> recalls, speeds;
  for (size_t i = 0; i < report.depths.size(); ++i) {
    recalls.push_back(bars(
        cat("recall@", report.depths[i]), "own", rows,
        [i](const Row& row) { return row.recalls[i]; }, 3));
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
      cat(bench::element("pre", to_text(report)), "\n<h2>recall</h2>\n<div class=\"scroll\">",
          bench::bar_chart("recall by cells looked into, longer is better", recalls),
          "</div>\n<h2>speed</h2>\n<div class=\"scroll\">",
          bench::bar_chart("speed by cells looked into, longer is faster", speeds), "</div>\n"));
}

// Recall at every depth by nprobe, and how fast searches for report.k are.
void measure_rows(Report& report, const lattice::VectorIndex& index, const VectorFile& data,
                  const lattice::GroundTruth& truth, Progress& progress) {
  const int32_t cells = index.snapshot().info().cells();
  for (int32_t nprobe = 1;; nprobe = std::min(2 * nprobe, cells)) {
    progress.show(cat("nprobe ", nprobe));
    Row row = {nprobe, {}, 0, 0};
    for (const int64_t depth : report.depths) {
      const lattice::Measured measured = lattice::measure(index, data, truth, depth, nprobe);
      row.recalls.push_back(measured.recall);
      if (depth != report.k) continue;
      row.batch_qps = measured.batch_qps;
      row.query_seconds = measured.query_seconds;
    }
    report.rows.push_back(std::move(row));
    if (nprobe == cells) break;
  }
}

Status run_eval(const Arguments& arguments, Console& console) {
  if (arguments.words.size() != 1 || !arguments.has("--data")) {
    throw UsageError("eval: expected one index and --data FILE");
  }
  const int64_t k = number(arguments, "eval", "-k", 10, 1, lattice::kMostResults);
  if (arguments.has("--html")) AtomicFile{arguments.value("--html", "")};  // that it can be written
  const lattice::VectorIndex index(arguments.words[0]);
  const VectorFile data = open_vectors(arguments, arguments.value("--data", ""));
  if (data.dim() != index.snapshot().info().dim || data.rows() <= index.snapshot().max_id()) {
    fail("eval: the index was not made of these vectors");
  }
  Progress progress(console);
  progress.show("comparing all vectors");
  std::set<int64_t> depths(std::begin(kDepths), std::end(kDepths));
  depths.insert(k);
  const lattice::GroundTruth truth =
      truth_of(arguments, data, index.snapshot().info().metric, *depths.rbegin());
  Report report;
  report.k = std::min(k, truth.k);
  depths.insert(report.k);
  for (const int64_t depth : depths) {
    if (depth >= 1 && depth <= truth.k) report.depths.push_back(depth);
  }
  report.queries = truth.count();
  const int64_t live = std::max<int64_t>(1, index.snapshot().live());
  report.bytes = double(index.snapshot().bytes()) / double(live);
  measure_rows(report, index, data, truth, progress);
  progress.clear();
  console.out << (arguments.has("--json") ? to_json(report) : to_text(report));
  if (arguments.has("--html")) {
    write_result(arguments.value("--html", ""), to_html(report, arguments.words[0]));
  }
  return Status::done;
}

}  // namespace

const Command kEval = {"eval",    "recall, size and speed of an index by cells looked into",
                       "INDEX",   kOptions,
                       kExamples, nullptr,
                       run_eval};

}  // namespace tessera::cli
