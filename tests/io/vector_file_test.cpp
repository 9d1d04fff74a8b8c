#include "tessera/io/vector_file.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "support/expect_error.h"
#include "support/random_source.h"
#include "temp_folder.h"
#include "tessera/io/npy.h"
#include "tessera/io/safetensors.h"

namespace tessera {
namespace {

template <class T>
std::string packed(std::initializer_list<T> values) {
  std::string bytes;
  for (const T& value : values) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  return bytes;
}

std::string counted_row(int32_t dim, const std::string& values) {
  return packed<int32_t>({dim}) + values;
}

std::string npy(DType dtype, const Shape& shape, const std::string& data) {
  return npy_preamble(dtype, shape) + data;
}

std::string f16_bits(std::initializer_list<float> values) {
  std::string bytes;
  for (const float value : values) bytes += packed<uint16_t>({f16(value).bits});
  return bytes;
}

std::string bf16_bits(std::initializer_list<float> values) {
  std::string bytes;
  for (const float value : values) bytes += packed<uint16_t>({bf16(value).bits});
  return bytes;
}

class VectorFileTest : public testing::Test {
 protected:
  std::filesystem::path write(std::string_view name, std::string_view bytes) const {
    write_text(folder_ / name, bytes);
    return folder_ / name;
  }

  std::vector<float> read(const VectorFile& file) const {
    std::vector<float> rows(static_cast<size_t>(file.rows() * file.dim()));
    file.read(0, file.rows(), rows.data());
    return rows;
  }

  // Without the path, which differs from run to run.
  std::string refusal(std::string_view name, std::string_view bytes,
                      const VectorFileOptions& options = {}) const {
    const auto path = write(name, bytes);
    std::string text = error_text([&] { read(VectorFile::open(path, options)); });
    const std::string quoted = cat("'", path.native(), "'");
    const size_t at = text.find(quoted);
    EXPECT_NE(at, std::string::npos) << text;
    return at == std::string::npos ? text : text.replace(at, quoted.size(), "F");
  }

  TempFolder folder_;
};

struct Good {
  std::string name, bytes;
  VectorFileOptions options;
  DType dtype;
};

// All of them hold (1, 2), (3, 4).
std::vector<Good> good_files() {
  const std::string f32 = packed<float>({1, 2, 3, 4}), u8 = packed<uint8_t>({1, 2, 3, 4});
  const std::string i8 = packed<int8_t>({1, 2, 3, 4}), head = packed<uint32_t>({2, 2});
  const std::string i32 = packed<int32_t>({1, 2, 3, 4});
  const SafetensorsInfo info = {"v", DType::bf16, {2, 2}};
  const std::string tensors = layout_safetensors(std::span(&info, 1), {}).head;
  return {
      {"a.npy", npy(DType::f32, {2, 2}, f32), {}, DType::f32},
      {"b.npy", npy(DType::f16, {2, 2}, f16_bits({1, 2, 3, 4})), {}, DType::f16},
      {"c.npy", npy(DType::u8, {2, 2}, u8), {}, DType::u8},
      {"d.npy", npy(DType::i8, {2, 2}, i8), {}, DType::i8},
      {"e.npy", npy(DType::i32, {2, 2}, i32), {}, DType::i32},
      {"a.safetensors", tensors + bf16_bits({1, 2, 3, 4}), {}, DType::bf16},
      {"a.fvecs",
       counted_row(2, packed<float>({1, 2})) + counted_row(2, packed<float>({3, 4})),
       {},
       DType::f32},
      {"a.bvecs",
       counted_row(2, packed<uint8_t>({1, 2})) + counted_row(2, packed<uint8_t>({3, 4})),
       {},
       DType::u8},
      {"a.ivecs",
       counted_row(2, packed<int32_t>({1, 2})) + counted_row(2, packed<int32_t>({3, 4})),
       {},
       DType::i32},
      {"a.fbin", head + f32, {}, DType::f32},
      {"a.u8bin", head + u8, {}, DType::u8},
      {"a.i8bin", head + i8, {}, DType::i8},
      {"a.raw", f32, {2, DType::f32, ""}, DType::f32},
      {"a.bin", bf16_bits({1, 2, 3, 4}), {2, DType::bf16, ""}, DType::bf16},
  };
}

TEST_F(VectorFileTest, ReadsEveryFormat) {
  for (const Good& good : good_files()) {
    SCOPED_TRACE(good.name);
    const VectorFile file = VectorFile::open(write(good.name, good.bytes), good.options);
    EXPECT_EQ(file.rows(), 2);
    EXPECT_EQ(file.dim(), 2);
    EXPECT_EQ(file.dtype(), good.dtype);
    EXPECT_EQ(read(file), (std::vector<float>{1, 2, 3, 4}));
    std::vector<float> one(2);
    file.read(1, 2, one.data());
    EXPECT_EQ(one, (std::vector<float>{3, 4}));
    const std::vector<int64_t> numbers = {1, 0, 1};
    std::vector<float> three(6);
    file.read(numbers, three.data());
    EXPECT_EQ(three, (std::vector<float>{3, 4, 1, 2, 3, 4}));
    file.read(1, 1, nullptr);
  }
}

TEST_F(VectorFileTest, ReadsManyRowsWithEveryThread) {
  const int64_t rows = 5000, dim = 37;
  std::vector<int8_t> values(static_cast<size_t>(rows * dim));
  for (size_t i = 0; i < values.size(); ++i) values[i] = int8_t(i * 31 % 251);
  const auto path = folder_ / "x.npy";
  write_npy(path, DType::i8, {rows, dim}, std::as_bytes(std::span(values)));
  EXPECT_EQ(read(VectorFile::open(path)), std::vector<float>(values.begin(), values.end()));
}

// A file cut anywhere is an error, and every byte changed is an error or other numbers; sanitizers
// see whether anything else happens.
TEST_F(VectorFileTest, CutOrChangedFilesAreRefusedOrHarmless) {
  for (const Good& good : good_files()) {
    SCOPED_TRACE(good.name);
    const bool rows_alone = good.name == "a.raw" || good.name == "a.bin";
    const int64_t row_bytes = int64_t(good.bytes.size()) / 2;
    for (size_t length = 0; length < good.bytes.size(); ++length) {
      // Files without a count of rows may be cut between them.
      const bool fits = (rows_alone || good.name.ends_with("vecs")) && int64_t(length) == row_bytes;
      if (fits) continue;
      const std::string text =
          refusal(good.name, std::string_view(good.bytes).substr(0, length), good.options);
      EXPECT_NE(text, "") << length;
    }
    RandomSource random(1);
    for (size_t at = 0; at < good.bytes.size(); ++at) {
      std::string bytes = good.bytes;
      bytes[at] = char(bytes[at] ^ char(random.between(1, 255)));
      const auto path = write(good.name, bytes);
      try {
        const VectorFile file = VectorFile::open(path, good.options);
        ASSERT_LE(file.rows() * file.dim(), 64);
        for (const float x : read(file)) EXPECT_TRUE(std::isfinite(x));
      } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find(good.name), std::string::npos) << error.what();
      }
    }
  }
}

