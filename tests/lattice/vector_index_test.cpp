// From a file of vectors to an index that is searched and changed.
#include "tessera/lattice/vector_index.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "io/temp_folder.h"
#include "support/expect_error.h"
#include "tessera/base/philox.h"
#include "tessera/lattice/build_index.h"
#include "tessera/lattice/code_packer.h"
#include "tessera/lattice/index_writer.h"
#include "tessera/lattice/recall.h"

namespace tessera::lattice {
namespace {

constexpr int64_t kDim = 24;

// A mixture of 40 bumps, the same for the same seed.
std::vector<float> mixture(int64_t n, uint64_t seed) {
  std::vector<float> rows(size_t(n * kDim));
  const auto draw = [](uint64_t key, int64_t i) {
    return philox_uniform(i, int64_t(key), 0) - 0.5f;
  };
  for (int64_t i = 0; i < n; ++i) {
    const auto bump = int64_t(philox_uniform(i, int64_t(seed), 1000) * 40);
    for (int64_t j = 0; j < kDim; ++j) {
      rows[size_t(i * kDim + j)] =
          8 * draw(77, bump * kDim + j) + draw(seed + 5, i * kDim + j) * (j < 8 ? 2.f : 0.7f);
    }
  }
  return rows;
}

std::filesystem::path write_raw(const TempFolder& folder, std::span<const float> rows) {
  const std::filesystem::path path = folder / "vectors.fbin";
  const uint32_t head[] = {uint32_t(rows.size() / kDim), uint32_t(kDim)};
  std::string bytes(reinterpret_cast<const char*>(head), sizeof head);
  bytes.append(reinterpret_cast<const char*>(rows.data()), rows.size_bytes());
  write_text(path, bytes);
  return path;
}

Originals originals(std::span<const float> rows) {
  return [rows](int64_t id, std::span<float> to) {
    std::copy_n(rows.begin() + id * kDim, kDim, to.begin());
  };
}

double recall_of(const VectorIndex& index, std::span<const float> rows,
                 std::span<const float> queries, const QueryOptions& options) {
  const Metric metric = index.snapshot().info().metric;
  const SearchResult found = index.search(queries, options);
  const std::vector<float> nearest = true_nearest(metric, kDim, rows, queries, options.k);
  const std::vector<float> distances =
      true_distances(metric, kDim, queries, found.ids, originals(rows));
  return recall(metric, options.k, distances, nearest, options.k);
}

struct Built {
  Built(const BuildOptions& options, int64_t n = 3000)
      : rows(mixture(n, 1)), queries(mixture(60, 2)), path(folder / "vectors.tsr") {
    source = write_raw(folder, rows);
    report = build_index(VectorFile::open(source), path, options);
  }

