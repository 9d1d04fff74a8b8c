#include <iomanip>
#include <ostream>
#include <sstream>

#include "tessera/bench/format.h"
#include "tessera/cli/command.h"
#include "tessera/cli/lattice_words.h"
#include "tessera/io/json.h"
#include "tessera/lattice/build_index.h"
#include "tessera/lattice/measure.h"

namespace tessera::cli {

namespace {

constexpr Option kOptions[] = {
    {"-o", "FILE", "the index to write (default: beside the vectors, .tsr)"},
    {"--anchors", "N", "cells (default: one for 64 vectors, at most 1024)"},
    {"--bits", "B", "a dimension, 0 to 8; 0: anchors alone (default: 4)"},
    {"--metric", "l2|inner_product|cosine", "how vectors are compared (default: l2)"},
    {"--transform", "auto|rotation|pca", "of the residuals (default: auto)"},
    {"--planes", "whole|split", "split: the top bit apart, for single queries (default: whole)"},
    {"--training", "anneal|lloyd|mini_batch", "of the anchors (default: anneal)"},
    {"--iterations", "N", "of the training, at most (default: 25)"},
    {"--seed", "N", "of everything that is drawn (default: 0)"},
    kMemoryOption,
    kDimOption,
    kDTypeOption,
    kTensorOption,
    {"--json", "", "the result as a JSON document"},
};

constexpr std::string_view kExamples[] = {
    "tessera compress vectors.npy -o vectors.tsr --anchors 64 --bits 4",
    "tessera compress vectors.npy --anchors 64 --bits 8 --metric cosine --json",
};

constexpr int64_t kSampledQueries = 100;

lattice::Metric metric_of(const std::string& text) {
  using lattice::Metric;
  return text == "cosine" ? Metric::cosine : text == "l2" ? Metric::l2 : Metric::inner_product;
}

lattice::BuildOptions build_options(const Arguments& arguments, int64_t rows) {
  using lattice::Training;
  using lattice::TransformMode;
  lattice::BuildOptions options;
  const int64_t fewer = std::max<int64_t>(1, std::min<int64_t>(1024, rows / 64));
  options.anchors.anchors = number(arguments, "compress", "--anchors", fewer, 1, 1 << 24);
  options.anchors.iterations = number(arguments, "compress", "--iterations", 25, 0, 1000000);
  const std::string training = arguments.value("--training", "anneal");
  options.anchors.training = training == "lloyd"    ? Training::lloyd
                             : training == "anneal" ? Training::anneal
                                                    : Training::mini_batch;
  options.bits = int32_t(number(arguments, "compress", "--bits", 4, 0, 8));
  options.metric = metric_of(arguments.value("--metric", "l2"));
  const std::string transform = arguments.value("--transform", "auto");
  options.transform = transform == "pca"    ? TransformMode::pca
                      : transform == "auto" ? TransformMode::automatic
                                            : TransformMode::rotation;
  options.split_planes = arguments.value("--planes", "whole") == "split";
  options.seed = uint64_t(number(arguments, "compress", "--seed", 0, 0, INT64_MAX));
  options.memory = memory(arguments, "compress");
  return options;
}

std::string progress_text(const lattice::TrainingProgress& p) {
  std::ostringstream out;
  out << std::setprecision(4) << "training " << p.iteration << ": T " << p.temperature
      << ", energy " << p.energy << ", moved " << p.moved << ", anchors " << p.anchors << ", "
      << std::setprecision(3) << p.points_per_second * 1e-6 << " M points/s";
  return out.str();
}

struct Result {
  lattice::BuildReport report;
  lattice::Measured measured;
  int64_t queries = 0;
  int32_t nprobe = 0;
  double ratio() const { return double(report.file_bytes) / double(report.vector_bytes); }
};

std::string to_text(const Result& r, const lattice::BuildOptions& options,
                    const std::string& path) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(1);
  out << path << ": " << r.report.rows << " vectors of " << r.report.dim << ", " << r.report.cells
      << " anchors, " << options.bits << " bits, "
      << (r.report.is_pca ? "principal axes" : "random rotation") << "\n";
  out << "training    " << r.report.iterations << " iterations"
      << (r.report.converged ? " until quiet" : "") << ", "
      << bench::time_text(r.report.train_seconds) << "\n";
  out << "transform   " << bench::time_text(r.report.transform_seconds) << "\n";
  out << "encoding    " << bench::time_text(r.report.encode_seconds) << "\n";
  out << "size        " << size_text(r.report.file_bytes) << " of "
      << size_text(r.report.vector_bytes) << ", " << 100 * r.ratio() << " %, "
      << double(r.report.file_bytes) / double(r.report.rows) << " bytes a vector\n";
  if (r.queries > 0) {
    out << std::setprecision(3) << "recall@10   " << r.measured.recall << " at --nprobe "
        << r.nprobe << " (" << r.queries << " of the vectors, each without itself)\n";
  }
  return out.str();
}

std::string to_json(const Result& r, const std::string& path) {
  return Json()
             .set("file", path)
             .set("rows", r.report.rows)
             .set("dim", r.report.dim)
             .set("anchors", r.report.cells)
             .set("iterations", r.report.iterations)
             .set("converged", r.report.converged)
             .set("pca", r.report.is_pca)
             .set("bytes", r.report.file_bytes)
             .set("ratio", r.ratio())
             .set("train_seconds", r.report.train_seconds)
             .set("transform_seconds", r.report.transform_seconds)
             .set("encode_seconds", r.report.encode_seconds)
             .set("nprobe", r.nprobe)
             .set("recall_at_10", r.queries > 0 ? Json(r.measured.recall) : Json())
             .dump(2) +
         "\n";
}

Status run_compress(const Arguments& arguments, Console& console) {
  if (arguments.words.size() != 1) {
    throw UsageError(cat("compress: expected one file of vectors, got ", arguments.words.size()));
  }
  const std::string& input = arguments.words[0];
  const std::string output =
      arguments.value("-o", std::filesystem::path(input).replace_extension(".tsr").native());
  const VectorFile vectors = open_vectors(arguments, input);
  const lattice::BuildOptions options = build_options(arguments, vectors.rows());
  Result result;
  {
    Progress progress(console);
    result.report = lattice::build_index(
        vectors, output, options,
        [&](const lattice::TrainingProgress& p) { progress.show(progress_text(p)); },
        [&](const lattice::BuildProgress& p) {
          const bool assigns = p.phase == lattice::BuildProgress::Phase::assign;
          progress.show(cat(assigns ? "cells " : "codes ", p.done, " of ", p.rows));
        });
    progress.show("measuring recall");
    const lattice::GroundTruth truth = lattice::sampled_truth(
        vectors, options.metric, kSampledQueries, 10, options.seed + 2, options.memory / 8);
    const lattice::VectorIndex index(output);
    result.queries = truth.count();
    result.nprobe = int32_t(std::min<int64_t>(32, result.report.cells));
    if (result.queries > 0 && truth.k == 10) {
      result.measured = lattice::measure(index, vectors, truth, 10, result.nprobe);
    } else {
      result.queries = 0;
    }
  }
  console.out << (arguments.has("--json") ? to_json(result, output)
                                          : to_text(result, options, output));
  return Status::done;
}

}  // namespace

const Command kCompress = {"compress",  "compress vectors into an index that can be searched",
                           "VECTORS",   kOptions,
                           kExamples,   nullptr,
                           run_compress};

}  // namespace tessera::cli
