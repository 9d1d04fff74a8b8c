// What becomes of a product where it was written, block by block, while the blocks are still near.
#pragma once

#include "tessera/backend/cpu/kernels/product_blocks.h"
#include "tessera/backend/cpu/loops.h"
#include "tessera/base/dtype.h"

namespace tessera::cpu {

// Of a product c (m, n). Each row of c and of x is contiguous; rows may lie apart. Strides are in
// elements.
struct Epilogue {
  FinishLoop finish;
  DType dtype;  // f32 or f64
  int64_t m, n;
  char* c;
  int64_t c_row;
  const char* bias = nullptr;  // (n), for loops of "linear"
  char* sum = nullptr;         // (m, n), packed, or null: c before the activation
  bool streams = false;        // the sum goes past the caches
  const char* x = nullptr;     // (m, n), for the loop of "linear_slope"
  int64_t x_row = 0;
  // The sums over every `group` rows, (ceil(m / group), n), or null. Groups and the order in which
  // they are summed up are the same for any number of threads.
  char* partial_sums = nullptr;
  int64_t group = 1;
};

// Of the elements of `r`, which are complete. REQUIRES r.row to be a multiple of the group.
void finish_block(const Epilogue& epilogue, const Region& r);

// Of all of c, by all threads.
void finish_all(const Epilogue& epilogue);

// sums (n), from the partial ones.
void sum_groups(const Epilogue& epilogue, char* sums);

}  // namespace tessera::cpu
