// One matrix product over strided memory: what matmul does for each element of its batch.
#pragma once

#include <cstdint>

#include "tessera/base/dtype.h"

namespace tessera::cpu {

// c (m, n) = a (m, k) b (k, n). Strides are in elements and may be 0 or negative; c overlaps
// neither operand and has no stride 0 over an extent above 1.
struct Product {
  DType dtype;
  int64_t m, n, k;
  const char* a;
  int64_t a_row, a_column;
  const char* b;
  int64_t b_row, b_column;
  char* c;
  int64_t c_row, c_column;
};

// The same as c^T = b^T a^T.
Product transposed(const Product& product);

// Whether b's rows begin at the same set of a first-level cache, which then holds few of them.
bool rows_collide(const Product& product);

struct Epilogue;

// Floating types: packed and blocked; f16 and bf16 accumulate in f32. `epilogue` of the same c, or
// null, is applied to it: of f32 and f64, in groups of epilogue_group() rows.
void multiply_floats(const Product& product, const Epilogue* epilogue = nullptr);

// The rows at whose multiples c is cut into blocks.
int64_t epilogue_group(DType dtype);

// bf16 by the processor's instructions for it, accumulated in f32; returns whether there are any
// and the product is worth packing for them.
bool multiply_bf16(const Product& product);

// Integer types; they wrap.
void multiply_integers(const Product& product);

// oneDNN, when it is asked for or faster, was found and takes the operands as they lie: returns
// whether it did the work.
bool multiply_with_onednn(const Product& product);

// Who computes f32 products: `automatic` follows TESSERA_ONEDNN. For tests and measurements; not
// thread safe.
enum class ProductLibrary { automatic, own, onednn };
void set_product_library(ProductLibrary library);

// "2.6.3" and the like, or why it is not in use; one sentence for Target::description.
const char* onednn_status();

}  // namespace tessera::cpu
