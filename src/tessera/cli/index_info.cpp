#include <algorithm>
#include <iomanip>
#include <ostream>
#include <sstream>

#include "tessera/cli/command.h"
#include "tessera/cli/lattice_words.h"
#include "tessera/io/json.h"
#include "tessera/lattice/vector_index.h"

namespace tessera::cli {

namespace {

constexpr Option kOptions[] = {
    {"--json", "", "the result as a JSON document"},
};

constexpr std::string_view kExamples[] = {
    "tessera info vectors.tsr",
    "tessera info vectors.tsr --json",
};

struct Part {
  const char* what;
  int64_t bytes;
};

std::vector<Part> parts_of(const lattice::Snapshot& snapshot) {
  const lattice::Snapshot::Sizes sizes = snapshot.sizes();
  const int64_t rest = snapshot.bytes() - sizes.codes - sizes.ids - sizes.anchors - sizes.blobs;
  return {{"codes", sizes.codes},
          {"ids", sizes.ids},
          {"anchors", sizes.anchors},
          {"transform", sizes.blobs},
          {"tables", rest}};
}

Status run_info(const Arguments& arguments, Console& console) {
  if (arguments.words.size() != 1) {
    throw UsageError(cat("info: expected one index, got ", arguments.words.size()));
  }
  const lattice::VectorIndex index(arguments.words[0]);
  const lattice::Snapshot& snapshot = index.snapshot();
  const lattice::CodeSpec& spec = index.spec();
  const bool pca = spec.transform == lattice::TransformKind::pca;
  const double each = snapshot.live() == 0 ? 0 : double(snapshot.bytes()) / double(snapshot.live());
  if (arguments.has("--json")) {
    Json parts = Json::object();
    for (const auto& [what, bytes] : parts_of(snapshot)) parts.set(what, bytes);
    console.out << Json()
                       .set("vectors", snapshot.live())
                       .set("stored", snapshot.stored())
                       .set("dim", snapshot.info().dim)
                       .set("metric", name(snapshot.info().metric))
                       .set("anchors", snapshot.info().cells())
                       .set("bits", spec.bits)
                       .set("transform", pca ? "pca" : "rotation")
                       .set("planes", spec.planes ? "split" : "whole")
                       .set("segments", snapshot.segments())
                       .set("commits", int64_t(snapshot.generation()))
                       .set("bytes", snapshot.bytes())
                       .set("bytes_per_vector", each)
                       .set("parts", std::move(parts))
                       .dump(2)
                << "\n";
    return Status::done;
  }
  std::ostringstream out;
  out << std::fixed << std::setprecision(1);
  out << "vectors     " << snapshot.live() << " of " << snapshot.info().dim << " dimensions, "
      << name(snapshot.info().metric);
  if (snapshot.stored() > snapshot.live()) {
    out << ", and " << snapshot.stored() - snapshot.live() << " dead ones";
  }
  out << "\nanchors     " << snapshot.info().cells() << "\ncodes       ";
  if (spec.bits == 0) {
    out << "none\n";
  } else {
    out << spec.bits << " bits a dimension, " << (pca ? "principal axes" : "random rotation")
        << (spec.planes ? ", split planes" : "") << "\n";
  }
  out << "segments    " << snapshot.segments() << ", " << snapshot.generation() << " commits\n"
      << "size        " << size_text(snapshot.bytes()) << ", " << each << " bytes a vector\n";
  const char* before = "            ";
  for (const auto& [what, bytes] : parts_of(snapshot)) {
    out << before << what << " " << double(bytes) / double(std::max<int64_t>(1, snapshot.live()));
    before = ", ";
  }
  out << "\n";
  console.out << out.str();
  return Status::done;
}

}  // namespace

const Command kInfo = {"info",  "what an index holds", "INDEX", kOptions, kExamples, nullptr,
                       run_info};

}  // namespace tessera::cli
