#include "tessera/lattice/vector_index.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>

#include "tessera/base/half.h"
#include "tessera/base/thread_pool.h"
#include "tessera/lattice/code_packer.h"
#include "tessera/lattice/index_file.h"
#include "tessera/lattice/index_writer.h"
#include "tessera/lattice/nearest.h"
#include "tessera/lattice/points.h"

namespace tessera::lattice {

namespace {

constexpr const char* kSpecBlob = "code spec";
constexpr const char* kDiagonalsBlob = "diagonals";

CodeSpec spec_of(const Snapshot& snapshot, const std::filesystem::path& path) {
  const auto& blobs = snapshot.info().blobs;
  const auto found = blobs.find(kSpecBlob);
  if (found == blobs.end()) {
    if (snapshot.info().block_bytes != 0) fail(path.native(), ": its codes are not described");
    return rotation_spec(snapshot.info().dim, 0, 0, 1);  // anchors alone
  }
  CodeSpec spec = code_spec_from_bytes(found->second);
  const int64_t bytes = spec.bits == 0 ? 0 : block_bytes(spec);
  const TailLayout tail = snapshot.info().tail;
  const bool fits = spec.planes ? tail == planes_layout(hot_bytes(spec))
                                : tail == TailLayout::padded || tail == TailLayout::registers;
  if (spec.dim != snapshot.info().dim || bytes != snapshot.info().block_bytes || !fits) {
    fail(path.native(), ": its codes are described wrongly");
  }
  return spec;
}

// As the file keeps them, f32 or f16; those are widened into `room`.
std::span<const float> diagonals_of(const Snapshot& snapshot, const std::filesystem::path& path,
                                    std::vector<float>& room) {
  const auto& blobs = snapshot.info().blobs;
  const auto found = blobs.find(kDiagonalsBlob);
  if (found == blobs.end()) return {};
  const size_t count = snapshot.info().anchors.size(), bytes = found->second.size();
  const bool halves = bytes == count * sizeof(f16), fits = halves || bytes == count * sizeof(float);
  std::span<const float> diagonals;
  if (halves) {
    const auto* numbers = reinterpret_cast<const f16*>(found->second.data());
    room.assign(numbers, numbers + count);
    diagonals = room;
  } else if (fits) {
    diagonals = {reinterpret_cast<const float*>(found->second.data()), count};
  }
  if (!fits || !std::ranges::all_of(diagonals, [](float x) { return x > 0 && x < 1e30f; })) {
    fail(path.native(), ": its diagonals are described wrongly");
  }
  return diagonals;
}

}  // namespace

IndexBlobs::IndexBlobs(const CodeSpec& spec, std::span<const float> diagonals)
    : spec_(to_bytes(spec)) {
  const auto keep = [this](std::span<const std::byte> bytes) {
    diagonals_.assign(bytes.begin(), bytes.end());
  };
  if (are_halves(diagonals)) {
    keep(std::as_bytes(std::span<const f16>(std::vector<f16>(diagonals.begin(), diagonals.end()))));
  } else {
    keep(std::as_bytes(diagonals));
  }
}

std::map<std::string, std::span<const std::byte>> IndexBlobs::all() const {
  std::map<std::string, std::span<const std::byte>> blobs = {{kSpecBlob, spec_}};
  if (!diagonals_.empty()) blobs[kDiagonalsBlob] = diagonals_;
  return blobs;
}

struct VectorIndex::State {
  explicit State(const std::filesystem::path& path_)
      : path(path_), file(path_), coder(spec_of(*file.snapshot(), path_)), packer(coder.spec()) {
    follow();
  }

  // Prepares what the newest snapshot holds. Lists are looked at when they are first searched.
  void follow() {
    snapshot = file.snapshot();
    const auto cells = size_t(snapshot->info().cells());
    views.assign(cells, {});
    looked = std::make_unique<std::once_flag[]>(cells);
    SearchIndex index;
    index.coder = &coder;
    index.metric = snapshot->info().metric;
    index.anchors = snapshot->info().anchors;
    index.diagonals = diagonals_of(*snapshot, path, widened);
    index.lists = [this](int32_t cell) { return std::span<const ListView>(lists(cell)); };
    index.ids = [this](int32_t cell, std::span<int64_t> ids) {
      const std::vector<int64_t> found = snapshot->live_ids(cell);
      std::copy(found.begin(), found.end(), ids.begin());
    };
    index.id = [this](int32_t cell, int64_t position) {
      auto part = snapshot->parts(cell).begin();
      for (; position >= part->count(); ++part) position -= part->count();
      return part->ids()[position];
    };
    searcher = std::make_unique<Searcher>(std::move(index));
  }

