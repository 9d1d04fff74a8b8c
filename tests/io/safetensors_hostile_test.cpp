// Files that lie: each is refused with its sentence, and none is believed.
#include <gtest/gtest.h>

#include <algorithm>

#include "support/expect_error.h"
#include "temp_folder.h"
#include "tessera/io/safetensors.h"

namespace tessera {
namespace {

using namespace std::string_view_literals;

std::string with_length(uint64_t length, std::string_view rest) {
  std::string file;
  for (int i = 0; i < 8; ++i) file += char((length >> (8 * i)) & 0xff);
  return file + std::string(rest);
}

// A file with `header` as it stands, and then `data` zero bytes.
std::string safetensors(std::string_view header, size_t data) {
  return with_length(header.size(), std::string(header) + std::string(data, '\0'));
}

std::string refusal(std::string_view file) {
  return error_text([&] { parse_safetensors(bytes_of(file), "x"); });
}

// One f32 tensor "w" of 8 bytes, with one field replaced.
std::string header(std::string_view dtype, std::string_view shape, std::string_view offsets) {
  return cat("{\"w\":{\"dtype\":", dtype, ",\"shape\":", shape, ",\"data_offsets\":", offsets,
             "}}");
}
constexpr std::string_view kF32 = "\"F32\"";

std::string two(std::string_view first_offsets, std::string_view second_offsets) {
  return cat("{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":", first_offsets,
             "},\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":", second_offsets, "}}");
}

struct Refused {
  std::string file, sentence;
};

void expect_refusals(const std::vector<Refused>& rows) {
  for (const auto& [file, sentence] : rows) EXPECT_EQ(refusal(file), "safetensors: x: " + sentence);
}

TEST(SafetensorsHostile, Lengths) {
  expect_refusals({
      {"", "expected at least 8 bytes, got 0"},
      {std::string(7, '\0'), "expected at least 8 bytes, got 7"},
      {with_length(0, ""), "expected the header to begin with '{'"},
      {with_length(0, "{}"), "expected the header to begin with '{'"},
      {with_length(3, "{}"), "expected a header of 3 bytes, got 2"},
      {with_length(100'000'000, "{}"), "expected a header of 100000000 bytes, got 2"},
      {with_length(100'000'001, "{}"),
       "expected a header of at most 100000000 bytes, got 100000001: is it a safetensors file?"},
      {with_length(~uint64_t(0), "{}"),
       "expected a header of at most 100000000 bytes, got 18446744073709551615: is it a "
       "safetensors file?"},
      {with_length(~uint64_t(0) - 7, "{}"),
       "expected a header of at most 100000000 bytes, got 18446744073709551608: is it a "
       "safetensors file?"},
  });
}

TEST(SafetensorsHostile, Json) {
  std::string deep = "{\"a\":";
  deep += std::string(100000, '[');
  expect_refusals({
      {safetensors("[]", 0), "expected the header to begin with '{'"},
      {safetensors(" {}", 0), "expected the header to begin with '{'"},
      {safetensors("{", 0), "header: byte 1: expected a key in quotes, got the end of the text"},
      {safetensors("{}x", 0), "header: byte 2: expected the end after the value, got 'x'"},
      {safetensors("{\"\xff\":1}", 0), "header: byte 2: expected UTF-8, got byte 0xff"},
      {safetensors(deep, 0),
       "header: byte 68: expected at most 64 arrays and objects in one another"},
      {safetensors("{\"a\":1,\"a\":1}", 0),
       "header: byte 7: expected every key of an object once, got \"a\" again"},
      {safetensors("{\"w\":{\"dtype\":\"U8\",\"dtype\":\"U8\"}}", 0),
       "header: byte 19: expected every key of an object once, got \"dtype\" again"},
  });
}

TEST(SafetensorsHostile, Metadata) {
  expect_refusals({
      {safetensors("{\"__metadata__\":[]}", 0),
       "expected \"__metadata__\" to be an object, got an array"},
      {safetensors("{\"__metadata__\":{\"a\":1}}", 0),
       "expected the metadata \"a\" to be a string, got the number 1"},
  });
}

TEST(SafetensorsHostile, Fields) {
  expect_refusals({
      {safetensors("{\"w\":3}", 0), "expected \"w\" to be an object, got the number 3"},
      {safetensors("{\"w\":{}}", 0), "\"w\" has no field \"dtype\""},
      {safetensors("{\"w\":{\"dtype\":\"F32\"}}", 0), "\"w\" has no field \"shape\""},
      {safetensors("{\"w\":{\"dtype\":\"F32\",\"shape\":[]}}", 0),
       "\"w\" has no field \"data_offsets\""},
      {safetensors("{\"w\":{\"strides\":[1]}}", 0), "\"w\" has an unknown field \"strides\""},
      {safetensors("{\"a\\n\":3}", 0), "expected \"a\\n\" to be an object, got the number 3"},
  });
}

TEST(SafetensorsHostile, Types) {
  std::vector<Refused> rows = {{safetensors(header("1", "[2]", "[0,8]"), 8),
                                "expected the dtype of \"w\" to be a string, got the number 1"}};
  for (const char* dtype : {"I16", "U16", "U64", "F8_E5M2", "F8_E4M3", "C64", "f32", "", "F320"}) {
    rows.push_back(
        {safetensors(header(cat('"', dtype, '"'), "[2]", "[0,8]"), 8),
         cat("expected the dtype of \"w\" to be one of F64 F32 F16 BF16 I64 I32 I8 U32 U8 "
             "BOOL, got \"",
             dtype, "\"")});
  }
  expect_refusals(rows);
}

TEST(SafetensorsHostile, Shapes) {
  const auto with_shape = [](std::string_view shape) {
    return safetensors(header(kF32, shape, "[0,8]"), 8);
  };
  const std::string extents =
      "expected the extents of \"w\" to be whole numbers of at least 0, got ";
  expect_refusals({
      {with_shape("2"), "expected the shape of \"w\" to be an array, got the number 2"},
      {with_shape("[2.0]"), extents + "the number 2.0"},
      {with_shape("[2.5]"), extents + "the number 2.5"},
      {with_shape("[2e0]"), extents + "the number 2.0"},
      {with_shape("[-2]"), extents + "the number -2"},
      {with_shape("[\"2\"]"), extents + "the string \"2\""},
      {with_shape("[null]"), extents + "null"},
      {with_shape("[9223372036854775808]"), extents + "the number 9223372036854775808.0"},
      {with_shape("[1,1,1,1,1,1,1,1,2]"), "expected at most 8 dimensions of \"w\", got 9"},
      {with_shape("[3]"), "expected 12 bytes for \"w\", f32 (3,), got 8"},
      {with_shape("[]"), "expected 4 bytes for \"w\", f32 (), got 8"},
      {with_shape("[0]"), "expected 0 bytes for \"w\", f32 (0,), got 8"},
      // 2^32 * 2^30 * 4 bytes wraps to 0, and (2^62 + 2) * 4 to 8.
      {with_shape("[4294967296,1073741824]"),
       "\"w\", f32 (4294967296, 1073741824), has more than 2^63 - 1 bytes"},
      {with_shape("[4611686018427387906]"),
       "\"w\", f32 (4611686018427387906,), has more than 2^63 - 1 bytes"},
      {with_shape("[0,4294967296,4294967296]"),
       "\"w\", f32 (0, 4294967296, 4294967296), has more than 2^63 - 1 bytes"},
  });
}

TEST(SafetensorsHostile, Offsets) {
  const auto with_offsets = [](std::string_view offsets) {
    return safetensors(header(kF32, "[2]", offsets), 8);
  };
  const std::string range =
      "expected the data_offsets of \"w\" to be whole numbers from 0 to 8, got the number ";
  expect_refusals({
      {with_offsets("8"), "expected the data_offsets of \"w\" to be two numbers, got the number 8"},
      {with_offsets("[]"), "expected the data_offsets of \"w\" to be two numbers, got 0"},
      {with_offsets("[0,4,8]"), "expected the data_offsets of \"w\" to be two numbers, got 3"},
      {with_offsets("[0,9]"), range + "9"},
      {with_offsets("[-8,0]"), range + "-8"},
      {with_offsets("[0.0,8]"), range + "0.0"},
      {with_offsets("[0,18446744073709551615]"), range + "18446744073709551616.0"},
      {with_offsets("[0,9223372036854775807]"), range + "9223372036854775807"},
      {with_offsets("[8,0]"), "expected the data_offsets of \"w\" in order, got 8 and 0"},
      {with_offsets("[4,8]"), "expected 8 bytes for \"w\", f32 (2,), got 4"},
  });
}

TEST(SafetensorsHostile, HolesAndOverlaps) {
  const std::string first =
      "expected \"a\" to begin at byte 0, where the tensor before it ends, got ";
  const std::string second =
      "expected \"b\" to begin at byte 4, where the tensor before it ends, got ";
  expect_refusals({
      {safetensors(two("[0,4]", "[0,4]"), 4), second + "0"},
      {safetensors(two("[0,4]", "[2,6]"), 6), second + "2"},
      {safetensors(two("[0,4]", "[5,9]"), 9), second + "5"},
      {safetensors(two("[1,5]", "[5,9]"), 9), first + "1"},
      {safetensors(two("[0,4]", "[4,8]"), 9), "expected 8 bytes after the header, got 9"},
      {safetensors("{}", 1), "expected 0 bytes after the header, got 1"},
  });
  // The order in the header is free.
  EXPECT_NO_THROW(parse_safetensors(bytes_of(safetensors(two("[4,8]", "[0,4]"), 8)), "x"));
}

TEST(SafetensorsHostile, Bools) {
  std::string file = safetensors(header("\"BOOL\"", "[4]", "[0,4]"), 4);
  EXPECT_NO_THROW(parse_safetensors(bytes_of(file), "x"));
  file[file.size() - 2] = 2;
  expect_refusals({{file, "expected the bools of \"w\" to be 0 or 1, got 2 at element 2"}});
}

TEST(SafetensorsHostile, AFileIsNamedByItsPath) {
  const TempFolder folder;
  const auto path = folder / "a";
  write_text(path, "");
  EXPECT_EQ(error_text([&] { SafetensorsFile file(path); }),
            cat("safetensors: '", path.native(), "': expected at least 8 bytes, got 0"));
}

// Whatever is accepted must lie inside the file and cover what follows the header.
bool accepted(const std::string& file) {
  try {
    const auto bytes = bytes_of(file);
    const SafetensorsView view = parse_safetensors(bytes, "x");
    const std::byte* at = view.tensors.empty() ? nullptr : view.tensors[0].data.data();
    for (const SafetensorsTensor& tensor : view.tensors) {
      EXPECT_EQ(tensor.data.data(), at);
      EXPECT_EQ(size_t(numel(tensor.info.shape) * size_of(tensor.info.dtype)), tensor.data.size());
      at += tensor.data.size();
    }
    if (at != nullptr) EXPECT_EQ(at, bytes.data() + bytes.size());
    return true;
  } catch (const Error&) {
    return false;
  }
}

std::string small_file() {
  return safetensors(
      "{\"__metadata__\":{\"k\":\"v\"},\"w\":{\"dtype\":\"F32\",\"shape\":[2,1],\"data_offsets\":["
      "0,8]},"
      "\"b\":{\"dtype\":\"BOOL\",\"shape\":[3],\"data_offsets\":[8,11]}}  ",
      11);
}

TEST(SafetensorsHostile, EveryTruncationIsRefused) {
  const std::string file = small_file();
  for (size_t length = 0; length < file.size(); ++length) {
    EXPECT_FALSE(accepted(file.substr(0, length))) << length;
  }
  EXPECT_TRUE(accepted(file));
  EXPECT_FALSE(accepted(file + '\0'));
}

TEST(SafetensorsHostile, EveryByteReplacedByEveryOther) {
  const std::string good = small_file();
  const size_t data = good.size() - 11;
  int in_header = 0, in_data = 0;
  for (size_t i = 0; i < good.size(); ++i) {
    for (int value = 0; value < 256; ++value) {
      std::string file = good;
      file[i] = char(value);
      if (file != good) (i < data ? in_header : in_data) += accepted(file);
    }
  }
  // Harmless ones: letters of the names, other kinds of space, I32 or U32 for F32, ...
  EXPECT_GT(in_header, 0);
  EXPECT_LT(in_header, 1500);
  EXPECT_EQ(in_data, 8 * 255 + 3);  // any float, but a bool only the other bool
}

TEST(SafetensorsHostile, PairsOfReplacedBytesNeverCrash) {
  const std::string good = small_file();
  constexpr std::string_view kValues = "\0\n \"[]{},:-.0189e\\uFDIB\xff\x7f"sv;
  for (size_t i = 0; i < good.size() - 11; ++i) {
    for (size_t j = i + 1; j < good.size(); j += 3) {
      std::string file = good;
      file[i] = kValues[(i * 7 + j) % kValues.size()];
      file[j] = kValues[(i + j * 5) % kValues.size()];
      accepted(file);
    }
  }
}

}  // namespace
}  // namespace tessera
