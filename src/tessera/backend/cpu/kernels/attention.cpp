#include "tessera/backend/cpu/kernels/attention.h"

#include <cstring>

#include "tessera/base/attention_options.h"

namespace tessera::cpu {

AttentionCall::AttentionCall(const KernelCall& given, int first, int rest)
    : call(given), q(first), k(first + 1), v(first + 2) {
  const int64_t options = call.attrs.axis;
  outputs = rest + attention_operands(options);
  if (int(call.operands.size()) != outputs + call.outputs) {
    fail(call.kernel, ": expected ", outputs + call.outputs, " operands for options ", options,
         ", got ", call.operands.size());
  }
  dtype = call.operands[size_t(q)].dtype;
  expect_float(call, q, "q");
  for (const int operand : {q, k, v}) {
    const Shape& shape = call.operands[size_t(operand)].view.shape;
    if (shape.rank() != 4 || shape.contains(0)) {
      fail(call.kernel, ": expected q, k and v of 4 dimensions that are not empty, got ", shape);
    }
    expect_dtype(call, operand, "k and v", dtype);
  }
  const Shape &qs = call.operands[size_t(q)].view.shape, &ks = call.operands[size_t(k)].view.shape;
  batch = qs[0];
  heads = qs[1];
  queries = qs[2];
  depth = qs[3];
  groups = ks[1];
  keys = ks[2];
  values = call.operands[size_t(v)].view.shape[3];
  causal = (options & kAttentionCausal) != 0;
  if (heads % groups != 0) {
    fail(call.kernel, ": expected heads that divide into ", groups, " groups, got ", heads);
  }
  expect_shape(call, k, "k", {batch, groups, keys, depth});
  expect_shape(call, v, "v", {batch, groups, keys, values});
  if (options & kAttentionMask) {
    mask = rest++;
    const bool is_bool = call.operands[size_t(mask)].dtype == DType::boolean;
    expect_dtype(call, mask, "a mask", is_bool ? DType::boolean : compute_type(dtype));
    expect_shape(call, mask, "a mask", {batch, heads, queries, keys});
  }
  if (options & kAttentionLengths) {
    lengths = rest++;
    expect_dtype(call, lengths, "lengths", DType::i64);
    expect_shape(call, lengths, "lengths", {batch});
  }
  if (options & kAttentionDropout) {
    key = rest;
    for (const int operand : {key, key + 1}) {
      expect_dtype(call, operand, "key and offset", DType::i64);
      expect_shape(call, operand, "key and offset", {});
    }
  }
}

int64_t AttentionRun::scalar(int operand) const {
  int64_t value = 0;
  std::memcpy(&value, at[size_t(operand)] + 8 * call.call.operands[size_t(operand)].view.offset,
              sizeof value);
  return value;
}

int64_t AttentionRun::key_count(int64_t b) const {
  if (call.lengths < 0) return call.keys;
  const View& view = call.call.operands[size_t(call.lengths)].view;
  int64_t length = 0;
  std::memcpy(&length, at[size_t(call.lengths)] + 8 * (view.offset + b * view.strides[0]),
              sizeof length);
  return std::clamp<int64_t>(length, 0, call.keys);
}

namespace {

Storage storage_of(DType dtype) {
  switch (dtype) {
    case DType::f64: return Storage::bytes8;
    case DType::f16: return Storage::f16;
    case DType::bf16: return Storage::bf16;
    default: return Storage::bytes4;
  }
}

const GemmLoops<float>& gemm_of(float) { return gemms().f32; }
const GemmLoops<double>& gemm_of(double) { return gemms().f64; }
const AttentionLoops<float>& loops_of(float) { return attentions().f32; }
const AttentionLoops<double>& loops_of(double) { return attentions().f64; }

}  // namespace

template <class T>
AttentionTools<T>::AttentionTools(const AttentionCall& call)
    : gemm(gemm_of(T())),
      loops(loops_of(T())),
      load(cpu::loops().load[int(storage_of(call.dtype))]),
      store(cpu::loops().store[int(storage_of(call.dtype))]),
      copy(cpu::loops().load[int(sizeof(T) == 4 ? Storage::bytes4 : Storage::bytes8)]),
      plain(!is_half(call.dtype)) {
  TESSERA_ASSERT(gemm.columns <= kMaxAttentionWidth);
}

template <class T>
bool AttentionTools<T>::reads(const AttentionCall& call, int operand) const {
  // Rows a whole number of pages apart would meet in the same few lines of the first-level cache.
  constexpr int64_t kPage = 4096;
  return plain && call.stride(operand, 3) == 1 &&
         call.stride(operand, 2) * int64_t(sizeof(T)) % kPage != 0;
}

template <class T>
bool AttentionTools<T>::reads_vectors(const AttentionCall& call, int operand) const {
  const int64_t columns = call.call.operands[size_t(operand)].view.shape[3];
  return reads(call, operand) && (gemm.reads_exactly || columns % gemm.lanes == 0);
}

template <class T>
bool AttentionTools<T>::packed(const AttentionCall& call, int operand) const {
  const View& view = call.call.operands[size_t(operand)].view;
  return plain && view.strides[3] == 1 && view.strides[2] == view.shape[3];
}

template <class T>
void AttentionTools<T>::store_rows(const AttentionRun& run, int operand, char* matrix,
                                   int64_t first, int64_t n, const T* from) const {
  const View& view = run.call.call.operands[size_t(operand)].view;
  const int64_t columns = view.shape[3], row = view.strides[2];
  store(matrix + first * row * size(), from, {n, columns, row, view.strides[3], columns, 1});
}

template <class T>
void AttentionTools<T>::copy_rows(const AttentionRun& run, int operand, const char* matrix,
                                  int64_t first, int64_t n, T* to) const {
  const int64_t row = run.call.stride(operand, 2), column = run.call.stride(operand, 3);
  const int64_t columns = run.call.call.operands[size_t(operand)].view.shape[3];
  load(to, matrix + first * row * size(), {n, columns, columns, 1, row, column});
}

template <class T>
Rows<T> AttentionTools<T>::rows_of(const AttentionRun& run, int operand, const char* matrix,
                                   int64_t first, int64_t n, T* room) const {
  if (reads(run.call, operand)) {
    const int64_t row = run.call.stride(operand, 2);
    return {reinterpret_cast<const T*>(matrix) + first * row, row};
  }
  copy_rows(run, operand, matrix, first, n, room);
  return {room, run.call.call.operands[size_t(operand)].view.shape[3]};
}

template <class T>
void AttentionTools<T>::add_rows(Ahead& ahead, const AttentionRun& run, int operand, int64_t i,
                                 int64_t j) const {
  const View& view = run.call.call.operands[size_t(operand)].view;
  const char* matrix = run.matrix(operand, i, j);
  if (matrix == nullptr || view.strides[3] != 1) return;
  ahead.add(matrix, view.shape[2], view.strides[2] * size(), view.shape[3] * size());
}

template <class T>
void AttentionTools<T>::pack_panel(T* to, const Rows<T>& from, int64_t n, int64_t columns) const {
  if (n < width()) std::fill_n(to, columns * width(), T(0));
  loops.transpose(n, columns, to, width(), from.at, from.stride);
}

template <class T>
void AttentionTools<T>::multiply(const Product& p, const Kernels& kernels, int64_t a_row) const {
  // Tiles of nearly equal height: a last one of few rows would leave the processor waiting.
  const int64_t tiles = (p.m + rows() - 1) / rows();
  GemmTile<T> tile = {};
  tile.k = p.depth;
  tile.a_step = p.a_step;
  tile.b_step = p.b_step;
  tile.c_step = p.c_step;
  tile.add = p.add;
  for (int64_t j = 0; j < p.width; j += width()) {
    tile.width = std::min(width(), p.width - j);
    tile.b = p.b + j;
    const int64_t vectors = (tile.width + gemm.lanes - 1) / gemm.lanes;
    for (int64_t i = 0; i < tiles; ++i) {
      const int64_t row = p.m * i / tiles, count = p.m * (i + 1) / tiles - row;
      tile.a = p.a + row * a_row;
      tile.c = p.c + row * p.c_step + j;
      if (p.ahead != nullptr) p.ahead->give(tile, count);
      kernels[count - 1][vectors - 1](tile);
    }
  }
}

template <class T>
AttentionMask<T>::AttentionMask(const AttentionRun& run, const AttentionTools<T>& tools)
    : run_(run),
      tools_(tools),
      is_bool_(run.call.mask >= 0 &&
               run.call.call.operands[size_t(run.call.mask)].dtype == DType::boolean) {
  if (!drops()) return;
  const double rate = run.call.call.attrs.rate;
  most_ = float(1 - rate);
  scale_ = T(1 / (1 - rate));
  key_ = run.scalar(run.call.key);
  offset_ = run.scalar(run.call.key + 1);
}

template <class T>
void AttentionMask<T>::load(const Place& p, T* room) const {
  const int mask = run_.call.mask;
  const int64_t query = run_.call.stride(mask, 2), key = run_.call.stride(mask, 3);
  const int64_t size = is_bool_ ? 1 : int64_t(sizeof(T));
  const char* from = run_.matrix(mask, p.b, p.h) + (p.t * query + p.s * key) * size;
  char* to = reinterpret_cast<char*>(room) + p.first * size;
  const Storage storage = is_bool_         ? Storage::bytes1
                          : sizeof(T) == 4 ? Storage::bytes4
                                           : Storage::bytes8;
  const Block block = p.column == 1 ? Block{p.n, p.m, p.row, 1, query, key}
                                    : Block{p.m, p.n, p.column, p.row, key, query};
  cpu::loops().load[int(storage)](to, from, block);
}

template <class T>
void AttentionMask<T>::apply(int64_t first, int64_t count, T* scores, const T* room) const {
  if (is_bool_) {
    tools_.loops.hide(count, scores + first, reinterpret_cast<const uint8_t*>(room) + first);
  } else {
    tools_.loops.add_mask(count, scores + first, room + first);
  }
}

template <class T>
void AttentionMask<T>::draw(int64_t b, int64_t h, int64_t t, int64_t s, int64_t m, T* factors,
                            char* room) const {
  const AttentionCall& c = run_.call;
  int64_t* index = reinterpret_cast<int64_t*>(room);
  float* draws = reinterpret_cast<float*>(room + 8 * m);
  const int64_t first = ((b * c.heads + h) * c.queries + t) * c.keys + s;
  cpu::loops().iota(index, 1, m, m, first, 0, 1);
  constexpr unsigned kOneKeyOneOffset = 6;
  cpu::loops().scalar[int(ScalarOp::uniform)][int(DType::i64)](m, draws, index, &key_, &offset_,
                                                               kOneKeyOneOffset);
  tools_.loops.keep(m, factors, draws, most_, scale_);
}

template struct AttentionTools<float>;
template struct AttentionTools<double>;
template class AttentionMask<float>;
template class AttentionMask<double>;

}  // namespace tessera::cpu
