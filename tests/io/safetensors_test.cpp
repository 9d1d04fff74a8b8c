#include "tessera/io/safetensors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "support/expect_error.h"
#include "temp_folder.h"
#include "tessera/base/half.h"

namespace tessera {
namespace {

std::filesystem::path fixture(std::string_view name) {
  return std::filesystem::path(TESSERA_TEST_DIR) / "data" / name;
}

template <class T>
std::vector<T> values_of(const SafetensorsView& view, std::string_view name) {
  const SafetensorsTensor* tensor = view.find(name);
  if (tensor == nullptr || tensor->info.dtype != dtype_of<T>) {
    ADD_FAILURE() << name;
    return {};
  }
  std::vector<T> values(tensor->data.size() / sizeof(T));
  std::memcpy(values.data(), tensor->data.data(), tensor->data.size());
  return values;
}

// A tensor whose bytes count up from `first`.
struct Counting {
  SafetensorsInfo info;
  std::vector<std::byte> bytes;

  Counting(std::string name, DType dtype, const Shape& shape, int first = 0)
      : info{std::move(name), dtype, shape}, bytes(size_t(numel(shape) * size_of(dtype))) {
    for (std::byte& b : bytes) b = std::byte(dtype == DType::boolean ? first++ % 2 : first++);
  }
};

std::vector<SafetensorsTensor> views_of(const std::vector<Counting>& tensors) {
  std::vector<SafetensorsTensor> views;
  for (const Counting& tensor : tensors) views.push_back({tensor.info, tensor.bytes});
  return views;
}

void expect_holds(const SafetensorsView& view, const std::vector<Counting>& tensors) {
  EXPECT_EQ(view.tensors.size(), tensors.size());
  for (const Counting& tensor : tensors) {
    const SafetensorsTensor* found = view.find(tensor.info.name);
    ASSERT_NE(found, nullptr) << tensor.info.name;
    EXPECT_EQ(found->info.dtype, tensor.info.dtype);
    EXPECT_EQ(found->info.shape, tensor.info.shape);
    EXPECT_TRUE(std::ranges::equal(found->data, tensor.bytes)) << tensor.info.name;
  }
}

TEST(Safetensors, ReadsWhatTheReferenceWrites) {
  const SafetensorsFile file(fixture("mixed.safetensors"));
  EXPECT_EQ(file.view.metadata, (SafetensorsMetadata{{"made \"by\"", "reference\n"}}));
  EXPECT_EQ(file.view.tensors.size(), 7u);
  EXPECT_EQ(values_of<float>(file.view, "h.0.attn.weight"),
            (std::vector<float>{0.5f, -1, 2, 3.25f}));
  EXPECT_EQ(file.view.find("h.0.attn.weight")->info.shape, (Shape{2, 2}));
  EXPECT_EQ(float(values_of<f16>(file.view, "h.0.attn.bias").at(1)), 8.0f);
  EXPECT_EQ(values_of<int64_t>(file.view, "ids"), (std::vector<int64_t>{7, -(int64_t(1) << 40)}));
  EXPECT_EQ(values_of<uint32_t>(file.view, "caf\u00e9"), (std::vector<uint32_t>{3}));
  EXPECT_EQ(file.view.find("caf\u00e9")->info.shape, Shape{});
  EXPECT_EQ(file.view.find("none")->info.shape, (Shape{0, 4}));
  EXPECT_EQ(values_of<uint8_t>(file.view, "bytes"), (std::vector<uint8_t>{250, 251, 252}));
  EXPECT_EQ(file.view.find("mask")->info.dtype, DType::boolean);
  EXPECT_EQ(file.view.find("absent"), nullptr);
}

TEST(Safetensors, WritesByteForByteAsTheReference) {
  const SafetensorsFile file(fixture("mixed.safetensors"));
  std::vector<SafetensorsTensor> shuffled = file.view.tensors;
  std::ranges::reverse(shuffled);
  const TempFolder folder;
  write_safetensors(folder / "a", shuffled, file.view.metadata);
  EXPECT_EQ(read_text(folder / "a"), read_text(fixture("mixed.safetensors")));
  EXPECT_EQ(folder.files(), 1u);
}

TEST(Safetensors, ReadsEveryTypeAtAnyAlignment) {
  const SafetensorsFile file(fixture("every_type.safetensors"));
  EXPECT_EQ(file.view.metadata, (SafetensorsMetadata{{"format", "pt"}}));
  std::vector<Counting> expected = {
      {"of F64", DType::f64, {2, 3}}, {"of F32", DType::f32, {2, 3}},
      {"of F16", DType::f16, {2, 3}}, {"of BF16", DType::bf16, {2, 3}},
      {"of I64", DType::i64, {2, 3}}, {"of I32", DType::i32, {2, 3}},
      {"of I8", DType::i8, {2, 3}},   {"of U32", DType::u32, {2, 3}},
      {"of U8", DType::u8, {2, 3}},   {"of BOOL", DType::boolean, {2}, 1},
      {"empty", DType::f32, {2, 0}},  {"scalar", DType::i8, {}, 0x85}};
  expect_holds(file.view, expected);
}

TEST(Safetensors, RoundTripsEveryTypeAndRank) {
  std::vector<Counting> tensors;
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    Shape shape;
    for (int rank = 0; rank <= kMaxRank; ++rank) {
      tensors.emplace_back(cat(dtype, " ", rank), dtype, shape, i + rank);
      if (rank < kMaxRank) shape.push_back(rank % 3 + 1);
    }
    tensors.emplace_back(cat(dtype, " empty"), dtype, Shape{3, 0, 2});
  }
  const SafetensorsMetadata metadata = {{"", ""}, {"a", "\u00e9\n\"\\"}, {"format", "pt"}};
  const TempFolder folder;
  write_safetensors(folder / "a", views_of(tensors), metadata);
  const SafetensorsFile file(folder / "a");
  EXPECT_EQ(file.view.metadata, metadata);
  expect_holds(file.view, tensors);
  for (const SafetensorsTensor& tensor : file.view.tensors) {
    const auto address = reinterpret_cast<uintptr_t>(tensor.data.data());
    EXPECT_EQ(address % size_t(size_of(tensor.info.dtype)), 0u) << tensor.info.name;
  }
}

TEST(Safetensors, AFileWithoutTensors) {
  const TempFolder folder;
  write_safetensors(folder / "a", {}, {});
  EXPECT_EQ(read_text(folder / "a"), std::string("\x08\0\0\0\0\0\0\0{}      ", 16));
  EXPECT_TRUE(SafetensorsFile(folder / "a").view.tensors.empty());
}

TEST(Safetensors, TheBytesOutliveAMoveOfTheFile) {
  const TempFolder folder;
  const std::vector<Counting> tensors = {{"a", DType::i32, {5}, 7}};
  write_safetensors(folder / "a", views_of(tensors));
  SafetensorsFile file(folder / "a");
  const SafetensorsFile moved = std::move(file);
  expect_holds(moved.view, tensors);
}

TEST(Safetensors, AsksForOneTensorAtATimeInTheOrderOfTheFile) {
  const std::vector<Counting> tensors = {
      {"b", DType::u8, {3}}, {"z", DType::f64, {2}}, {"a", DType::u8, {1}}, {"y", DType::i64, {1}}};
  std::vector<SafetensorsInfo> infos;
  for (const Counting& tensor : tensors) infos.push_back(tensor.info);
  std::vector<size_t> asked;
  const TempFolder folder;
  write_safetensors(folder / "a", infos, {}, [&](size_t i) {
    asked.push_back(i);
    return std::span<const std::byte>(tensors[i].bytes);
  });
  EXPECT_EQ(asked, (std::vector<size_t>{3, 1, 2, 0}));
  expect_holds(SafetensorsFile(folder / "a").view, tensors);
}

TEST(Safetensors, RefusesToWriteWhatItCannotReadBack) {
  const TempFolder folder;
  write_text(folder / "a", "old");
  const auto refusal = [&](const std::vector<SafetensorsTensor>& tensors) {
    const std::string text = error_text([&] { write_safetensors(folder / "a", tensors); });
    EXPECT_EQ(read_text(folder / "a"), "old");
    EXPECT_EQ(folder.files(), 1u);
    return text;
  };
  const std::vector<std::byte> bytes(8);
  const auto of = [&](std::string name, const Shape& shape) {
    return SafetensorsTensor{{std::move(name), DType::f32, shape}, bytes};
  };
  EXPECT_EQ(refusal({of("w", {2}), of("w", {2})}),
            "safetensors: expected every name once, got \"w\" again");
  EXPECT_EQ(refusal({of("__metadata__", {2})}),
            "safetensors: expected another name for a tensor than \"__metadata__\"");
  EXPECT_EQ(refusal({of("\xff", {2})}), "json: expected UTF-8 to write, got \"\\u00ff\"");
  EXPECT_EQ(refusal({of("w", {3})}),
            "safetensors: expected the bytes of f32 (3,) for \"w\", got 8");
  EXPECT_EQ(refusal({of("w", {int64_t(1) << 62})}),
            "safetensors: expected at most 2^63 - 1 bytes to write, got more with \"w\"");
  const Shape huge = {int64_t(1) << 60};
  EXPECT_EQ(refusal({of("u", huge), of("v", huge)}),
            "safetensors: expected at most 2^63 - 1 bytes to write, got more with \"v\"");
  EXPECT_EQ(refusal({of(std::string(100'000'000, 'x'), {2})}),
            "safetensors: expected a header to write of at most 100000000 bytes, got 100000056");
}

TEST(Safetensors, AFailureWhileWritingLeavesTheOldFile) {
  const TempFolder folder;
  write_text(folder / "a", "old");
  const std::vector<SafetensorsInfo> infos = {{"a", DType::u8, {3}}, {"b", DType::u8, {3}}};
  const std::vector<std::byte> bytes(3);
  EXPECT_EQ(error_text([&] {
              write_safetensors(folder / "a", infos, {}, [&](size_t i) {
                if (i == 1) fail("the device is gone");
                return std::span<const std::byte>(bytes);
              });
            }),
            "the device is gone");
  EXPECT_EQ(read_text(folder / "a"), "old");
  EXPECT_EQ(folder.files(), 1u);
}

}  // namespace
}  // namespace tessera
