// Indices of any integer type, read as int64_t.
#pragma once

#include <string_view>

#include "tessera/kernel/kernel_call.h"

namespace tessera::cpu {

class IndexReader {
 public:
  explicit IndexReader(const OperandView& operand)
      : dtype_(operand.dtype), offset_(operand.view.offset) {}

  // The element `at` elements behind the view's first one.
  int64_t read(const char* base, int64_t at) const {
    switch (dtype_) {
      case DType::i8: return typed<int8_t>(base, at);
      case DType::i32: return typed<int32_t>(base, at);
      case DType::u8: return typed<uint8_t>(base, at);
      case DType::u32: return typed<uint32_t>(base, at);
      default: return typed<int64_t>(base, at);
    }
  }

  // The view's first element where indices are i64, else null.
  const int64_t* plain(const char* base) const {
    return dtype_ == DType::i64 ? reinterpret_cast<const int64_t*>(base) + offset_ : nullptr;
  }

 private:
  template <class T>
  int64_t typed(const char* base, int64_t at) const {
    return int64_t(reinterpret_cast<const T*>(base)[offset_ + at]);
  }

  DType dtype_;
  int64_t offset_;
};

inline void expect_index(const KernelCall& call, int operand, std::string_view what) {
  const DType got = call.operands[size_t(operand)].dtype;
  if (!is_integer(got)) fail(call.kernel, ": expected ", what, " of an integer type, got ", got);
}

}  // namespace tessera::cpu
