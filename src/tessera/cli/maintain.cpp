#include <algorithm>
#include <charconv>
#include <numeric>
#include <ostream>

#include "tessera/cli/command.h"
#include "tessera/cli/lattice_words.h"
#include "tessera/io/npy.h"
#include "tessera/lattice/vector_index.h"
#include "tessera/lattice/vlc_import.h"

namespace tessera::cli {

namespace {

constexpr Option kOptions[] = {
    {"--first", "ID", "add: the id of the first vector (default: behind the highest)"},
    {"--replace", "", "add: vectors take the place of those that have their ids"},
    {"-o", "FILE", "export: the .npy file to write; import: the index"},
    kDimOption,
    kDTypeOption,
    kTensorOption,
};

constexpr std::string_view kExamples[] = {
    "tessera maintain add vectors.tsr queries.npy",
    "tessera maintain delete vectors.tsr 3 17",
    "tessera maintain compact vectors.tsr",
    "tessera maintain verify vectors.tsr",
    "tessera maintain export vectors.tsr -o decoded.npy",
};

std::string topics() {
  return cat(
      "actions:\n", help_line("add INDEX VECTORS", "vectors of a file, as one commit"),
      help_line("delete INDEX ID ...", "vectors, as one commit"),
      help_line("compact INDEX", "rewrite the file without what was deleted"),
      help_line("verify INDEX", "read everything and check it"),
      help_line("export INDEX", "the vectors that the codes stand for, by id, as .npy"),
      help_line("import FILE", "a .idx file of the Voronoi lattice compressor, as an index"));
}

constexpr int64_t kRowsAtATime = 65536;

std::string add(const Arguments& arguments, lattice::VectorIndex& index, const std::string& path) {
  const VectorFile vectors = open_vectors(arguments, path);
  const int64_t dim = index.snapshot().info().dim;
  if (vectors.dim() != dim) {
    fail("maintain: the index has vectors of ", dim, " dimensions, the file has ", vectors.dim());
  }
  const int64_t first = number(arguments, "maintain", "--first", index.snapshot().max_id() + 1, 0,
                               INT64_MAX - vectors.rows());
  std::vector<float> rows;
  std::vector<int64_t> ids;
  for (int64_t begin = 0; begin < vectors.rows(); begin += kRowsAtATime) {
    const int64_t end = std::min(vectors.rows(), begin + kRowsAtATime);
    rows.resize(size_t((end - begin) * dim));
    ids.resize(size_t(end - begin));
    std::iota(ids.begin(), ids.end(), first + begin);
    vectors.read(begin, end, rows.data());
    arguments.has("--replace") ? index.upsert(ids, rows) : index.add(ids, rows);
  }
  return cat("added ", vectors.rows(), " vectors, ids ", first, " to ", first + vectors.rows() - 1,
             "\n");
}

std::string erase(lattice::VectorIndex& index, std::span<const std::string> words) {
  std::vector<int64_t> ids;
  for (const std::string& word : words) {
    int64_t id = 0;
    const auto [end, code] = std::from_chars(word.data(), word.data() + word.size(), id);
    if (code != std::errc() || end != word.data() + word.size() || id < 0) {
      throw UsageError(cat("maintain: expected an id, got '", word, "'"));
    }
    ids.push_back(id);
  }
  const int64_t before = index.snapshot().live();
  index.erase(ids);
  return cat("deleted ", before - index.snapshot().live(), " of ", ids.size(), " ids\n");
}

std::string export_vectors(const lattice::VectorIndex& index, const std::string& path) {
  const lattice::Snapshot& snapshot = index.snapshot();
  std::vector<int64_t> ids;
  for (int32_t cell = 0; cell < snapshot.info().cells(); ++cell) {
    for (const int64_t id : snapshot.live_ids(cell)) {
      if (id >= 0) ids.push_back(id);
    }
  }
  std::ranges::sort(ids);
  std::vector<float> rows;
  for (const int64_t id : ids) {
    const std::vector<float> row = index.decode(id);
    rows.insert(rows.end(), row.begin(), row.end());
  }
  write_npy(path, DType::f32, {int64_t(ids.size()), snapshot.info().dim},
            std::as_bytes(std::span(rows)));
  return cat("wrote ", ids.size(), " vectors\n");
}

std::string import_index(const std::string& from, const std::string& to) {
  lattice::import_vlc(from, to);
  const lattice::VectorIndex index(to);
  return cat("imported ", index.snapshot().live(), " vectors of ", index.snapshot().info().dim,
             " dimensions in ", index.snapshot().info().cells(),
             " cells, without codes: a search ranks cells, not vectors\n");
}

Status run_maintain(const Arguments& arguments, Console& console) {
  const std::vector<std::string>& words = arguments.words;
  const std::string action = words.empty() ? "nothing" : words[0];
  const auto expect = [&](bool right, const char* form) {
    if (!right) throw UsageError(cat("maintain: expected ", form));
  };
  std::string text;
  if (action == "add") {
    expect(words.size() == 3, "add INDEX VECTORS");
    lattice::VectorIndex index(words[1]);
    text = add(arguments, index, words[2]);
  } else if (action == "delete") {
    expect(words.size() >= 3, "delete INDEX ID ...");
    lattice::VectorIndex index(words[1]);
    text = erase(index, std::span(words).subspan(2));
  } else if (action == "compact") {
    expect(words.size() == 2, "compact INDEX");
    lattice::VectorIndex index(words[1]);
    const int64_t before = index.snapshot().bytes();
    index.compact();
    text = cat(size_text(before), " before, ", size_text(index.snapshot().bytes()), " now\n");
  } else if (action == "verify") {
    expect(words.size() == 2, "verify INDEX");
    const auto totals = lattice::VectorIndex(words[1]).snapshot().verify();
    text = cat("all is well: ", totals.live, " vectors in ", totals.lists, " lists, ",
               size_text(totals.bytes), "\n");
  } else if (action == "export") {
    expect(words.size() == 2 && arguments.has("-o"), "export INDEX -o FILE");
    text = export_vectors(lattice::VectorIndex(words[1]), arguments.value("-o", ""));
  } else if (action == "import") {
    expect(words.size() == 2 && arguments.has("-o"), "import FILE -o INDEX");
    text = import_index(words[1], arguments.value("-o", ""));
  } else {
    throw UsageError(
        cat("maintain: expected add, delete, compact, verify, export or import, got ", action));
  }
  console.out << text;
  return Status::done;
}

}  // namespace

const Command kMaintain = {"maintain",
                           "change, check or export an index",
                           "ACTION INDEX [...]",
                           kOptions,
                           kExamples,
                           topics,
                           run_maintain};

}  // namespace tessera::cli