  TempFolder folder;
  std::vector<float> rows, queries;
  std::filesystem::path source, path;
  BuildReport report;
};

BuildOptions options_of(int32_t bits, Metric metric = Metric::l2) {
  BuildOptions options;
  options.anchors.anchors = 30;
  options.bits = bits;
  options.metric = metric;
  options.seed = 3;
  return options;
}

TEST(VectorIndex, FindsWhatBruteForceFinds) {
  for (const Metric metric : {Metric::l2, Metric::inner_product}) {
    for (const int32_t bits : {1, 4, 8}) {
      SCOPED_TRACE(cat(name(metric), " ", bits));
      const Built built(options_of(bits, metric));
      const VectorIndex index(built.path);
      const double found = recall_of(index, built.rows, built.queries, {.k = 10, .nprobe = 30});
      EXPECT_GE(found, bits == 1 ? 0.45 : bits == 4 ? 0.87 : 0.98);  // few dimensions: large errors
      const VectorFile file = VectorFile::open(built.source);
      const QueryOptions exact = {.k = 10, .nprobe = 30, .originals = &file, .rerank = 20};
      EXPECT_GE(recall_of(index, built.rows, built.queries, exact), bits == 1 ? 0.93 : 0.99);
      EXPECT_EQ(built.report.file_bytes, int64_t(std::filesystem::file_size(built.path)));
      EXPECT_EQ(built.report.rows, 3000);
    }
  }
}

double plain_cosine(std::span<const float> a, std::span<const float> b) {
  double ab = 0, aa = 0, bb = 0;
  for (size_t j = 0; j < a.size(); ++j) {
    ab += double(a[j]) * b[j];
    aa += double(a[j]) * a[j];
    bb += double(b[j]) * b[j];
  }
  return ab / std::sqrt(aa * bb);
}

// Neither queries nor vectors have length 1: distances are cosines all the same, estimated and
// measured, the highest first.
TEST(VectorIndex, CosinesAreCosines) {
  const Built built(options_of(8, Metric::cosine));
  const VectorIndex index(built.path);
  const VectorFile file = VectorFile::open(built.source);
  for (const VectorFile* originals : {static_cast<const VectorFile*>(nullptr), &file}) {
    const QueryOptions options = {.k = 5, .nprobe = 30, .originals = originals, .rerank = 8};
    const SearchResult found = index.search(built.queries, options);
    EXPECT_GE(recall_of(index, built.rows, built.queries, options), originals ? 0.99 : 0.97);
    for (size_t i = 0; i < found.ids.size(); ++i) {
      const double expected =
          plain_cosine(std::span(built.queries).subspan(i / 5 * kDim, kDim),
                       std::span(built.rows).subspan(size_t(found.ids[i]) * kDim, kDim));
      EXPECT_NEAR(found.distances[i], expected, originals ? 1e-6 : 1e-2) << i;
      if (i % 5 > 0) EXPECT_LE(found.distances[i], found.distances[i - 1]);
    }
  }
}

// Nothing was deleted: what compacting writes is what was there.
TEST(VectorIndex, CompactingKeepsEverything) {
  const Built built(options_of(4));
  VectorIndex index(built.path);
  const QueryOptions options = {.k = 20, .nprobe = 30};
  const SearchResult before = index.search(built.queries, options);
  const int64_t bytes = index.snapshot().bytes();
  index.compact();
  index.snapshot().verify();
  EXPECT_EQ(index.snapshot().bytes(), bytes);
  const SearchResult after = index.search(built.queries, options);
  EXPECT_EQ(before.ids, after.ids);
  EXPECT_EQ(before.distances, after.distances);
}

// The same bytes from a memory that holds all and from one that takes many passes.
TEST(VectorIndex, IsTheSameForAnyMemory) {
  BuildOptions options = options_of(4);
  options.transform = TransformMode::rotation;
  const TempFolder folder;
  const std::vector<float> rows = mixture(60000, 1);
  const VectorFile file = VectorFile::open(write_raw(folder, rows));
  options.anchors.seeding_points = 8;
  options.anchors.iterations = 3;
  build_index(file, folder / "one.tsr", options);
  options.memory = int64_t(16) << 20;  // half of it: less than the vectors and the lists
  build_index(file, folder / "many.tsr", options);
  const auto one = VectorIndex(folder / "one.tsr").search(mixture(20, 2), {.k = 5, .nprobe = 30});
  const auto many = VectorIndex(folder / "many.tsr").search(mixture(20, 2), {.k = 5, .nprobe = 30});
  EXPECT_EQ(one.ids, many.ids);
  EXPECT_EQ(read_text(folder / "one.tsr"), read_text(folder / "many.tsr"));
}

TEST(VectorIndex, TransformsMayBeChosen) {
  for (const TransformMode mode : {TransformMode::rotation, TransformMode::pca}) {
    BuildOptions options = options_of(2);
    options.transform = mode;
    const Built built(options);
    EXPECT_EQ(built.report.is_pca, mode == TransformMode::pca);
    const VectorIndex index(built.path);
    EXPECT_GE(recall_of(index, built.rows, built.queries, {.k = 10, .nprobe = 30}), 0.6);
    const std::vector<float> decoded = index.decode(17);
    // The code takes away most of what the anchor leaves.
    const int32_t cell = index.snapshot().find(17)->cell;
    double error = 0, residual = 0;
    for (size_t j = 0; j < size_t(kDim); ++j) {
      const float x = built.rows[17 * kDim + j];
      error += std::pow(decoded[j] - x, 2);
      residual += std::pow(index.snapshot().info().anchors[size_t(cell) * kDim + j] - x, 2);
    }
    EXPECT_LT(error, 0.3 * residual);
  }
}

TEST(VectorIndex, AnchorsAloneAreAnIndexToo) {
  const Built built(options_of(0));
  const VectorIndex index(built.path);
  const SearchResult found = index.search(built.queries, {.k = 3, .nprobe = 4});
  EXPECT_EQ(found.ids.size(), 180u);
  EXPECT_GE(found.ids[0], 0);
  EXPECT_EQ(index.decode(5).size(), size_t(kDim));
  EXPECT_LT(built.report.file_bytes, built.report.vector_bytes / 8);
}

TEST(VectorIndex, ChangesAreSearchedAtOnce) {
  Built built(options_of(8));
  VectorIndex index(built.path);
  const VectorIndex other(built.path);
  const std::vector<float> query(built.rows.begin() + 40 * kDim, built.rows.begin() + 41 * kDim);
  const auto nearest = [&](const VectorIndex& of, const QueryOptions& options) {
    return of.search(query, options).ids[0];
  };
  EXPECT_EQ(nearest(index, {.k = 1, .nprobe = 30}), 40);
  index.erase(std::vector<int64_t>{40});
  EXPECT_NE(nearest(index, {.k = 1, .nprobe = 30}), 40);
  EXPECT_EQ(nearest(other, {.k = 1, .nprobe = 30}), 40) << "a reader keeps what it has";
  index.add(std::vector<int64_t>{5000}, query);
  EXPECT_EQ(nearest(index, {.k = 1, .nprobe = 30}), 5000);
  std::vector<float> far(query);
  for (float& x : far) x += 9;
  index.upsert(std::vector<int64_t>{5000}, far);
  EXPECT_NE(nearest(index, {.k = 1, .nprobe = 30}), 5000);
  index.upsert(std::vector<int64_t>{40}, query);
  EXPECT_EQ(nearest(index, {.k = 1, .nprobe = 30}), 40);
  EXPECT_NE(nearest(index, {.k = 1, .nprobe = 30, .deny = {40}}), 40);
  EXPECT_EQ(nearest(index, {.k = 1, .nprobe = 1, .allow = {7}}), 7) << "probes are widened";
  const double before = recall_of(index, built.rows, built.queries, {.k = 10, .nprobe = 30});
  index.compact();
  EXPECT_FALSE(index.snapshot().has_dead());
  EXPECT_EQ(index.snapshot().live(), 3001);
  EXPECT_EQ(recall_of(index, built.rows, built.queries, {.k = 10, .nprobe = 30}), before);
  const RangeResult range = index.range_search(query, 0.5f, {.nprobe = 30});
  EXPECT_GE(range.ids.size(), 1u);
  EXPECT_EQ(range.ids[0], 40);
}

TEST(VectorIndex, SaysWhatIsWrong) {
  const Built built(options_of(4));
  const VectorFile file = VectorFile::open(built.source);
  BuildOptions options = options_of(9);
  EXPECT_EQ(error_text([&] { build_index(file, built.folder / "x.tsr", options); }),
            "compress: expected bits from 0 to 8, got 9");
  options = options_of(4);
  options.memory = 1000;
  EXPECT_EQ(error_text([&] { build_index(file, built.folder / "x.tsr", options); }),
            "compress: expected a memory of at least 16777216 bytes, got 1000");
  EXPECT_FALSE(std::filesystem::exists(built.folder / "x.tsr"));
  VectorIndex index(built.path);
  EXPECT_EQ(error_text([&] { index.decode(9999); }), "index: there is no vector with the id 9999");
  std::vector<float> wrong(size_t(kDim), NAN);
  EXPECT_EQ(error_text([&] { index.add(std::vector<int64_t>{4000}, wrong); }),
            "index: vector 0 holds a number that is not finite");
  const std::vector<float> few = mixture(10, 4);
  const TempFolder other;
  const VectorFile short_file = VectorFile::open(write_raw(other, few));
  EXPECT_EQ(error_text([&] { index.search(built.queries, {.originals = &short_file}); }),
            "search: the index has the id 2999, the original vectors only 10 rows");
  VectorFileOptions raw;
  raw.dim = 8;
  write_text(other / "other.raw", std::string(3000 * 32, '\0'));
  const VectorFile narrow = VectorFile::open(other / "other.raw", raw);
  EXPECT_EQ(error_text([&] { index.search(built.queries, {.originals = &narrow}); }),
            "search: expected original vectors of 24 dimensions, got 8");
}

// Blobs that lie, though their checksums are right.
TEST(VectorIndex, ChecksHowCodesAreDescribed) {
  const TempFolder folder;
  const std::vector<float> anchors(size_t(4 * kDim), 1.f);
  const CodeSpec spec = rotation_spec(int32_t(kDim), 4, 1, 1.0),
                 other = rotation_spec(16, 4, 1, 1.0);
  const auto write = [&](const char* file, const CodeSpec* described,
                         std::span<const float> diagonals) {
    IndexInfo info;
    info.dim = int32_t(kDim);
    info.block_bytes = block_bytes(spec);
    info.anchors = anchors;
    const IndexBlobs blobs(described == nullptr ? spec : *described, diagonals);
    if (described != nullptr) info.blobs = blobs.all();
    write_index(folder / file, info);
    return error_text([&] { VectorIndex index(folder / file); });
  };
  EXPECT_EQ(write("a.tsr", nullptr, {}),
            (folder / "a.tsr").native() + ": its codes are not described");
  EXPECT_EQ(write("b.tsr", &other, {}),
            (folder / "b.tsr").native() + ": its codes are described wrongly");
  const std::vector<float> few(3, 1.f);
  EXPECT_EQ(write("c.tsr", &spec, few),
            (folder / "c.tsr").native() + ": its diagonals are described wrongly");
}

TEST(CodePacker, GivesBackWhatItTook) {
  const CodeSpec spec = rotation_spec(int32_t(kDim), 5, 1, 1.0);
  const CodePacker packer(spec);
  std::vector<std::byte> vector(size_t(packer.vector_bytes()));
  for (size_t i = 0; i < size_t(kDim); ++i) vector[i] = std::byte(i * 7 % 32);
  const CodeFactors factors = round_factors(spec, {1.25f, 0.5f});
  std::memcpy(vector.data() + spec.padded_dim, &factors, sizeof factors);
  std::vector<std::byte> block(size_t(packer.block_bytes())), back(vector.size());
  packer.pack(block.data(), 19, vector);
  packer.unpack(block.data(), 19, back);
  EXPECT_EQ(back, vector);
}

}  // namespace
}  // namespace tessera::lattice
