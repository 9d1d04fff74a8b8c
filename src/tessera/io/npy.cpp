#include "tessera/io/npy.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <string>

#include "tessera/io/array_bytes.h"
#include "tessera/io/atomic_file.h"
#include "tessera/io/npy_header.h"

namespace tessera {

namespace {

static_assert(std::endian::native == std::endian::little, "data is used as it lies in the file");

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kAlignment = 64;

struct Descr {
  DType dtype;
  std::string_view text;
};

constexpr std::array<Descr, 9> kDescrs = {{
    {DType::f32, "<f4"},
    {DType::f64, "<f8"},
    {DType::f16, "<f2"},
    {DType::i8, "|i1"},
    {DType::i32, "<i4"},
    {DType::i64, "<i8"},
    {DType::u8, "|u1"},
    {DType::u32, "<u4"},
    {DType::boolean, "|b1"},
}};

template <class... Args>
[[noreturn]] void refuse(std::string_view name, const Args&... args) {
  fail("npy: ", name, ": ", args...);
}

DType dtype_of_descr(std::string_view descr, std::string_view name) {
  for (const Descr& row : kDescrs) {
    if (row.text == descr) return row.dtype;
  }
  if (descr.starts_with('>')) refuse(name, "expected little-endian data, got '", descr, "'");
  refuse(name, "expected one of f2 f4 f8 i1 i4 i8 u1 u4 b1, got '", descr, "'");
}

struct Sections {
  std::string_view header;
  std::span<const std::byte> data;
};

// magic (6), major (1), minor (1), length of the header (2 in version 1, else 4), header, data.
Sections split(std::span<const std::byte> file, std::string_view name) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  if (!text.starts_with(kMagic)) refuse(name, "expected a .npy file, got other leading bytes");
  if (text.size() < kMagic.size() + 2) refuse(name, "the file ends inside its preamble");
  const int major = uint8_t(text[6]);
  const int minor = uint8_t(text[7]);
  if (major < 1 || major > 3 || minor != 0) {
    refuse(name, "expected format version 1.0, 2.0 or 3.0, got ", major, ".", minor);
  }
  const size_t length_bytes = major == 1 ? 2 : 4;
  const size_t begin = kMagic.size() + 2 + length_bytes;
  if (text.size() < begin) refuse(name, "the file ends inside its preamble");
  size_t length = 0;
  for (size_t i = 0; i < length_bytes; ++i) length |= size_t(uint8_t(text[8 + i])) << (8 * i);
  if (length > text.size() - begin) {
    refuse(name, "expected a header of ", length, " bytes, got ", text.size() - begin);
  }
  return {text.substr(begin, length), file.subspan(begin + length)};
}

void check_bools(std::span<const std::byte> data, std::string_view name) {
  const auto bad = find_bad_bool(data);
  if (bad) refuse(name, "expected bools of 0 or 1, got ", int(data[*bad]), " at element ", *bad);
}

}  // namespace

std::string npy_preamble(DType dtype, const Shape& shape) {
  const auto row = std::ranges::find(kDescrs, dtype, &Descr::dtype);
  if (row == kDescrs.end()) fail("npy: expected a type that NumPy has, got ", dtype);
  std::string header = format_npy_header({std::string(row->text), false, shape});
  const size_t used = kMagic.size() + 4 + header.size() + 1;
  header.append((kAlignment - used % kAlignment) % kAlignment, ' ');
  header += '\n';
  std::string bytes(kMagic);
  bytes += '\x01';
  bytes += '\0';
  bytes += char(header.size() & 0xff);
  bytes += char(header.size() >> 8);
  return bytes + header;
}

NpyView parse_npy(std::span<const std::byte> file, std::string_view name) {
  const Sections sections = split(file, name);
  const NpyHeader header = parse_npy_header(sections.header, name);
  const DType dtype = dtype_of_descr(header.descr, name);
  const std::optional<int64_t> expected = array_bytes(dtype, header.shape);
  if (!expected) refuse(name, dtype, " ", header.shape, " has more than 2^63 - 1 bytes");
  if (size_t(*expected) != sections.data.size()) {
    refuse(name, "expected ", *expected, " bytes of data for ", dtype, " ", header.shape, ", got ",
           sections.data.size());
  }
  if (dtype == DType::boolean) check_bools(sections.data, name);
  return {dtype, header.shape, header.fortran_order, sections.data};
}

NpyFile read_npy(const std::filesystem::path& path) {
  MappedFile file(path);
  const NpyView view = parse_npy(file.bytes(), cat("'", path.native(), "'"));
  return {std::move(file), view};
}

void write_npy(const std::filesystem::path& path, DType dtype, const Shape& shape,
               std::span<const std::byte> data) {
  const std::string head = npy_preamble(dtype, shape);
  const std::optional<int64_t> expected = array_bytes(dtype, shape);
  TESSERA_ASSERT(std::ranges::all_of(shape, [](int64_t extent) { return extent >= 0; }));
  if (!expected || size_t(*expected) != data.size()) {
    fail("npy: expected the bytes of ", dtype, " ", shape, ", got ", data.size());
  }
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(head)));
  file.write(data);
  file.commit();
}

}  // namespace tessera
