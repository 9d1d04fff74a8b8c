#include "tessera/tensor/files.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "io/temp_folder.h"
#include "support/expect_error.h"
#include "tessera/io/npy.h"
#include "tessera/tensor/autograd.h"
#include "tessera/tensor/compiled.h"
#include "tessera/tensor/device.h"
#include "tessera/tensor/ops.h"
#include "tessera/tensor/storage.h"
#include "tessera/tensor/var.h"

namespace tessera {
namespace {

std::filesystem::path fixture(std::string_view name) {
  return std::filesystem::path(TESSERA_TEST_DIR) / "../io/data" / name;
}

// Bytes that count up from `first`.
Tensor counting(DType dtype, const Shape& shape, int first = 0) {
  std::vector<uint8_t> bytes(size_t(numel(shape) * size_of(dtype)));
  for (uint8_t& b : bytes) b = uint8_t(dtype == DType::boolean ? first++ % 2 : first++);
  return Tensor::from_bytes(dtype, shape, bytes.data());
}

std::vector<uint8_t> bytes_of(const Tensor& tensor) {
  std::vector<uint8_t> bytes(size_t(tensor.numel() * size_of(tensor.dtype())));
  tensor.read_bytes(tensor.dtype(), bytes.data());
  return bytes;
}

void expect_same(const Tensor& a, const Tensor& b) {
  EXPECT_EQ(a.dtype(), b.dtype());
  EXPECT_EQ(a.shape(), b.shape());
  EXPECT_EQ(bytes_of(a), bytes_of(b));
}

bool is_mapped(const Tensor& tensor) {
  return value_slot(tensor.value())->storage->buffer.memory->foreign;
}

std::vector<Shape> shapes_of_every_rank() {
  std::vector<Shape> shapes = {{}, {0}, {2, 0, 3}};
  Shape shape;
  for (int rank = 1; rank <= kMaxRank; ++rank) {
    shape.push_back(rank % 3 + 1);
    shapes.push_back(shape);
  }
  return shapes;
}

TEST(Files, NpyRoundTripsEveryTypeAndRank) {
  const TempFolder folder;
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (dtype == DType::bf16) continue;
    for (const Shape& shape : shapes_of_every_rank()) {
      const Tensor tensor = counting(dtype, shape, i);
      save_npy(folder / "a.npy", tensor);
      expect_same(load_npy(folder / "a.npy"), tensor);
    }
  }
}

TEST(Files, SafetensorsRoundTripsEveryTypeAndRank) {
  const TempFolder folder;
  NamedTensors tensors;
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    for (const Shape& shape : shapes_of_every_rank()) {
      tensors.emplace(cat(dtype, " ", shape), counting(dtype, shape, i));
    }
  }
  const FileMetadata metadata = {{"format", "pt"}, {"step", "12"}};
  save_safetensors(folder / "a", tensors, metadata);
  const TensorsWithMetadata loaded = load_safetensors_with_metadata(folder / "a");
  EXPECT_EQ(loaded.metadata, metadata);
  EXPECT_EQ(loaded.tensors.size(), tensors.size());
  for (const auto& [name, tensor] : tensors) expect_same(loaded.tensors.at(name), tensor);
  EXPECT_EQ(folder.files(), 1u);
}

TEST(Files, ReadsWhatNumPyWrites) {
  EXPECT_EQ(load_npy(fixture("f4.npy")).to_vector<float>(),
            (std::vector<float>{1.5f, -2, 3, 4, 5, 6.25f}));
  EXPECT_EQ(load_npy(fixture("i8_scalar.npy")).to_vector<int64_t>(),
            (std::vector<int64_t>{-(int64_t(1) << 62)}));
  EXPECT_EQ(load_npy(fixture("b1.npy")).to_vector<bool>(), (std::vector<bool>{true, false, true}));
  EXPECT_EQ(load_npy(fixture("f2_empty.npy")).shape(), (Shape{2, 0, 3}));
  for (const char* name : {"u4_version2.npy", "u4_version3.npy"}) {
    const Tensor tensor = load_npy(fixture(name));
    EXPECT_EQ(tensor.shape(), (Shape{2, 3}));
    EXPECT_EQ(tensor.to_vector<uint32_t>(), (std::vector<uint32_t>{1, 2, 3, 4, 5, 6}));
  }
  EXPECT_EQ(error_text([] { load_npy(fixture("f4_big_endian.npy")); }),
            cat("npy: '", fixture("f4_big_endian.npy").native(),
                "': expected little-endian data, got '>f4'"));
}

