#include "tessera/io/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <numeric>
#include <optional>
#include <set>

#include "tessera/io/array_bytes.h"
#include "tessera/io/atomic_file.h"
#include "tessera/io/json.h"

namespace tessera {

namespace {

static_assert(std::endian::native == std::endian::little, "data is used as it lies in the file");

constexpr size_t kLengthBytes = 8;
constexpr size_t kMaxHeader = 100'000'000;  // of the format, against headers that exhaust memory
constexpr size_t kAlignment = 8;
constexpr std::string_view kMetadata = "__metadata__";

struct TypeName {
  DType dtype;
  std::string_view text;
};

// In the order in which the reference implementation writes tensors.
constexpr std::array<TypeName, kDTypeCount> kTypes = {{
    {DType::i64, "I64"},
    {DType::f64, "F64"},
    {DType::f32, "F32"},
    {DType::u32, "U32"},
    {DType::i32, "I32"},
    {DType::bf16, "BF16"},
    {DType::f16, "F16"},
    {DType::i8, "I8"},
    {DType::u8, "U8"},
    {DType::boolean, "BOOL"},
}};

size_t type_row(DType dtype) {
  return size_t(std::ranges::find(kTypes, dtype, &TypeName::dtype) - kTypes.begin());
}

struct Entry {
  SafetensorsInfo info;
  size_t begin, end;  // of its bytes, counted from the end of the header
};

class HeaderReader {
 public:
  HeaderReader(std::span<const std::byte> file, std::string_view name) : name_(name), file_(file) {}

  SafetensorsView read() {
    const Json header = parse_header();
    SafetensorsView view;
    std::vector<Entry> entries;
    for (const auto& [key, value] : header.as_object()) {
      if (key == kMetadata) {
        view.metadata = read_metadata(value);
      } else {
        entries.push_back(read_entry(key, value));
      }
    }
    // Empty tensors lie between others: at equal beginnings the one that ends first comes first.
    std::ranges::stable_sort(entries, {}, [](const Entry& e) { return std::pair(e.begin, e.end); });
    check_cover(entries);
    for (Entry& entry : entries) {
      const auto bytes = data_.subspan(entry.begin, entry.end - entry.begin);
      if (entry.info.dtype == DType::boolean) check_bools(entry.info, bytes);
      view.tensors.push_back({std::move(entry.info), bytes});
    }
    return view;
  }

 private:
  template <class... Args>
  [[noreturn]] void refuse(const Args&... args) const {
    fail("safetensors: ", name_, ": ", args...);
  }

  Json parse_header() {
    if (file_.size() < kLengthBytes) {
      refuse("expected at least ", kLengthBytes, " bytes, got ", file_.size());
    }
    uint64_t length = 0;
    for (size_t i = 0; i < kLengthBytes; ++i) length |= uint64_t(file_[i]) << (8 * i);
    const auto rest = file_.subspan(kLengthBytes);
    if (length > kMaxHeader) {
      refuse("expected a header of at most ", kMaxHeader, " bytes, got ", length,
             ": is it a safetensors file?");
    }
    if (length > rest.size()) {
      refuse("expected a header of ", length, " bytes, got ", rest.size());
    }
    const std::string_view text(reinterpret_cast<const char*>(rest.data()), size_t(length));
    if (!text.starts_with('{')) refuse("expected the header to begin with '{'");
    data_ = rest.subspan(size_t(length));
    return Json::parse(text, cat(name_, ": header"), "safetensors");
  }

  SafetensorsMetadata read_metadata(const Json& json) const {
    if (!json.is_object()) {
      refuse("expected \"__metadata__\" to be an object, got ", json.describe());
    }
    SafetensorsMetadata metadata;
    for (const auto& [key, value] : json.as_object()) {
      if (!value.is_string()) {
        refuse("expected the metadata ", quote_for_error(key), " to be a string, got ",
               value.describe());
      }
      metadata.emplace(key, value.as_string());
    }
    return metadata;
  }