  const std::vector<ListView>& lists(int32_t cell) {
    const auto at = size_t(cell);
    std::call_once(looked[at], [&] {
      std::vector<ListView> found;
      for (const ListPart& part : snapshot->parts(cell)) {
        if (coder.spec().bits == 0) {
          found.push_back({part.count(), nullptr});
          continue;
        }
        const std::span<const std::byte> whole = part.blocks();
        const int64_t in_whole =
            std::min(part.count(), int64_t(whole.size()) / packer.block_bytes() * kBlock);
        if (in_whole > 0) found.push_back({in_whole, whole.data()});
        if (in_whole < part.count()) found.push_back({part.count() - in_whole, part.tail()});
      }
      views[at] = std::move(found);
    });
    return views[at];
  }

  void change(const std::function<void(IndexWriter&)>& work) {
    {
      IndexWriter writer(path, packer);
      work(writer);
    }
    file.refresh();
    follow();
  }

  // Cells and codes of vectors (n, dim).
  void encode(std::span<const float> vectors, std::vector<int32_t>& cells,
              std::vector<std::byte>& packed) const;

  const std::filesystem::path path;
  IndexFile file;
  const Coder coder;
  const CodePacker packer;
  std::shared_ptr<const Snapshot> snapshot;
  std::vector<float> widened;                // diagonals that the file keeps as f16
  std::vector<std::vector<ListView>> views;  // (cells)
  std::unique_ptr<std::once_flag[]> looked;  // (cells)
  std::unique_ptr<Searcher> searcher;
};

void VectorIndex::State::encode(std::span<const float> vectors, std::vector<int32_t>& cells,
                                std::vector<std::byte>& packed) const {
  const IndexInfo& info = snapshot->info();
  const auto dim = size_t(info.dim), n = vectors.size() / dim;
  std::vector<float> rows(vectors.begin(), vectors.end());
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!std::isfinite(rows[i])) {
      fail("index: vector ", i / dim, " holds a number that is not finite");
    }
  }
  prepare_points(info.metric, rows, info.dim);
  cells.resize(n);
  std::vector<float> distances(n);
  NearestAnchors(info.anchors, info.dim).find(rows, cells, distances);
  packed.resize(n * size_t(packer.vector_bytes()));
  if (packed.empty()) return;
  const std::span<const float> diagonals = searcher->index().diagonals;
  thread_pool().parallel_for(int64_t(n), 16, [&](int64_t begin, int64_t end) {
    const auto padded = size_t(coder.spec().padded_dim);
    std::vector<float> residual(padded);
    for (auto i = size_t(begin); i < size_t(end); ++i) {
      const size_t cell = size_t(cells[i]);
      std::fill(residual.begin(), residual.end(), 0.f);
      for (size_t j = 0; j < dim; ++j)
        residual[j] = rows[i * dim + j] - info.anchors[cell * dim + j];
      coder.transform(residual.data());
      const std::vector<float> diagonal =
          diagonals.empty() ? std::vector<float>()
                            : padded_row(coder.spec(), diagonals.subspan(cell * dim, dim));
      std::byte* const to = packed.data() + i * size_t(packer.vector_bytes());
      const std::span<uint8_t> codes(reinterpret_cast<uint8_t*>(to), padded);
      const Encoded encoded = coder.encode(residual, diagonal, codes);
      const CodeFactors factors = {encoded.n2, encoded.g, encoded.hot};
      std::memcpy(to + padded, &factors, sizeof factors);
    }
  });
}

VectorIndex::VectorIndex(const std::filesystem::path& path)
    : state_(std::make_unique<State>(path)) {}
VectorIndex::~VectorIndex() = default;
VectorIndex::VectorIndex(VectorIndex&&) noexcept = default;
VectorIndex& VectorIndex::operator=(VectorIndex&&) noexcept = default;

const Snapshot& VectorIndex::snapshot() const { return *state_->snapshot; }
const CodeSpec& VectorIndex::spec() const { return state_->coder.spec(); }
const std::filesystem::path& VectorIndex::path() const { return state_->path; }

