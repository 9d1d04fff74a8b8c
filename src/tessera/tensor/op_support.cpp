#include "tessera/tensor/op_support.h"

#include <cstring>

#include "tessera/graph/scope.h"
#include "tessera/tensor/elementwise.h"

namespace tessera {

namespace {

// The folder that all of Tessera's sources are in, as the compiler was told it.
std::string_view library_folder() {
  constexpr std::string_view kOwn = "tensor/op_support.cpp";
  const std::string_view file = std::source_location::current().file_name();
  return file.substr(0, file.size() - kOwn.size());
}

// Lines of our own files and of the standard library's (a std::function) are not the user's.
bool is_users(std::string_view file) {
  static const std::string_view library = library_folder();
  return !file.starts_with(library) && file.find("/include/c++/") == std::string_view::npos;
}

}  // namespace

void set_line(const std::source_location& line) {
  if (is_users(line.file_name())) set_current_line({line.file_name(), line.line()});
}

In::In(const Tensor& tensor, std::source_location line) : Tensor(tensor) { set_line(line); }

int axis_of(std::string_view op, int64_t axis, int rank) {
  return with_origin([&] { return normalize_axis(op, axis, rank); });
}

Dims axes_of(std::string_view op, const Dims& axes, const Tensor& x) {
  return with_origin([&] { return normalize_axes(op, axes, x.rank()); });
}

bool broadcasts_to(const Shape& from, const Shape& shape) {
  const int added = shape.rank() - from.rank();
  for (int i = 0; added >= 0 && i < from.rank(); ++i) {
    if (from[i] != 1 && from[i] != shape[added + i]) return false;
  }
  return added >= 0;
}

Tensor literal(const Scalar& s, DType dtype) {
  with_origin([&] { return s.check_fits(dtype); });
  return Tensor(s.is_integer() ? graph::constant_int(dtype, s.integer())
                               : graph::constant(dtype, s.real()));
}

Tensor literal_beside(const Tensor& x, const Scalar& s) {
  DType dtype = x.dtype();
  if (!s.is_integer() && !is_float(dtype)) dtype = DType::f32;
  if (s.is_integer() && !s.is_boolean() && dtype == DType::boolean) dtype = DType::i64;
  return literal(s, dtype);
}

Tensor as_float(const Tensor& x) { return is_float(x.dtype()) ? x : cast(x, DType::f32); }

Tensor as_wide(const Tensor& x) {
  const Tensor real = as_float(x);
  return cast(real, compute_type(real.dtype()));
}

Tensor as_total(const Tensor& x) { return size_of(x.dtype()) == 1 ? cast(x, DType::i64) : x; }

}  // namespace tessera
