// The text in a .npy header: a Python dict literal with exactly three keys.
#pragma once

#include <string>
#include <string_view>

#include "tessera/base/shape.h"

namespace tessera {

struct NpyHeader {
  std::string descr;  // NumPy's name of the element type, such as "<f4"
  bool fortran_order;
  Shape shape;
};

// Throws Error, prefixed with "npy: <name>: ", unless `text` is such a dict. The extents are
// at least 0; whether they fit the file is for the caller to check.
NpyHeader parse_npy_header(std::string_view text, std::string_view name);

// The dict as NumPy writes it, without padding and newline.
std::string format_npy_header(const NpyHeader& header);

}  // namespace tessera
