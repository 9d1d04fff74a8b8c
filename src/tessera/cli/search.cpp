#include <cstring>
#include <ostream>

#include "tessera/cli/command.h"
#include "tessera/cli/lattice_words.h"
#include "tessera/io/atomic_file.h"
#include "tessera/io/json.h"
#include "tessera/lattice/measure.h"

namespace tessera::cli {

namespace {

constexpr Option kOptions[] = {
    {"-k", "N", "results for each query, 1 to 1000 (default: 10)"},
    {"--nprobe", "N", "cells to look into (default: 32)"},
    {"--recall", "R", "instead: as few cells as give this recall; needs --data"},
    {"--data", "FILE", "the vectors that the index was made of: results are measured by them"},
    {"--rerank", "N", "with --data: so many times k candidates (default: 4)"},
    {"-o", "FILE", "write the ids to an .ivecs file instead of showing them"},
    kMemoryOption,
    kDimOption,
    kDTypeOption,
    kTensorOption,
    {"--json", "", "the result as a JSON document"},
};

constexpr std::string_view kExamples[] = {
    "tessera search vectors.tsr queries.npy -k 10 --nprobe 32",
    "tessera search vectors.tsr queries.npy -k 5 --recall 0.9 --data vectors.npy -o ids.ivecs",
};

constexpr int64_t kSampledQueries = 200;

void write_ivecs(const std::string& path, const lattice::SearchResult& found) {
  AtomicFile file(path);
  std::vector<int32_t> row(size_t(found.k) + 1, int32_t(found.k));
  for (size_t at = 0; at < found.ids.size(); at += size_t(found.k)) {
    for (size_t i = 0; i < size_t(found.k); ++i) {
      const int64_t id = found.ids[at + i];
      if (id > INT32_MAX) fail("search: an .ivecs file cannot hold the id ", id);
      row[i + 1] = int32_t(id);
    }
    file.write(std::as_bytes(std::span(row)));
  }
  file.commit();
}

std::string to_text(const lattice::SearchResult& found) {
  std::string text;
  const auto k = size_t(found.k);
  for (size_t at = 0; at < found.ids.size(); at += k) {
    text += cat(at / k, ":");
    for (size_t i = at; i < at + k && found.ids[i] >= 0; ++i) {
      text += cat(" ", found.ids[i], " (", found.distances[i], ")");
    }
    text += "\n";
  }
  return text;
}

std::string to_json(const lattice::SearchResult& found, int32_t nprobe) {
  Json::Array queries;
  const auto k = size_t(found.k);
  for (size_t at = 0; at < found.ids.size(); at += k) {
    Json::Array ids, distances;
    for (size_t i = at; i < at + k && found.ids[i] >= 0; ++i) {
      ids.emplace_back(found.ids[i]);
      distances.emplace_back(double(found.distances[i]));
    }
    queries.push_back(Json().set("ids", std::move(ids)).set("distances", std::move(distances)));
  }
  return Json().set("nprobe", nprobe).set("queries", std::move(queries)).dump(2) + "\n";
}

Status run_search(const Arguments& arguments, Console& console) {
  if (arguments.words.size() != 2) {
    throw UsageError(cat("search: expected an index and a file of queries, got ",
                         arguments.words.size(), arguments.words.size() == 1 ? " word" : " words"));
  }
  if (arguments.has("--recall") && !arguments.has("--data")) {
    throw UsageError("search: --recall needs the original vectors: --data FILE");
  }
  const lattice::VectorIndex index(arguments.words[0]);
  const VectorFile queries = open_vectors(arguments, arguments.words[1]);
  const int64_t dim = index.snapshot().info().dim;
  if (queries.dim() != dim) {
    fail("search: the index has vectors of ", dim, " dimensions, the queries have ", queries.dim());
  }
  lattice::QueryOptions options;
  options.k = number(arguments, "search", "-k", 10, 1, 1000);
  options.nprobe = int32_t(number(arguments, "search", "--nprobe", 32, 1, INT32_MAX));
  options.rerank = int32_t(number(arguments, "search", "--rerank", 4, 1, 1000));
  std::optional<VectorFile> data;
  if (arguments.has("--data")) {
    data.emplace(open_vectors(arguments, arguments.value("--data", "")));
  }
  if (arguments.has("--recall")) {
    const double target = fraction(arguments, "search", "--recall", 0.95);
    const lattice::GroundTruth truth =
        lattice::sampled_truth(*data, index.snapshot().info().metric, kSampledQueries, options.k, 1,
                               memory(arguments, "search") / 8);
    options.nprobe = lattice::nprobe_for(index, *data, truth, truth.k, target);
  } else if (data) {
    options.originals = &*data;
  }
  std::vector<float> rows(size_t(queries.rows() * dim));
  queries.read(0, queries.rows(), rows.data());
  const lattice::SearchResult found = index.search(rows, options);
  if (arguments.has("-o")) {
    write_ivecs(arguments.value("-o", ""), found);
    console.out << cat(queries.rows(), " queries, ", found.k, " results each, nprobe ",
                       options.nprobe, "\n");
  } else {
    console.out << (arguments.has("--json") ? to_json(found, options.nprobe) : to_text(found));
  }
  return Status::done;
}

}  // namespace

const Command kSearch = {"search",        "find the nearest vectors of an index",
                         "INDEX QUERIES", kOptions,
                         kExamples,       nullptr,
                         run_search};

}  // namespace tessera::cli
