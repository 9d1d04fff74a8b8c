#include "tessera/io/npy.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <vector>

#include "support/expect_error.h"
#include "temp_folder.h"
#include "tessera/io/npy_header.h"

namespace tessera {
namespace {

constexpr std::string_view kGood = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";

// A file of the given version with `header` as it stands, and then `data` zero bytes.
std::string npy(std::string_view header, size_t data, char major = 1) {
  std::string file = "\x93NUMPY";
  file += major;
  file += '\0';
  const int length_bytes = major == 1 ? 2 : 4;
  for (int i = 0; i < length_bytes; ++i) file += char((header.size() >> (8 * i)) & 0xff);
  return file + std::string(header) + std::string(data, '\0');
}

NpyView parse(std::string_view file) { return parse_npy(bytes_of(file), "x"); }

std::string refusal(std::string_view file) {
  return error_text([&] { parse(file); });
}

std::string header_refusal(std::string_view header) { return refusal(npy(header, 24)); }

TEST(Npy, ReadsEveryVersion) {
  for (const char major : {'\1', '\2', '\3'}) {
    const std::string file = npy(cat(kGood, "   \n"), 24, major);
    const NpyView view = parse(file);
    EXPECT_EQ(view.dtype, DType::f32);
    EXPECT_EQ(view.shape, (Shape{2, 3}));
    EXPECT_EQ(view.data.size(), 24u);
    EXPECT_EQ(reinterpret_cast<const char*>(view.data.data()), file.data() + file.size() - 24);
  }
}

// numpy.save of np.array([[1, 2, 3], [-4, 5, 6]], '<i4'), byte by byte.
TEST(Npy, ReadsAFileAsNumPyWritesIt) {
  std::string file("\x93NUMPY\x01\x00\x76\x00", 10);
  file += "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }";
  file.resize(127, ' ');
  file += '\n';
  const std::array<int32_t, 6> values = {1, 2, 3, -4, 5, 6};
  file.append(reinterpret_cast<const char*>(values.data()), sizeof(values));
  const NpyView view = parse(file);
  EXPECT_EQ(view.dtype, DType::i32);
  EXPECT_EQ(view.shape, (Shape{2, 3}));
  EXPECT_EQ(std::memcmp(view.data.data(), values.data(), sizeof(values)), 0);

  const TempFolder folder;
  write_npy(folder / "a.npy", DType::i32, {2, 3}, std::as_bytes(std::span(values)));
  EXPECT_EQ(read_text(folder / "a.npy"), file);
}

TEST(Npy, ReadsEveryTypeAndItsNameWithEitherQuote) {
  const std::vector<std::pair<std::string, DType>> rows = {
      {"<f2", DType::f16}, {"<f4", DType::f32}, {"<f8", DType::f64},
      {"|i1", DType::i8},  {"<i4", DType::i32}, {"<i8", DType::i64},
      {"|u1", DType::u8},  {"<u4", DType::u32}, {"|b1", DType::boolean}};
  for (const auto& [descr, dtype] : rows) {
    const std::string header =
        cat("{\"shape\":(3,),\"descr\":\"", descr, "\",\"fortran_order\":False}");
    const std::string file = npy(header, size_t(3 * size_of(dtype)));
    EXPECT_EQ(parse(file).dtype, dtype) << descr;
    EXPECT_EQ(parse(file).shape, (Shape{3})) << descr;
  }
}

TEST(Npy, RoundTripsEveryTypeAndShape) {
  const TempFolder folder;
  const std::vector<Shape> shapes = {
      {}, {1}, {7}, {0}, {2, 0, 3}, {2, 3, 5}, {1, 1, 2, 1, 3, 1, 1, 2}};
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (dtype == DType::bf16) continue;
    for (const Shape& shape : shapes) {
      std::vector<std::byte> data(size_t(numel(shape) * size_of(dtype)));
      for (size_t j = 0; j < data.size(); ++j)
        data[j] = std::byte(dtype == DType::boolean ? j % 2 : j);
      write_npy(folder / "a.npy", dtype, shape, data);
      const NpyFile file = read_npy(folder / "a.npy");
      EXPECT_EQ(file.view.dtype, dtype);
      EXPECT_EQ(file.view.shape, shape);
      EXPECT_TRUE(std::ranges::equal(file.view.data, data));
      EXPECT_EQ((file.file.bytes().size() - data.size()) % 64, 0u);
    }
  }
  EXPECT_EQ(folder.files(), 1u);
}

TEST(Npy, TheDataOutlivesAMoveOfTheFile) {
  const TempFolder folder;
  const std::array<float, 2> values = {1.5f, -2.5f};
  write_npy(folder / "a.npy", DType::f32, {2}, std::as_bytes(std::span(values)));
  NpyFile file = read_npy(folder / "a.npy");
  const NpyFile moved = std::move(file);
  EXPECT_EQ(std::memcmp(moved.view.data.data(), values.data(), sizeof(values)), 0);
}

TEST(Npy, AFileIsNamedByItsPath) {
  const TempFolder folder;
  const auto path = folder / "a.npy";
  write_text(path, "");
  EXPECT_EQ(error_text([&] { read_npy(path); }),
            cat("npy: '", path.native(), "': expected a .npy file, got other leading bytes"));
}

TEST(Npy, RefusesLyingPreambles) {
  const std::string good = npy(kGood, 24);
  std::string file = good;
  file[0] = 'N';
  EXPECT_EQ(refusal(file), "npy: x: expected a .npy file, got other leading bytes");
  EXPECT_EQ(refusal(good.substr(0, 5)), "npy: x: expected a .npy file, got other leading bytes");
  EXPECT_EQ(refusal(good.substr(0, 7)), "npy: x: the file ends inside its preamble");
  EXPECT_EQ(refusal(good.substr(0, 9)), "npy: x: the file ends inside its preamble");
  file = good;
  file[6] = 4;
  EXPECT_EQ(refusal(file), "npy: x: expected format version 1.0, 2.0 or 3.0, got 4.0");
  file[6] = 0;
  EXPECT_EQ(refusal(file), "npy: x: expected format version 1.0, 2.0 or 3.0, got 0.0");
  file[6] = 1;
  file[7] = 9;
  EXPECT_EQ(refusal(file), "npy: x: expected format version 1.0, 2.0 or 3.0, got 1.9");
  file = good;
  file[8] = file[9] = '\xff';
  EXPECT_EQ(refusal(file), "npy: x: expected a header of 65535 bytes, got 83");
  file = npy(kGood, 24, 2);
  file[8] = file[9] = file[10] = file[11] = '\xff';
  EXPECT_EQ(refusal(file), "npy: x: expected a header of 4294967295 bytes, got 83");
}

TEST(Npy, RefusesHeadersThatAreNotTheDict) {
  EXPECT_EQ(header_refusal(""), "npy: x: expected the header to be a dict");
  EXPECT_EQ(header_refusal("[1, 2]"), "npy: x: expected the header to be a dict");
  EXPECT_EQ(header_refusal("{"), "npy: x: expected the header's keys to be a plain string");
  EXPECT_EQ(header_refusal("{1: 2}"), "npy: x: expected the header's keys to be a plain string");
  EXPECT_EQ(header_refusal("{'de\\x73cr': 1}"),
            "npy: x: expected the header's keys to be a plain string");
  EXPECT_EQ(header_refusal("{'descr"), "npy: x: expected the header's keys to be a plain string");
  EXPECT_EQ(header_refusal("{'descr' '<f4'}"), "npy: x: expected ':' after 'descr' in the header");
  EXPECT_EQ(header_refusal("{'descr': '<f4' 'shape': ()}"),
            "npy: x: expected ',' or '}' after a value in the header");
  EXPECT_EQ(header_refusal(cat(kGood, "x")),
            "npy: x: expected only spaces after the header's dict");
  EXPECT_EQ(header_refusal("{'magic': 1}"), "npy: x: the header has an unknown key 'magic'");
  EXPECT_EQ(header_refusal("{'descr': '<f4', 'descr': '<f4'}"),
            "npy: x: the header has 'descr' twice");
}

TEST(Npy, RefusesMissingKeys) {
  EXPECT_EQ(header_refusal("{'fortran_order': False, 'shape': (2, 3)}"),
            "npy: x: the header has no 'descr'");
  EXPECT_EQ(header_refusal("{'descr': '<f4', 'shape': (2, 3)}"),
            "npy: x: the header has no 'fortran_order'");
  EXPECT_EQ(header_refusal("{'descr': '<f4', 'fortran_order': False}"),
            "npy: x: the header has no 'shape'");
  EXPECT_EQ(header_refusal("{}"), "npy: x: the header has no 'descr'");
}

TEST(Npy, SaysWhichOrderTheDataHas) {
  EXPECT_FALSE(parse(npy(kGood, 24)).fortran_order);
  const std::string file = npy("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3)}", 24);
  EXPECT_TRUE(parse(file).fortran_order);
  EXPECT_EQ(parse(file).shape, (Shape{2, 3}));
}

TEST(Npy, RefusesTypesAndOrdersItDoesNotRead) {
  const auto with_descr = [](std::string_view descr) {
    return header_refusal(cat("{'descr': ", descr, ", 'fortran_order': False, 'shape': (2, 3)}"));
  };
  for (const char* descr : {"<i2", "<u8", "<c8", "|O", "|S4", "f4", "", "<M8[ns]"}) {
    EXPECT_EQ(with_descr(cat("'", descr, "'")),
              cat("npy: x: expected one of f2 f4 f8 i1 i4 i8 u1 u4 b1, got '", descr, "'"));
  }
  EXPECT_EQ(with_descr("'>f4'"), "npy: x: expected little-endian data, got '>f4'");
  EXPECT_EQ(with_descr("[('a', '<f4')]"), "npy: x: expected 'descr' to be a plain string");
  EXPECT_EQ(header_refusal("{'descr': '<f4', 'fortran_order': 0, 'shape': (2, 3)}"),
            "npy: x: expected 'fortran_order' to be True or False");
}

std::string shape_refusal(std::string_view shape) {
  return header_refusal(cat("{'descr': '<f4', 'fortran_order': False, 'shape': ", shape, "}"));
}

TEST(Npy, RefusesShapesThatAreNone) {
  EXPECT_EQ(shape_refusal("[2, 3]"), "npy: x: expected 'shape' to be a tuple");
  for (const char* shape :
       {"(6)", "(2 3)", "(2, 3", "(a,)", "(,)", "(2, 3.0)", "(2, +3)", "(2,,3)"}) {
    EXPECT_EQ(shape_refusal(shape), "npy: x: expected 'shape' to be a tuple of numbers") << shape;
  }
  EXPECT_EQ(shape_refusal("(-2, -3)"), "npy: x: expected extents of at least 0, got -2");
  EXPECT_EQ(shape_refusal("(9223372036854775808,)"),
            "npy: x: expected extents of at most 2^63 - 1, got a larger one");
  for (const char* shape : {"(02, 3)", "(2, 03)", "(00,)"}) {
    EXPECT_EQ(shape_refusal(shape), "npy: x: expected extents without leading zeros") << shape;
  }
  EXPECT_EQ(shape_refusal("(1,1,1,1,1,1,1,1,6)"),
            "npy: x: expected at most 8 dimensions, got more");
}

TEST(Npy, RefusesShapesThatOverflow) {
  EXPECT_EQ(shape_refusal("(2305843009213693952,)"),
            "npy: x: f32 (2305843009213693952,) has more than 2^63 - 1 bytes");
  // 2^32 * 2^32 wraps to 0 elements, and 2^32 * 2^30 * 4 bytes to 0 bytes.
  EXPECT_EQ(shape_refusal("(4294967296, 4294967296)"),
            "npy: x: f32 (4294967296, 4294967296) has more than 2^63 - 1 bytes");
  EXPECT_EQ(shape_refusal("(4294967296, 1073741824)"),
            "npy: x: f32 (4294967296, 1073741824) has more than 2^63 - 1 bytes");
  // Empty, but its strides would overflow.
  EXPECT_EQ(shape_refusal("(0, 4294967296, 4294967296)"),
            "npy: x: f32 (0, 4294967296, 4294967296) has more than 2^63 - 1 bytes");
}

TEST(Npy, RefusesMissingAndTrailingData) {
  EXPECT_EQ(refusal(npy(kGood, 23)), "npy: x: expected 24 bytes of data for f32 (2, 3), got 23");
  EXPECT_EQ(refusal(npy(kGood, 0)), "npy: x: expected 24 bytes of data for f32 (2, 3), got 0");
  EXPECT_EQ(refusal(npy(kGood, 25)), "npy: x: expected 24 bytes of data for f32 (2, 3), got 25");
}

TEST(Npy, RefusesBoolsThatAreNone) {
  std::string file = npy("{'descr': '|b1', 'fortran_order': False, 'shape': (4,)}", 4);
  EXPECT_EQ(parse(file).dtype, DType::boolean);
  file[file.size() - 1] = '\xff';
  EXPECT_EQ(refusal(file), "npy: x: expected bools of 0 or 1, got 255 at element 3");
}

TEST(Npy, RefusesToWriteWhatItCannotReadBack) {
  const TempFolder folder;
  const std::vector<std::byte> data(24);
  const auto write = [&](DType dtype, const Shape& shape) {
    return error_text([&] { write_npy(folder / "a.npy", dtype, shape, data); });
  };
  EXPECT_EQ(write(DType::bf16, {12}), "npy: expected a type that NumPy has, got bf16");
  EXPECT_EQ(write(DType::f32, {7}), "npy: expected the bytes of f32 (7,), got 24");
  EXPECT_EQ(write(DType::f32, {int64_t(1) << 62}),
            "npy: expected the bytes of f32 (4611686018427387904,), got 24");
  EXPECT_EQ(folder.files(), 0u);
}

// Whatever parse accepts must describe bytes inside the file.
bool accepted(const std::string& file) {
  try {
    const NpyView view = parse(file);
    EXPECT_EQ(size_t(numel(view.shape) * size_of(view.dtype)), view.data.size());
    EXPECT_LE(view.data.size(), file.size());
    return true;
  } catch (const Error&) {
    return false;
  }
}

TEST(Npy, EveryTruncationIsRefused) {
  for (const char major : {'\1', '\2'}) {
    const std::string file = npy(cat(kGood, " \n"), 24, major);
    for (size_t length = 0; length < file.size(); ++length) {
      EXPECT_FALSE(accepted(file.substr(0, length))) << length;
    }
    EXPECT_TRUE(accepted(file));
  }
}

TEST(Npy, EveryByteOfTheHeaderReplacedByEveryOther) {
  const std::string good = npy(cat(kGood, " \n"), 24, 2);
  int accepted_count = 0;
  for (size_t i = 0; i < good.size() - 24; ++i) {
    for (int value = 0; value < 256; ++value) {
      std::string file = good;
      file[i] = char(value);
      if (file != good) accepted_count += accepted(file);
    }
  }
  // Harmless ones: other kinds of space, major version 3, i4 or u4 for f4, ...
  EXPECT_GT(accepted_count, 0);
  EXPECT_LT(accepted_count, 100);
}

TEST(Npy, PairsOfReplacedBytesNeverCrash) {
  const std::string good = npy(cat(kGood, " \n"), 24);
  const std::string values("\0\n '\"(),:{}0927-<>|fibu\\\xff", 26);
  const size_t header = good.size() - 24;
  for (size_t i = 0; i < header; ++i) {
    for (size_t j = i + 1; j < header; j += 3) {
      std::string file = good;
      file[i] = values[(i * 7 + j) % values.size()];
      file[j] = values[(i + j * 5) % values.size()];
      accepted(file);
    }
  }
}

TEST(NpyHeader, FormatsAsItParses) {
  const NpyHeader header = {"|u1", true, {4, 0, 2}};
  const std::string text = format_npy_header(header);
  EXPECT_EQ(text, "{'descr': '|u1', 'fortran_order': True, 'shape': (4, 0, 2), }");
  const NpyHeader back = parse_npy_header(text, "x");
  EXPECT_EQ(back.descr, "|u1");
  EXPECT_TRUE(back.fortran_order);
  EXPECT_EQ(back.shape, header.shape);
}

}  // namespace
}  // namespace tessera
