// Loops that move values between memory and registers. Included by simd/loops.cpp.

// Storage types and what they become in a register.
template <class T>
struct Plain {
  using Memory = T;
  using Register = T;
  TESSERA_INLINE static T read(T x) { return x; }
  TESSERA_INLINE static T write(T x) { return x; }
};
struct HalfF16 {
  using Memory = uint16_t;
  using Register = float;
  TESSERA_INLINE static float read(uint16_t x) { return f16_to_float(x); }
  TESSERA_INLINE static uint16_t write(float x) { return float_to_f16(x); }
};
struct HalfBf16 {
  using Memory = uint16_t;
  using Register = float;
  TESSERA_INLINE static float read(uint16_t x) { return bf16_to_float(x); }
  TESSERA_INLINE static uint16_t write(float x) { return float_to_bf16(x); }
};

template <class S>
struct Reading {
  using From = typename S::Memory;
  using To = typename S::Register;
  TESSERA_INLINE static To convert(From x) { return S::read(x); }
};
template <class S>
struct Writing {
  using From = typename S::Register;
  using To = typename S::Memory;
  TESSERA_INLINE static To convert(From x) { return S::write(x); }
};

template <class C>
TESSERA_INLINE void move_run(typename C::To* __restrict d, const typename C::From* __restrict s,
                             int64_t n, int64_t ds, int64_t ss) {
  if (ds == 1 && ss == 1) {
    for (int64_t i = 0; i < n; ++i) d[i] = C::convert(s[i]);
  } else if (ds == 1 && ss == 0) {
    const typename C::To value = C::convert(*s);
    for (int64_t i = 0; i < n; ++i) d[i] = value;
  } else if (ds == 1) {
    for (int64_t i = 0; i < n; ++i) d[i] = C::convert(s[i * ss]);
  } else {
    for (int64_t i = 0; i < n; ++i) d[i * ds] = C::convert(s[i * ss]);
  }
}

template <class C>
void move_loop(void* d, const void* s, const Block& given) {
  Block b = given;
  // Short runs pay for their loop: walk the longer side innermost, unless the runs are contiguous
  // and worth a vector.
  if (b.n1 < 8 && b.n0 > b.n1) b = {b.n1, b.n0, b.d1, b.d0, b.s1, b.s0};
  if (b.d0 == b.n1 * b.d1 && b.s0 == b.n1 * b.s1) b = {1, b.n0 * b.n1, 0, b.d1, 0, b.s1};
  typename C::To* dp = static_cast<typename C::To*>(d);
  const typename C::From* sp = static_cast<const typename C::From*>(s);
  for (int64_t i = 0; i < b.n0; ++i) move_run<C>(dp + i * b.d0, sp + i * b.s0, b.n1, b.d1, b.s1);
}

template <class S>
void gather_loop(int64_t n, void* d, const void* s, int64_t stride, const int64_t* index,
                 int64_t index_stride) {
  typename S::Register* __restrict dp = static_cast<typename S::Register*>(d);
  const typename S::Memory* __restrict sp = static_cast<const typename S::Memory*>(s);
  for (int64_t i = 0; i < n; ++i) dp[i] = S::read(sp[i * stride + index[i] * index_stride]);
}

void iota_loop(int64_t* d, int64_t n0, int64_t n1, int64_t d0, int64_t start, int64_t s0,
               int64_t s1) {
  for (int64_t i = 0; i < n0; ++i) {
    int64_t* __restrict run = d + i * d0;
    const int64_t first = start + i * s0;
    for (int64_t j = 0; j < n1; ++j) run[j] = first + j * s1;
  }
}

int64_t find_outside_loop(int64_t n, const int64_t* index, int64_t limit) {
  uint64_t outside = 0;
  for (int64_t i = 0; i < n; ++i) outside |= uint64_t(index[i]) >= uint64_t(limit) ? 1u : 0u;
  if (outside == 0) return n;
  int64_t i = 0;
  while (uint64_t(index[i]) < uint64_t(limit)) ++i;
  return i;
}

template <class S>
constexpr void fill_move(LoopTable& table, Storage storage) {
  table.load[int(storage)] = move_loop<Reading<S>>;
  table.store[int(storage)] = move_loop<Writing<S>>;
  table.gather[int(storage)] = gather_loop<S>;
}

constexpr void fill_moves(LoopTable& table) {
  fill_move<Plain<uint8_t>>(table, Storage::bytes1);
  fill_move<Plain<uint16_t>>(table, Storage::bytes2);
  fill_move<Plain<uint32_t>>(table, Storage::bytes4);
  fill_move<Plain<uint64_t>>(table, Storage::bytes8);
  fill_move<HalfF16>(table, Storage::f16);
  fill_move<HalfBf16>(table, Storage::bf16);
  table.iota = iota_loop;
  table.find_outside = find_outside_loop;
}