TEST(Files, FortranOrderComesWithItsShape) {
  const Tensor matrix = load_npy(fixture("f8_fortran.npy"));
  EXPECT_EQ(matrix.shape(), (Shape{2, 3}));
  EXPECT_EQ(matrix.to_vector<double>(), (std::vector<double>{1, 2, 3, 4, 5, 6}));
  const Tensor cube = load_npy(fixture("f4_fortran3.npy"));
  EXPECT_EQ(cube.shape(), (Shape{2, 3, 4}));
  std::vector<float> expected(24);
  for (size_t i = 0; i < expected.size(); ++i) expected[i] = float(i);
  EXPECT_EQ(cube.to_vector<float>(), expected);
  const TempFolder folder;
  save_npy(folder / "a.npy", cube);
  expect_same(load_npy(folder / "a.npy"), cube);
}

TEST(Files, WritesSafetensorsByteForByteAsTheReference) {
  const auto [tensors, metadata] = load_safetensors_with_metadata(fixture("mixed.safetensors"));
  const TempFolder folder;
  save_safetensors(folder / "a", tensors, metadata);
  EXPECT_EQ(read_text(folder / "a"), read_text(fixture("mixed.safetensors")));
}

TEST(Files, LoadsOnlyWhatIsAskedFor) {
  const auto path = fixture("mixed.safetensors");
  const NamedTensors some = load_safetensors(path, {"bytes", "h.0.attn.weight", "bytes"});
  EXPECT_EQ(some.size(), 2u);
  EXPECT_EQ(some.at("bytes").to_vector<uint8_t>(), (std::vector<uint8_t>{250, 251, 252}));
  EXPECT_TRUE(load_safetensors(path, {}).empty());
  EXPECT_EQ(error_text([&] {
              load_safetensors(path, {"bytes", "h.1\n"});
            }),
            cat("safetensors: '", path.native(),
                "': expected a tensor \"h.1\\n\", got none of that name"));
}

TEST(Files, AlignedTensorsAreTheFileItself) {
  const TempFolder folder;
  const Tensor weights = counting(DType::f32, {64, 64});
  save_safetensors(folder / "a", {{"w", weights}, {"flags", counting(DType::boolean, {3})}});
  save_npy(folder / "a.npy", weights);
  NamedTensors loaded = load_safetensors(folder / "a");
  EXPECT_TRUE(is_mapped(loaded.at("w")));
  EXPECT_TRUE(is_mapped(loaded.at("flags")));
  EXPECT_TRUE(is_mapped(load_npy(folder / "a.npy")));
  EXPECT_FALSE(is_mapped(loaded.at("w").detach()));
}

TEST(Files, UnalignedTensorsAreCopied) {
  const NamedTensors tensors = load_safetensors(fixture("every_type.safetensors"));
  EXPECT_EQ(tensors.size(), 12u);
  int copied = 0;
  for (const auto& [name, tensor] : tensors) {
    if (name == "scalar" || name == "of BOOL" || tensor.numel() == 0) continue;
    expect_same(tensor, counting(tensor.dtype(), {2, 3}));
    copied += !is_mapped(tensor);
    EXPECT_TRUE(is_mapped(tensor) || size_of(tensor.dtype()) > 1);
  }
  EXPECT_GE(copied, 7);
  EXPECT_EQ(tensors.at("scalar").item(), double(int8_t(0x85)));
}

