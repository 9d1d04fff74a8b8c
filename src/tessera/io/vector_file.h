// Files of vectors: n rows of dim numbers, mapped, and converted to f32 when they are read.
//
//   .npy                      two dimensions, C order
//   .safetensors              one tensor of two dimensions
//   .fvecs .bvecs .ivecs      each row: i32 dim, then f32, u8 or i32 numbers
//   .fbin .u8bin .i8bin       u32 rows, u32 dim, then f32, u8 or i8 numbers
//   .raw .bin                 numbers alone; options say which and how many to a row
//
// Opening checks all sizes against the file. What lies in the rows (their own dim in .fvecs and the
// like, numbers that are not finite) is checked when they are read: a file larger than memory opens
// at once. Errors name the file and the row or byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "tessera/base/dtype.h"
#include "tessera/io/mapped_file.h"

namespace tessera {

struct VectorFileOptions {
  std::optional<int64_t> dim;  // of .raw and .bin, which need it; of others, what it must be
  DType dtype = DType::f32;    // of .raw and .bin
  std::string tensor;          // of .safetensors; empty: the only one of two dimensions
};

class VectorFile {
 public:
  static VectorFile open(const std::filesystem::path& path, const VectorFileOptions& options = {});

  int64_t rows() const { return rows_; }  // at least 1
  int64_t dim() const { return dim_; }    // 1 to kMaxDim
  DType dtype() const { return dtype_; }  // f32 f16 bf16 i8 u8 i32
  const std::filesystem::path& path() const { return path_; }

  // Rows [begin, end) as f32, row-major (end - begin, dim). An i32 beyond 2^24 is rounded.
  void read(int64_t begin, int64_t end, float* to) const;
  // The rows of these numbers, in their order.
  void read(std::span<const int64_t> numbers, float* to) const;

  static constexpr int64_t kMaxDim = 65536;

 private:
  VectorFile(std::filesystem::path path, MappedFile file)
      : path_(std::move(path)), file_(std::move(file)) {}

  template <class RowNumber>
  void convert(int64_t count, const RowNumber& number, float* to) const;
  void check_count(int64_t row) const;  // throws where the row says another dim
  void explain_row(int64_t row) const;  // throws: it could not be read

  struct Opener;

  std::filesystem::path path_;
  MappedFile file_;
  DType dtype_ = DType::f32;
  int64_t rows_ = 0, dim_ = 0;
  const std::byte* first_ = nullptr;  // the first number of row 0
  int64_t step_ = 0;                  // bytes from a row to the next
  bool counted_ = false;              // an i32 dim precedes each row
};

}  // namespace tessera