TEST_F(VectorFileTest, NamesTheRowOfANumberThatIsNotFinite) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(refusal("a.fbin", packed<uint32_t>({3, 2}) + packed<float>({1, 2, 3, inf, nan, 0})),
            "vectors: F: expected finite numbers, got inf in row 1, column 1");
  EXPECT_EQ(refusal("a.npy", npy(DType::f16, {2, 2}, f16_bits({1, 2, 3, -inf}))),
            "vectors: F: expected finite numbers, got -inf in row 1, column 1");
  std::vector<float> many(300000, 1);
  many[123457] = nan;
  many[299999] = nan;
  const auto path = folder_ / "many.npy";
  write_npy(path, DType::f32, {100000, 3}, std::as_bytes(std::span(many)));
  const VectorFile file = VectorFile::open(path);
  EXPECT_NE(error_text([&] { read(file); }).find("in row 41152, column 1"), std::string::npos);
  const std::vector<int64_t> numbers = {7, 99999};
  std::vector<float> two(6);
  EXPECT_NE(error_text([&] { file.read(numbers, two.data()); }).find("in row 99999, column 2"),
            std::string::npos);
}

TEST_F(VectorFileTest, NamesTheRowOfAnotherDimension) {
  const std::string one = counted_row(2, packed<float>({1, 2}));
  const std::string other = counted_row(3, packed<float>({1, 2, 3}));
  EXPECT_EQ(refusal("a.fvecs", one + one + other + one),
            "vectors: F: expected row 2 to have dimension 2 like row 0, got 3 at byte 24");
  // As long as three rows of two.
  const std::string hidden = counted_row(1, packed<float>({1})) + packed<float>({0});
  EXPECT_EQ(refusal("a.fvecs", one + hidden + one),
            "vectors: F: expected row 1 to have dimension 2 like row 0, got 1 at byte 12");
  EXPECT_EQ(refusal("a.fvecs", one + one + one.substr(0, 7)),
            "vectors: F: the file ends inside row 2, which begins at byte 24");
  EXPECT_EQ(refusal("a.fvecs", one.substr(0, 3)),
            "vectors: F: the file ends inside the dimension of row 0");
  EXPECT_EQ(refusal("a.ivecs", packed<int32_t>({-1, 0})),
            "vectors: F: expected a dimension from 1 to 65536 at byte 0, got -1");
}