bool VectorIndex::refresh() {
  if (!state_->file.refresh()) return false;
  state_->follow();
  return true;
}

namespace {

// Sorted ids, and -1 among those denied: dead vectors have that.
struct Filters {
  Filters(const QueryOptions& options, bool has_dead) : allow(options.allow), deny(options.deny) {
    if (has_dead) deny.push_back(-1);
    std::ranges::sort(allow);
    std::ranges::sort(deny);
    allowed = IdSet::sorted(allow);
    denied = IdSet::sorted(deny);
  }
  void set(SearchOptions& to) const {
    if (!allow.empty()) to.allow = &allowed;
    if (!deny.empty()) to.deny = &denied;
  }

  std::vector<int64_t> allow, deny;
  IdSet allowed = IdSet::sorted({}), denied = IdSet::sorted({});
};

}  // namespace

SearchResult VectorIndex::search(std::span<const float> queries,
                                 const QueryOptions& options) const {
  const Filters filters(options, snapshot().has_dead());
  SearchOptions inner;
  inner.k = options.k;
  inner.nprobe = options.nprobe;
  inner.rerank = options.rerank;
  filters.set(inner);
  if (const VectorFile* file = options.originals) {
    if (file->dim() != snapshot().info().dim) {
      fail("search: expected original vectors of ", snapshot().info().dim, " dimensions, got ",
           file->dim());
    }
    if (file->rows() <= snapshot().max_id()) {
      fail("search: the index has the id ", snapshot().max_id(), ", the original vectors only ",
           file->rows(), " rows");
    }
    inner.original = [file, metric = snapshot().info().metric](int64_t id, std::span<float> to) {
      file->read(id, id + 1, to.data());
      prepare_points(metric, to, file->dim(), id);
    };
  }
  return state_->searcher->search(queries, inner);
}

RangeResult VectorIndex::range_search(std::span<const float> queries, float radius,
                                      const QueryOptions& options) const {
  const Filters filters(options, snapshot().has_dead());
  SearchOptions inner;
  inner.nprobe = options.nprobe;
  filters.set(inner);
  return state_->searcher->range_search(queries, radius, inner);
}

void VectorIndex::add(std::span<const int64_t> ids, std::span<const float> vectors) {
  std::vector<int32_t> cells;
  std::vector<std::byte> packed;
  state_->encode(vectors, cells, packed);
  state_->change([&](IndexWriter& writer) {
    writer.add(cells, ids, packed);
    writer.commit();
  });
}

void VectorIndex::upsert(std::span<const int64_t> ids, std::span<const float> vectors) {
  std::vector<int32_t> cells;
  std::vector<std::byte> packed;
  state_->encode(vectors, cells, packed);
  state_->change([&](IndexWriter& writer) {
    writer.upsert(cells, ids, packed);
    writer.commit();
  });
}

void VectorIndex::erase(std::span<const int64_t> ids) {
  state_->change([&](IndexWriter& writer) {
    writer.erase(ids);
    writer.commit();
  });
}

void VectorIndex::compact() {
  state_->change([](IndexWriter& writer) { writer.compact(); });
}

std::vector<float> VectorIndex::decode(int64_t id) const {
  const std::optional<Snapshot::Location> at = snapshot().find(id);
  if (!at) fail("index: there is no vector with the id ", id);
  const IndexInfo& info = snapshot().info();
  const auto dim = size_t(info.dim), cell = size_t(at->cell);
  const std::span<const float> anchor = info.anchors.subspan(cell * dim, dim);
  if (spec().bits == 0) return {anchor.begin(), anchor.end()};
  const std::span<const float> diagonals = state_->searcher->index().diagonals;
  const std::vector<float> diagonal = diagonals.empty()
                                          ? std::vector<float>()
                                          : padded_row(spec(), diagonals.subspan(cell * dim, dim));
  const std::span<const ListPart> parts = snapshot().parts(at->cell);
  const auto part = std::ranges::find(parts, at->segment, &ListPart::segment);
  TESSERA_ASSERT(part != parts.end());
  return state_->coder.decode(part->block(at->position / kBlock, info.block_bytes),
                              at->position % kBlock, anchor, diagonal);
}

}  // namespace tessera::lattice
