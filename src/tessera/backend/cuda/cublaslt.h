// cuBLASLt, NVIDIA's matrix products, opened at run time.
//
//   TESSERA_CUBLASLT_LIBRARY  the library to open instead of libcublasLt.so.13 and .so.12; 0: none
//   TESSERA_TF32              1: products of f32 may round their operands to 10 bits
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tessera/backend/cuda/driver.h"

namespace tessera::cuda {

struct LtAlgorithm {
  uint64_t data[8];
};
struct LtCandidate {
  LtAlgorithm algorithm;
  size_t workspace_bytes;
  int status;
  float waves;
  int reserved[4];
};

struct CublasLt {
  using Handle = struct HandleTag*;
  using Operation = struct OperationTag*;
  using Layout = struct LayoutTag*;
  using Preference = struct PreferenceTag*;
  size_t (*version)();
  int (*create)(Handle*);
  int (*operation_create)(Operation*, int compute, int scale);
  int (*operation_set)(Operation, int, const void*, size_t);
  int (*operation_destroy)(Operation);
  int (*layout_create)(Layout*, int type, uint64_t rows, uint64_t cols, int64_t ld);
  int (*layout_set)(Layout, int, const void*, size_t);
  int (*layout_destroy)(Layout);
  int (*preference_create)(Preference*);
  int (*preference_set)(Preference, int, const void*, size_t);
  int (*preference_destroy)(Preference);
  int (*candidates)(Handle, Operation, Layout a, Layout b, Layout c, Layout d, Preference,
                    int wanted, LtCandidate*, int* found);
  int (*multiply)(Handle, Operation, const void* alpha, const void* a, Layout, const void* b,
                  Layout, const void* beta, const void* c, Layout, void* d, Layout,
                  const LtAlgorithm*, void* workspace, size_t workspace_bytes, StreamId);
};

// Attributes and values of the functions above.
enum LtOperation : int {
  kLtTransposeA = 3,
  kLtTransposeB = 4,
  kLtEpilogueKind = 7,
  kLtRow = 8,  // a bias, or sums
  kLtBesidePointer = 11,
  kLtBesideStep = 12,
};
// What follows a product. With `beside` a matrix of the result's shape is written, or read.
enum LtEpilogue : int {
  kLtPlain = 1,
  kLtBias = 4,
  kLtReluBias = 6,
  kLtGeluBias = 36,
  kLtGeluBiasBeside = 164,
  kLtGeluSlope = 192,
  kLtGeluSlopeSums = 208,
  kLtSumsOfFirst = 256,   // over the depth of the product: an element for each row of the result
  kLtSumsOfSecond = 512,  // for each column
};
inline constexpr int kLtBeside = 128;
enum LtLayout : int { kLtBatchCount = 5, kLtBatchStride = 6 };
enum LtPreference : int {
  kLtWorkspaceBytes = 1,
  kLtAlignmentA = 5,
  kLtAlignmentB = 6,
  kLtAlignmentC = 7,
  kLtAlignmentD = 8,
};
inline constexpr int kLtF32 = 0, kLtF64 = 1, kLtF16 = 2, kLtBf16 = 14;
inline constexpr int kLtComputeF32 = 68, kLtComputeF64 = 70, kLtComputeTf32 = 77;

struct CublasLtLibrary {
  std::optional<CublasLt> lt;
  std::string absent;
};
const CublasLtLibrary& cublaslt_library();

}  // namespace tessera::cuda