  Entry read_entry(const std::string& key, const Json& json) const {
    const std::string quoted = quote_for_error(key);
    if (!json.is_object()) refuse("expected ", quoted, " to be an object, got ", json.describe());
    for (const auto& [field, value] : json.as_object()) {
      if (field != "dtype" && field != "shape" && field != "data_offsets") {
        refuse(quoted, " has an unknown field ", quote_for_error(field));
      }
    }
    const DType dtype = read_dtype(quoted, field_of(json, quoted, "dtype"));
    const Shape shape = read_shape(quoted, field_of(json, quoted, "shape"));
    const auto [begin, end] = read_offsets(quoted, field_of(json, quoted, "data_offsets"));
    const std::optional<int64_t> expected = array_bytes(dtype, shape);
    if (!expected) refuse(quoted, ", ", dtype, " ", shape, ", has more than 2^63 - 1 bytes");
    if (uint64_t(*expected) != end - begin) {
      refuse("expected ", *expected, " bytes for ", quoted, ", ", dtype, " ", shape, ", got ",
             end - begin);
    }
    return {{key, dtype, shape}, begin, end};
  }

  const Json& field_of(const Json& json, std::string_view quoted, std::string_view field) const {
    const Json* value = json.find(field);
    if (value == nullptr) refuse(quoted, " has no field \"", field, "\"");
    return *value;
  }

  DType read_dtype(std::string_view quoted, const Json& json) const {
    if (!json.is_string()) {
      refuse("expected the dtype of ", quoted, " to be a string, got ", json.describe());
    }
    const auto row = std::ranges::find(kTypes, json.as_string(), &TypeName::text);
    if (row == kTypes.end()) {
      refuse("expected the dtype of ", quoted,
             " to be one of F64 F32 F16 BF16 I64 I32 I8 U32 U8 BOOL, got ",
             quote_for_error(json.as_string()));
    }
    return row->dtype;
  }

  Shape read_shape(std::string_view quoted, const Json& json) const {
    if (!json.is_array()) {
      refuse("expected the shape of ", quoted, " to be an array, got ", json.describe());
    }
    const Json::Array& extents = json.as_array();
    if (extents.size() > size_t(kMaxRank)) {
      refuse("expected at most ", kMaxRank, " dimensions of ", quoted, ", got ", extents.size());
    }
    Shape shape;
    for (const Json& extent : extents) {
      if (!extent.is_int() || extent.as_int() < 0) {
        refuse("expected the extents of ", quoted, " to be whole numbers of at least 0, got ",
               extent.describe());
      }
      shape.push_back(extent.as_int());
    }
    return shape;
  }

  std::pair<size_t, size_t> read_offsets(std::string_view quoted, const Json& json) const {
    if (!json.is_array() || json.as_array().size() != 2) {
      refuse("expected the data_offsets of ", quoted, " to be two numbers, got ",
             json.is_array() ? cat(json.as_array().size()) : json.describe());
    }
    for (const Json& offset : json.as_array()) {
      if (!offset.is_int() || offset.as_int() < 0 || uint64_t(offset.as_int()) > data_.size()) {
        refuse("expected the data_offsets of ", quoted, " to be whole numbers from 0 to ",
               data_.size(), ", got ", offset.describe());
      }
    }
    const auto begin = size_t(json.at(size_t(0)).as_int());
    const auto end = size_t(json.at(size_t(1)).as_int());
    if (begin > end) {
      refuse("expected the data_offsets of ", quoted, " in order, got ", begin, " and ", end);
    }
    return {begin, end};
  }

  // REQUIRES: sorted by where they begin.
  void check_cover(const std::vector<Entry>& entries) const {
    size_t end = 0;
    for (const Entry& entry : entries) {
      if (entry.begin != end) {
        refuse("expected ", quote_for_error(entry.info.name), " to begin at byte ", end,
               ", where the tensor before it ends, got ", entry.begin);
      }
      end = entry.end;
    }
    if (end != data_.size()) {
      refuse("expected ", end, " bytes after the header, got ", data_.size());
    }
  }

  void check_bools(const SafetensorsInfo& info, std::span<const std::byte> bytes) const {
    if (const auto bad = find_bad_bool(bytes)) {
      refuse("expected the bools of ", quote_for_error(info.name), " to be 0 or 1, got ",
             int(bytes[*bad]), " at element ", *bad);
    }
  }