TEST_F(VectorFileTest, ChecksSizesAgainstTheFile) {
  EXPECT_EQ(refusal("a.fbin", packed<uint32_t>({2, 2}) + packed<float>({1, 2, 3})),
            "vectors: F: expected 16 bytes after the header for 2 rows of 2 f32, got 12");
  EXPECT_EQ(refusal("a.u8bin", packed<uint32_t>({4000000000u, 65536})),
            "vectors: F: expected 262144000000000 bytes after the header for 4000000000 rows of "
            "65536 u8, got 0");
  EXPECT_EQ(refusal("a.i8bin", packed<uint32_t>({1, 65537})),
            "vectors: F: expected a dimension from 1 to 65536 at byte 4, got 65537");
  EXPECT_EQ(refusal("a.i8bin", "abc"), "vectors: F: expected a header of 8 bytes, got 3");
  EXPECT_EQ(refusal("a.raw", packed<float>({1, 2, 3, 4, 5}), {2, DType::f32, ""}),
            "vectors: F: expected whole rows of 8 bytes, got 20 bytes, which end inside row 2");
  EXPECT_EQ(refusal("a.raw", packed<float>({1, 2})),
            "vectors: F: expected the dimension to be given: the file does not say it");
}

TEST_F(VectorFileTest, RefusesWhatIsNoRowsOfNumbers) {
  EXPECT_EQ(refusal("a.npy", npy(DType::f32, {0, 4}, "")),
            "vectors: F: expected at least one row, got none");
  EXPECT_EQ(refusal("a.fbin", packed<uint32_t>({0, 4})),
            "vectors: F: expected at least one row, got none");
  EXPECT_EQ(refusal("a.fvecs", ""), "vectors: F: expected at least one row, got none");
  EXPECT_EQ(refusal("a.raw", "", {4, DType::f32, ""}),
            "vectors: F: expected at least one row, got none");
  EXPECT_EQ(refusal("a.npy", npy(DType::f32, {2, 0}, "")),
            "vectors: F: expected a dimension from 1 to 65536, got 0");
  EXPECT_EQ(refusal("a.npy", npy(DType::f32, {4}, packed<float>({1, 2, 3, 4}))),
            "vectors: F: expected two dimensions (rows, dim), got shape (4,)");
  EXPECT_EQ(refusal("a.npy", npy(DType::f64, {1, 1}, packed<double>({1}))),
            "vectors: F: expected numbers of f32 f16 bf16 i8 u8 or i32, got f64");
  std::string fortran = npy(DType::f32, {2, 2}, packed<float>({1, 2, 3, 4}));
  fortran.replace(fortran.find("False"), 5, "True ");
  EXPECT_EQ(
      refusal("a.npy", fortran),
      "vectors: F: expected rows in C order, got Fortran order (numpy.ascontiguousarray turns "
      "it)");
  EXPECT_EQ(refusal("a.npy", npy(DType::u8, {1, 2}, "ab"), {3, DType::f32, ""}),
            "vectors: F: expected vectors of dimension 3, got 2");
  EXPECT_EQ(refusal("a.txt", "1 2 3"),
            "vectors: F: expected a file of .npy .safetensors .fvecs .bvecs .ivecs .fbin .u8bin "
            ".i8bin .raw .bin, got '.txt'");
}

TEST_F(VectorFileTest, ErrorsBeginWithThePath) {
  const auto path = write("a.csv", "1,2");
  EXPECT_EQ(
      error_text([&] { VectorFile::open(path); }).rfind(cat("vectors: '", path.native(), "': "), 0),
      0u);
  EXPECT_EQ(error_text([] { VectorFile::open("absent.npy"); }),
            "map: cannot read 'absent.npy': No such file or directory");
}

TEST_F(VectorFileTest, ChoosesATensor) {
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  const auto data = std::as_bytes(std::span(values));
  const auto path = folder_ / "t.safetensors";
  const std::vector<SafetensorsTensor> tensors = {{{"one", DType::f32, {3}}, data.first(12)},
                                                  {{"wide", DType::f32, {2, 3}}, data},
                                                  {{"tall", DType::f32, {3, 2}}, data}};
  write_safetensors(path, std::span(tensors).first(2));
  EXPECT_EQ(VectorFile::open(path).dim(), 3);
  write_safetensors(path, tensors);
  EXPECT_EQ(VectorFile::open(path, {{}, DType::f32, "tall"}).dim(), 2);
  const std::string bytes = read_text(path);
  EXPECT_EQ(refusal("t.safetensors", bytes),
            "vectors: F: expected one tensor of two dimensions, got 2: name the one to read");
  EXPECT_EQ(refusal("t.safetensors", bytes, {{}, DType::f32, "none"}),
            "vectors: F: expected a tensor 'none', got none of that name");
  EXPECT_EQ(refusal("t.safetensors", bytes, {{}, DType::f32, "one"}),
            "vectors: F: expected two dimensions (rows, dim), got shape (3,)");
}

}  // namespace
}  // namespace tessera
