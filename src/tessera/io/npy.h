// NumPy's .npy files, versions 1 to 3: f2 f4 f8 i1 i4 i8 u1 u4 b1, little-endian, in C or
// Fortran order. Every header field is checked against the file before it is believed; whatever
// else NumPy can store (other types, big-endian, pickles) is refused with a sentence that says what
// was found.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "tessera/base/dtype.h"
#include "tessera/base/shape.h"
#include "tessera/io/mapped_file.h"

namespace tessera {

struct NpyView {
  DType dtype;
  Shape shape;
  bool fortran_order;  // the first axis is contiguous, not the last
  // Exactly numel(shape) elements; bools are 0 or 1. NumPy aligns it to 64 bytes, other writers may
  // not: copy from it, or check the address before reading it as an array of T.
  std::span<const std::byte> data;
};

struct NpyFile {
  MappedFile file;  // owns the bytes that view.data shows
  NpyView view;
};

NpyFile read_npy(const std::filesystem::path& path);

// The array in the bytes of a whole .npy file, without a copy. `name` stands for it in errors.
NpyView parse_npy(std::span<const std::byte> file, std::string_view name);

// What comes before the data of an array in C order: a multiple of 64 bytes. Throws for bf16.
std::string npy_preamble(DType dtype, const Shape& shape);

// Replaces `path` atomically. bf16 is refused: NumPy has no such type.
void write_npy(const std::filesystem::path& path, DType dtype, const Shape& shape,
               std::span<const std::byte> data);

}  // namespace tessera
