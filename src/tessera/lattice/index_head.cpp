#include "tessera/lattice/index_head.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>
#include <thread>

#include "tessera/base/half.h"
#include "tessera/lattice/code_spec.h"
#include "tessera/lattice/segment.h"

namespace tessera::lattice {

namespace {

constexpr std::string_view kAnchors = "anchors";
constexpr size_t kMaxName = sizeof(SectionRow::name) - 1;
constexpr uint32_t kMaxSections = 1024;
constexpr int kAttempts = 20;

struct Section {
  std::string_view name;
  std::span<const std::byte> data;
};

std::vector<f16> halves_of(const IndexInfo& info) {
  if (!info.half_anchors) return {};
  return {info.anchors.begin(), info.anchors.end()};
}

// halves: the anchors where the file keeps them so.
std::vector<Section> sections_of(const IndexInfo& info, std::span<const f16> halves) {
  std::vector<Section> sections = {
      {kAnchors, info.half_anchors ? std::as_bytes(halves) : std::as_bytes(info.anchors)}};
  for (const auto& [name, data] : info.blobs) sections.push_back({name, data});
  return sections;
}

template <class T>
void copy_to(std::vector<std::byte>& bytes, int64_t at, const T& value) {
  std::ranges::copy(bytes_of_struct(value), bytes.begin() + at);
}

Preamble check_preamble(std::span<const std::byte> bytes, const std::string& name) {
  const auto preamble = read_struct<Preamble>(bytes);
  if (std::memcmp(preamble.magic, Preamble().magic, sizeof(preamble.magic)) != 0) {
    refuse_index(name, "expected an index file, got other leading bytes");
  }
  if (preamble.version < 1 || preamble.version > kIndexVersion) {
    refuse_index(name, "expected version 1 to ", kIndexVersion, " of the format, got ",
                 preamble.version);
  }
  if (!is_intact(preamble)) refuse_index(name, "its first 64 bytes are damaged");
  return preamble;
}

// The oldest version that can say it, for the sake of older readers.
uint32_t version_for(TailLayout tail, bool half_anchors) {
  if (tail > TailLayout::registers) return 3;
  return tail == TailLayout::padded && !half_anchors ? 1 : 2;
}

using Fixed = std::array<std::byte, size_t(kFixedBytes)>;

// The file's first bytes. Throws unless it begins as an index does.
Fixed read_fixed(const Descriptor& file, const std::string& name) {
  Fixed bytes = {};
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = ::pread(file.get(), bytes.data() + done, bytes.size() - done, off_t(done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) refuse_index(name, "cannot be read: ", std::generic_category().message(errno));
    if (n == 0) break;
    done += size_t(n);
  }
  check_preamble(bytes, name);
  if (done < bytes.size()) {
    refuse_index(name, "expected at least ", bytes.size(), " bytes, got ", done);
  }
  return bytes;
}

// The newer of the two slots; nothing where a slot has no intact copy.
std::optional<CommitRecord> newest_record(std::span<const std::byte> fixed) {
  std::optional<CommitRecord> newest;
  for (int slot = 0; slot < kRecords / 2; ++slot) {
    bool intact = false;
    for (const int copy : {slot, slot + kRecords / 2}) {
      const auto record = read_struct<CommitRecord>(fixed.subspan(size_t(record_at(copy))));
      if (!is_intact(record)) continue;
      intact = true;
      if (!newest || record.generation > newest->generation) newest = record;
    }
    if (!intact) return std::nullopt;
  }
  return newest;
}

std::vector<SectionRow> read_rows(const MappedRange& file, const Preamble& preamble,
                                  const std::string& name) {
  const int64_t bytes = int64_t(preamble.sections) * int64_t(sizeof(SectionRow));
  if (preamble.sections > kMaxSections || preamble.head_end > file.end() ||
      preamble.head_end < kFixedBytes + bytes) {
    refuse_index(name, "its section table does not fit the file");
  }
  const auto table = file.bytes(kFixedBytes, bytes);
  if (crc32c(table) != preamble.sections_sum) {
    refuse_index(name, "its section table is damaged: the checksum differs");
  }
  std::vector<SectionRow> rows(preamble.sections);
  std::ranges::copy(table, std::as_writable_bytes(std::span(rows)).begin());
  return rows;
}

Section read_section(const MappedRange& file, const SectionRow& row, int64_t head_end,
                     const std::string& name) {
  const std::string_view title(row.name, ::strnlen(row.name, kMaxName));
  if (row.at < kFixedBytes || row.at > head_end || row.bytes < 0 || row.bytes > head_end - row.at ||
      row.at % kAlignment != 0) {
    refuse_index(name, "section '", title, "' lies outside of the head");
  }
  const auto data = file.bytes(row.at, row.bytes);
  if (crc32c(data) != row.data_sum) {
    refuse_index(name, "section '", title, "' is damaged: the checksum differs");
  }
  return {title, data};
}

}  // namespace

void check_info(const IndexInfo& info) {
  const auto values = int64_t(info.anchors.size());
  if (info.dim < 1 || values == 0 || values % info.dim != 0 ||
      values / info.dim > std::numeric_limits<int32_t>::max()) {
    fail("index: expected anchors of (cells, dim), got ", values, " values for dim ", info.dim);
  }
  if (info.block_bytes < 0) {
    fail("index: expected blocks of at least 0 bytes, got ", info.block_bytes);
  }
  if (!is_layout_of(info.tail, info.block_bytes)) {
    fail("index: expected blocks that can be laid out as said, got ", info.block_bytes, " bytes");
  }
  const auto bad = std::ranges::find_if_not(info.anchors, [](float x) { return std::isfinite(x); });
  if (bad != info.anchors.end()) {
    fail("index: expected finite anchors, got ", *bad, " in row ",
         (bad - info.anchors.begin()) / info.dim);
  }
  TESSERA_ASSERT(!info.half_anchors || are_halves(info.anchors));
  for (const auto& [name, data] : info.blobs) {
    if (name.empty() || name.size() > kMaxName || name == kAnchors ||
        name.find('\0') != std::string::npos) {
      fail("index: expected the name of a blob to have 1 to ", kMaxName,
           " characters and not to be 'anchors', got '", name, "'");
    }
  }
  if (info.blobs.size() >= kMaxSections) {
    fail("index: expected fewer than ", kMaxSections, " blobs, got ", info.blobs.size());
  }
}

std::vector<std::byte> make_head(const IndexInfo& info) {
  const std::vector<f16> halves = halves_of(info);
  const std::vector<Section> sections = sections_of(info, halves);
  const int64_t table = int64_t(sections.size() * sizeof(SectionRow));
  std::vector<std::byte> head(size_t(kFixedBytes + table));
  std::vector<SectionRow> rows;
  for (const Section& section : sections) {
    head.resize(size_t(align_up(int64_t(head.size()))));
    SectionRow& row = rows.emplace_back();
    std::ranges::copy(section.name, row.name);
    row.at = int64_t(head.size());
    row.bytes = int64_t(section.data.size());
    row.data_sum = crc32c(section.data);
    head.insert(head.end(), section.data.begin(), section.data.end());
  }
  head.resize(size_t(align_up(int64_t(head.size()))));
  std::memcpy(head.data() + kFixedBytes, rows.data(), size_t(table));
  Preamble preamble;
  preamble.version = version_for(info.tail, info.half_anchors);
  preamble.tail = uint32_t(info.tail);
  preamble.half_anchors = info.half_anchors;
  preamble.dim = uint32_t(info.dim);
  preamble.cells = uint32_t(info.cells());
  preamble.metric = uint32_t(info.metric);
  preamble.block_bytes = info.block_bytes;
  preamble.head_end = int64_t(head.size());
  preamble.sections = uint32_t(rows.size());
  preamble.sections_sum = crc32c(std::as_bytes(std::span(rows)));
  preamble.sum = sum_of(preamble);
  copy_to(head, 0, preamble);
  return head;
}

IndexHead read_head(std::shared_ptr<const MappedRange> file, const std::string& name) {
  const Preamble preamble = check_preamble(file->bytes(0, kFixedBytes), name);
  constexpr uint32_t kMaxInt = std::numeric_limits<int32_t>::max();
  if (preamble.dim < 1 || preamble.dim > kMaxInt || preamble.cells < 1 ||
      preamble.cells > kMaxInt || preamble.metric > uint32_t(Metric::cosine) ||
      preamble.block_bytes < 0) {
    refuse_index(name, "expected dim and cells of at least 1 and a known metric, got dim ",
                 preamble.dim, ", cells ", preamble.cells, ", metric ", preamble.metric,
                 ", blocks of ", preamble.block_bytes, " bytes");
  }
  if (preamble.half_anchors > 1 || !is_layout_of(TailLayout(preamble.tail), preamble.block_bytes) ||
      preamble.version < version_for(TailLayout(preamble.tail), preamble.half_anchors == 1)) {
    refuse_index(name, "expected lists and anchors of a known layout, got ", preamble.tail, " and ",
                 preamble.half_anchors, " with blocks of ", preamble.block_bytes, " bytes");
  }
  IndexHead head;
  head.name = name;
  head.end = preamble.head_end;
  head.info.dim = int32_t(preamble.dim);
  head.info.metric = Metric(preamble.metric);
  head.info.block_bytes = preamble.block_bytes;
  head.info.tail = TailLayout(preamble.tail);
  head.info.half_anchors = preamble.half_anchors == 1;
  for (const SectionRow& row : read_rows(*file, preamble, name)) {
    const auto [title, data] = read_section(*file, row, preamble.head_end, name);
    if (title == kAnchors && head.info.half_anchors) {
      const auto* halves = reinterpret_cast<const f16*>(data.data());
      head.widened.assign(halves, halves + data.size() / sizeof(f16));
      head.info.anchors = head.widened;
    } else if (title == kAnchors) {
      head.info.anchors = {reinterpret_cast<const float*>(data.data()), data.size() / 4};
    } else if (!head.info.blobs.emplace(title, data).second) {
      refuse_index(name, "section '", title, "' is there twice");
    }
  }
  // Below 2^62, so the product with 4 bytes a value does not overflow either.
  const int64_t values = int64_t(preamble.dim) * int64_t(preamble.cells);
  if (int64_t(head.info.anchors.size()) != values) {
    refuse_index(name, "expected ", preamble.cells, " anchors of ", preamble.dim,
                 " dimensions, got ", head.info.anchors.size(), " values");
  }
  head.file = std::move(file);
  return head;
}

CommitRecord read_record(const Descriptor& file, const std::string& name) {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (const auto record = newest_record(read_fixed(file, name))) {
      if (record->length < kFixedBytes) {
        refuse_index(name, "its commit record speaks of ", record->length, " bytes");
      }
      return *record;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  refuse_index(name, "both copies of a commit record are damaged");
}

void write_record(const Descriptor& file, const CommitRecord& record, int copy,
                  const std::filesystem::path& path) {
  const int slot = int(record.generation % 2) + copy * kRecords / 2;
  const int code = write_at(file, record_at(slot), bytes_of_struct(record));
  if (code != 0) fail_system("index: cannot write", path, code);
}

}  // namespace tessera::lattice