TEST(Files, AMappedTensorOutlivesTheFileAndItsNeighbours) {
  Tensor one;
  const Tensor expected = counting(DType::i32, {50, 40}, 3);
  {
    const TempFolder folder;
    save_safetensors(folder / "a", {{"a", counting(DType::f64, {100})}, {"b", expected}});
    one = load_safetensors(folder / "a").at("b");
  }
  EXPECT_TRUE(is_mapped(one));
  expect_same(one, expected);
  EXPECT_EQ((one + one).to_vector<int32_t>()[7], 2 * expected.to_vector<int32_t>()[7]);
}

TEST(Files, SavingToWhereATensorCameFromKeepsItsValue) {
  const TempFolder folder;
  const auto path = folder / "a";
  save_safetensors(path, {{"w", tensor(std::vector<float>{1, 2, 3})}});
  NamedTensors loaded = load_safetensors(path);
  ASSERT_TRUE(is_mapped(loaded.at("w")));
  save_safetensors(path, {{"w", loaded.at("w") * 2}, {"more", loaded.at("w")}});
  EXPECT_EQ(loaded.at("w").to_vector<float>(), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(load_safetensors(path).at("w").to_vector<float>(), (std::vector<float>{2, 4, 6}));
}

// Every way of writing to a Var that began as a mapped tensor: neither the tensor nor the file may
// change, and a write into the mapping would crash.
TEST(Files, VarsNeverWriteIntoTheFile) {
  const TempFolder folder;
  const auto path = folder / "a.npy";
  save_npy(path, tensor(std::vector<float>{1, 2, 3, 4}));
  const std::string before = read_text(path);
  const Tensor mapped = load_npy(path);
  ASSERT_TRUE(is_mapped(mapped));
  const Var var(mapped, "w");
  EXPECT_FALSE(is_mapped(var.value()));
  var.set(9);
  var.assign(var.value() + 1.0f);
  EXPECT_EQ(var.value().to_vector<float>(), std::vector<float>(4, 10.0f));
  var.assign(mapped);
  flush();
  EXPECT_FALSE(is_mapped(var.value()));
  var.set(5);
  const auto step = compile([&](const Tensor& x) {
    const Tensor loss = sum(square(var.value() * mapped + x));
    var.assign(var.value() - 0.01f * grad(loss, {var})[0]);
    return loss;
  });
  double last = 1e9;
  for (int i = 0; i < 3; ++i) {
    const double loss = step(mapped).item();
    EXPECT_LT(loss, last);
    last = loss;
  }
  EXPECT_EQ(mapped.to_vector<float>(), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(read_text(path), before);
}

TEST(Files, SavesPendingAndLazyValues) {
  const TempFolder folder;
  const Var var(tensor(std::vector<float>{1, 2}), "w");
  var.assign(var.value() * 3.0f);
  save_safetensors(folder / "a", {{"w", var}, {"sum", sum(var)}, {"t", var.value() + 1.0f}});
  const NamedTensors loaded = load_safetensors(folder / "a");
  EXPECT_EQ(loaded.at("w").to_vector<float>(), (std::vector<float>{3, 6}));
  EXPECT_EQ(loaded.at("sum").item(), 9.0);
  EXPECT_EQ(loaded.at("t").to_vector<float>(), (std::vector<float>{4, 7}));
}

TEST(Files, ErrorsNameTheFileAndLeaveTheOldOne) {
  const TempFolder folder;
  const auto path = folder / "a";
  EXPECT_EQ(error_text([&] { load_safetensors(path); }),
            cat("map: cannot read '", path.native(), "': No such file or directory"));
  write_text(path, "not a file of ours");
  EXPECT_EQ(error_text([&] { load_npy(path); }),
            cat("npy: '", path.native(), "': expected a .npy file, got other leading bytes"));
  EXPECT_EQ(error_text([&] { load_safetensors(path); }),
            cat("safetensors: '", path.native(),
                "': expected a header of at most 100000000 bytes, got 7594793423135338350: is it a "
                "safetensors file?"));
  EXPECT_EQ(error_text([&] { save_npy(path, counting(DType::bf16, {2})); }),
            "npy: expected a type that NumPy has, got bf16");
  EXPECT_EQ(error_text([&] {
              save_safetensors(path, {{"w", Tensor()}});
            }),
            "save: expected a tensor for \"w\", got an empty handle");
  EXPECT_EQ(read_text(path), "not a file of ours");
  EXPECT_EQ(folder.files(), 1u);
}

// The end of a mapped file may be the end of a page, and what follows may be unmapped: kernels must
// not read a byte behind a tensor.
class PageEnd {
 public:
  PageEnd() : page_(size_t(::sysconf(_SC_PAGESIZE))) {
    void* address =
        ::mmap(nullptr, 5 * page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    TESSERA_ASSERT(address != MAP_FAILED);
    begin_ = static_cast<std::byte*>(address);
    TESSERA_ASSERT(::mprotect(begin_ + 4 * page_, page_, PROT_NONE) == 0);
  }
  ~PageEnd() { ::munmap(begin_, 5 * page_); }
  PageEnd(const PageEnd&) = delete;
  PageEnd& operator=(const PageEnd&) = delete;

  // A tensor whose last byte is the last of the page. Only one at a time.
  Tensor ending_here(const Tensor& source) {
    const std::vector<uint8_t> bytes = bytes_of(source);
    std::byte* at = begin_ + 4 * page_ - bytes.size();
    std::memcpy(at, bytes.data(), bytes.size());
    DeviceContext& context = device_context(Device());
    auto storage = std::make_shared<Storage>();
    const auto memory = std::make_shared<Memory>(&context.backend, at, int64_t(bytes.size()), true);
    storage->buffer = {memory, 0, int64_t(bytes.size())};
    storage->device = &context;
    return Tensor(leaf_of(source.value().type(), std::move(storage)));
  }

 private:
  size_t page_;
  std::byte* begin_ = nullptr;
};

TEST(Files, KernelsReadNothingBehindAMappedTensor) {
  PageEnd page;
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    for (int64_t n = 1; n <= 37; ++n) {
      std::vector<float> values(size_t(3 * n));
      for (size_t i = 0; i < values.size(); ++i) values[i] = float(int(i % 13) - 6) / 4;
      const Tensor plain = tensor(values, {3, n}).to(dtype);
      const Tensor mapped = page.ending_here(plain);
      const auto results = [&](const Tensor& x) {
        return std::vector<Tensor>{x + x,
                                   exp(x),
                                   sum(x),
                                   max(x, {0}),
                                   mean(x, {1}),
                                   softmax(x, 1),
                                   transpose(x) + transpose(x),
                                   slice(x, 1, 0, n, 2) * 2,
                                   x.to(DType::f32) - 1,
                                   matmul(x, transpose(plain)),
                                   matmul(plain, transpose(x)),
                                   matmul(transpose(plain), x),
                                   matmul(transpose(x), plain)};
      };
      const std::vector<Tensor> expected = results(plain), got = results(mapped);
      for (size_t i = 0; i < expected.size(); ++i) expect_same(got[i], expected[i]);
    }
  }
}

TEST(Files, IntegerKernelsReadNothingBehindAMappedTensor) {
  PageEnd page;
  for (const DType dtype : {DType::i8, DType::i32, DType::i64, DType::u8, DType::u32}) {
    for (int64_t n = 1; n <= 70; ++n) {
      const Tensor plain = counting(DType::u8, {n}).to(dtype);
      const Tensor mapped = page.ending_here(plain);
      expect_same(mapped + mapped, plain + plain);
      expect_same(sum(mapped), sum(plain));
      expect_same(mapped.to(DType::f32), plain.to(DType::f32));
      expect_same(mapped == mapped, plain == plain);
    }
  }
}

TEST(Files, AMissingNameIsAnErrorWithTheNamesThereAre) {
  const NamedTensors tensors = {{"bias", ones({1})}, {"weight", ones({1})}};
  EXPECT_TRUE(tensors.at("bias").defined());
  EXPECT_EQ(error_text([&] { tensors.at("wieght"); }),
            "no tensor is called \"wieght\"; of 2 there are \"bias\", \"weight\"");
}

}  // namespace
}  // namespace tessera
