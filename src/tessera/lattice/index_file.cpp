#include "tessera/lattice/index_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <mutex>

namespace tessera::lattice {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kDoing = "index: cannot read";

struct stat status_of(const Descriptor& file, const fs::path& path) {
  struct stat status = {};
  if (::fstat(file.get(), &status) != 0) fail_system(kDoing, path, errno);
  return status;
}

Descriptor open_to_read(const fs::path& path) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.valid()) fail_system(kDoing, path, errno);
  if (!S_ISREG(status_of(file, path).st_mode)) {
    fail(kDoing, " '", path.native(), "': not a regular file");
  }
  return file;
}

using Segments = std::vector<std::shared_ptr<const Segment>>;

// The segments of `record` that are not in `known`, found from the newest back.
Segments load_segments(const IndexHead& head, std::shared_ptr<const MappedRange> file,
                       const CommitRecord& record, const Snapshot* known, Segments segments) {
  Segment::Frame frame;
  frame.cells = head.info.cells();
  frame.block_bytes = head.info.block_bytes;
  frame.tail = head.info.tail;
  frame.begin = known == nullptr ? head.end : known->bytes();
  frame.end = record.length;
  frame.footer = record.footer;
  frame.footer_sum = record.footer_sum;
  const size_t before = segments.size();  // those of `known`
  if (record.segments < before || (record.segments == 0) != (record.footer == 0) ||
      record.segments - before > uint64_t(frame.end - frame.begin) / sizeof(SegmentFooter)) {
    refuse_index(head.name, "its commit record speaks of ", record.segments, " segments");
  }
  segments.resize(record.segments);
  for (size_t s = segments.size(); s-- > before;) {
    frame.number = uint32_t(s);
    segments[s] = std::make_shared<Segment>(file, frame, head.name);
    const SegmentFooter& footer = segments[s]->footer();
    frame.end = footer.begin;
    frame.footer = footer.previous;
    frame.footer_sum = footer.previous_sum;
  }
  if (before > 0 && frame.footer_sum != segments[before - 1]->footer().sum) {
    refuse_index(head.name, "its segments are not those that were read before");
  }
  return segments;
}

}  // namespace

struct IndexFile::State {
  explicit State(const fs::path& from)
      : path(from), name("'" + from.native() + "'"), file(open_to_read(from)) {
    const CommitRecord record = read_record(file, name);
    const auto mapped = map(0, record);
    head = std::make_shared<IndexHead>(read_head(mapped, name));
    snapshot = std::make_shared<Snapshot>(
        head, record, load_segments(*head, mapped, record, nullptr, {}), nullptr);
  }

  std::shared_ptr<const MappedRange> map(int64_t begin, const CommitRecord& record) const {
    const int64_t size = status_of(file, path).st_size;
    if (size < record.length || record.length < begin) {
      refuse_index(name, "expected ", record.length, " bytes, got ", size, ": it is cut short");
    }
    return std::make_shared<MappedRange>(file, begin, record.length, path);
  }

  bool is_replaced() const {
    struct stat now = {};
    if (::stat(path.c_str(), &now) != 0) fail_system(kDoing, path, errno);
    const struct stat ours = status_of(file, path);
    return now.st_ino != ours.st_ino || now.st_dev != ours.st_dev;
  }

  bool extend() {
    const CommitRecord record = read_record(file, name);
    if (record.generation <= snapshot->generation()) return false;
    const auto tail = map(snapshot->bytes(), record);
    auto segments = load_segments(*head, tail, record, snapshot.get(), snapshot->segments_);
    snapshot = std::make_shared<Snapshot>(head, record, std::move(segments), snapshot.get());
    return true;
  }

  fs::path path;
  std::string name;
  Descriptor file;
  std::shared_ptr<const IndexHead> head;
  std::shared_ptr<const Snapshot> snapshot;
  std::mutex mutex;
};

IndexFile::IndexFile(const fs::path& path) : state_(std::make_unique<State>(path)) {}
IndexFile::~IndexFile() = default;
IndexFile::IndexFile(IndexFile&&) noexcept = default;
IndexFile& IndexFile::operator=(IndexFile&&) noexcept = default;

std::shared_ptr<const Snapshot> IndexFile::snapshot() const {
  const std::lock_guard lock(state_->mutex);
  return state_->snapshot;
}

bool IndexFile::refresh() {
  const std::lock_guard lock(state_->mutex);
  if (!state_->is_replaced()) return state_->extend();
  State fresh(state_->path);
  state_->file = std::move(fresh.file);
  state_->head = std::move(fresh.head);
  state_->snapshot = std::move(fresh.snapshot);
  return true;
}

}  // namespace tessera::lattice