  std::string_view name_;
  std::span<const std::byte> file_, data_;
};

void check_names(std::span<const SafetensorsInfo> infos) {
  std::set<std::string_view> names;
  for (const SafetensorsInfo& info : infos) {
    if (info.name == kMetadata) {
      fail("safetensors: expected another name for a tensor than \"__metadata__\"");
    }
    if (!names.insert(info.name).second) {
      fail("safetensors: expected every name once, got ", quote_for_error(info.name), " again");
    }
  }
}

// Its bytes lie at `end`, which moves on.
Json header_entry(const SafetensorsInfo& info, int64_t& end) {
  TESSERA_ASSERT(std::ranges::all_of(info.shape, [](int64_t extent) { return extent >= 0; }));
  const int64_t begin = end;
  const std::optional<int64_t> bytes = array_bytes(info.dtype, info.shape);
  if (!bytes || __builtin_add_overflow(begin, *bytes, &end)) {
    fail("safetensors: expected at most 2^63 - 1 bytes to write, got more with ",
         quote_for_error(info.name));
  }
  Json entry;
  entry.set("dtype", kTypes[type_row(info.dtype)].text);
  entry.set("shape", Json::Array(info.shape.begin(), info.shape.end()));
  entry.set("data_offsets", Json::Array{begin, end});
  return entry;
}

}  // namespace

const SafetensorsTensor* SafetensorsView::find(std::string_view name) const {
  const auto found = std::ranges::find_if(
      tensors, [&](const SafetensorsTensor& tensor) { return tensor.info.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

SafetensorsView parse_safetensors(std::span<const std::byte> file, std::string_view name) {
  return HeaderReader(file, name).read();
}

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path)
    : file(path), view(parse_safetensors(file.bytes(), cat("'", path.native(), "'"))) {}

SafetensorsLayout layout_safetensors(std::span<const SafetensorsInfo> infos,
                                     const SafetensorsMetadata& metadata) {
  SafetensorsLayout layout;
  layout.order.resize(infos.size());
  std::iota(layout.order.begin(), layout.order.end(), size_t(0));
  std::ranges::sort(layout.order, {}, [&](size_t i) {
    return std::pair<size_t, std::string_view>(type_row(infos[i].dtype), infos[i].name);
  });
  check_names(infos);

  Json::Object header;
  if (!metadata.empty()) {
    Json::Object strings;
    for (const auto& [key, value] : metadata) strings.emplace_back(key, value);
    header.emplace_back(kMetadata, std::move(strings));
  }
  int64_t end = 0;
  for (const size_t i : layout.order) {
    header.emplace_back(infos[i].name, header_entry(infos[i], end));
  }
  std::string text = Json(std::move(header)).dump();
  text.append((kAlignment - text.size() % kAlignment) % kAlignment, ' ');
  if (text.size() > kMaxHeader) {
    fail("safetensors: expected a header to write of at most ", kMaxHeader, " bytes, got ",
         text.size());
  }
  for (size_t i = 0; i < kLengthBytes; ++i) layout.head += char((text.size() >> (8 * i)) & 0xff);
  layout.head += text;
  return layout;
}

void write_safetensors(const std::filesystem::path& path, std::span<const SafetensorsInfo> infos,
                       const SafetensorsMetadata& metadata,
                       const std::function<std::span<const std::byte>(size_t)>& bytes_of) {
  const SafetensorsLayout layout = layout_safetensors(infos, metadata);
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(layout.head)));
  for (const size_t i : layout.order) {
    const SafetensorsInfo& info = infos[i];
    const std::span<const std::byte> bytes = bytes_of(i);
    if (bytes.size() != size_t(*array_bytes(info.dtype, info.shape))) {
      fail("safetensors: expected the bytes of ", info.dtype, " ", info.shape, " for ",
           quote_for_error(info.name), ", got ", bytes.size());
    }
    file.write(bytes);
  }
  file.commit();
}

void write_safetensors(const std::filesystem::path& path,
                       std::span<const SafetensorsTensor> tensors,
                       const SafetensorsMetadata& metadata) {
  std::vector<SafetensorsInfo> infos;
  for (const SafetensorsTensor& tensor : tensors) infos.push_back(tensor.info);
  write_safetensors(path, infos, metadata, [&](size_t i) { return tensors[i].data; });
}

}  // namespace tessera
