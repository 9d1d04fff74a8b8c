// Chains of scalar functions (loops.h). Included by simd/loops.cpp.
//
// Points are taken in blocks of a few wide values. A block passes through all links before the next
// one starts, so it stays in machine registers, memory is walked once from front to back, and what
// the links cost beside their arithmetic is one jump per block. Where several chains run together,
// a block passes through all of them.

// Where results go past the caches, blocks are shorter: memory likes reads and writes by turns.
#if defined(__AVX512F__)
inline constexpr int kBlockWides = 8, kStreamedWides = 6;
#elif defined(__AVX2__)
inline constexpr int kBlockWides = 4, kStreamedWides = 2;
#else
inline constexpr int kBlockWides = 2, kStreamedWides = 2;
#endif

static_assert(kBlockWides * Wide<float>::kLanes <= kMostBlock);

void stream_fence_loop() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

// How a block reads and writes memory: all of it, or the `count` values that are left of a wide
// one.
template <class T>
struct WholeBlock {
  TESSERA_INLINE V<T> load(const T* p) const { return load_wide(p); }
  TESSERA_INLINE void store(T* p, V<T> v) const { store_wide(p, v); }
  TESSERA_INLINE void stream(T* p, V<T> v) const { stream_wide(p, v); }
};
template <class T>
struct PartBlock {
  int64_t count;
  TESSERA_INLINE V<T> load(const T* p) const {
    T lanes[Wide<T>::kLanes] = {};
    for (int64_t i = 0; i < count; ++i) lanes[i] = p[i];
    return load_wide(lanes);
  }
  TESSERA_INLINE void store(T* p, V<T> v) const {
    T lanes[Wide<T>::kLanes];
    store_wide(lanes, v);
    for (int64_t i = 0; i < count; ++i) p[i] = lanes[i];
  }
  TESSERA_INLINE void stream(T* p, V<T> v) const { store(p, v); }
};

// Correctly rounded, as the scalar function is. (gcc warns of 512 bits without a mask.)
#if defined(__AVX512F__)
TESSERA_INLINE Register<float> sqrt_register(Register<float> v) {
  return Register<float>(_mm512_maskz_sqrt_ps(0xffff, __m512(v)));
}
TESSERA_INLINE Register<double> sqrt_register(Register<double> v) {
  return Register<double>(_mm512_maskz_sqrt_pd(0xff, __m512d(v)));
}
#elif defined(__AVX2__)
TESSERA_INLINE Register<float> sqrt_register(Register<float> v) {
  return Register<float>(_mm256_sqrt_ps(__m256(v)));
}
TESSERA_INLINE Register<double> sqrt_register(Register<double> v) {
  return Register<double>(_mm256_sqrt_pd(__m256d(v)));
}
#elif defined(__x86_64__)
TESSERA_INLINE Register<float> sqrt_register(Register<float> v) {
  return Register<float>(_mm_sqrt_ps(__m128(v)));
}
TESSERA_INLINE Register<double> sqrt_register(Register<double> v) {
  return Register<double>(_mm_sqrt_pd(__m128d(v)));
}
#else
template <class R>
TESSERA_INLINE R sqrt_register(R v) {
  for (int64_t i = 0; i < kRegister / int64_t(sizeof v[0]); ++i) v[i] = sqrt(v[i]);
  return v;
}
#endif
template <class T>
TESSERA_INLINE V<T> sqrt_wide(V<T> v) {
  return by_halves([](auto part) { return sqrt_register(part); }, v);
}

template <class Op, bool kFlipped, class T, int kWides, class Access>
TESSERA_INLINE void apply_link(V<T> (&v)[kWides], const Link& link, int64_t at, Access access) {
  const T* operand = static_cast<const T*>(link.operand);
  if (link.scalar) {
    const V<T> b = splat(*operand);
    for (V<T>& a : v) a = kFlipped ? Op::apply(b, a) : Op::apply(a, b);
    return;
  }
  if (!link.operand_stays) operand += at;
  for (int k = 0; k < kWides; ++k) {
    const V<T> b = access.load(operand + k * Wide<T>::kLanes);
    v[k] = kFlipped ? Op::apply(b, v[k]) : Op::apply(v[k], b);
  }
}

template <class T, int kWides>
TESSERA_INLINE void call_link(V<T> (&v)[kWides], const Link& link, int64_t at, int64_t n) {
  T room[kWides * Wide<T>::kLanes], result[kWides * Wide<T>::kLanes];
  for (int k = 0; k < kWides; ++k) store_wide(room + k * Wide<T>::kLanes, v[k]);
  const T* operand = static_cast<const T*>(link.operand);
  if (link.code == LinkCode::with_itself) {
    operand = room;
  } else if (!link.scalar && !link.operand_stays && operand != nullptr) {
    operand += at;
  }
  if (link.code == LinkCode::round) {
    link.cast(n, result, room);
  } else if (link.code == LinkCode::call_flipped) {
    link.loop(n, result, operand, room, nullptr, link.scalar ? 1 : 0);
  } else {
    link.loop(n, result, room, operand, nullptr, link.scalar ? 2 : 0);
  }
  for (int k = 0; k < kWides; ++k) v[k] = load_wide(result + k * Wide<T>::kLanes);
}

// n: the values of the block that count.
template <class T, int kWides, class Access>
TESSERA_INLINE void run_block(const Chain& chain, int64_t at, int64_t n, Access access) {
  constexpr int64_t kLanes = Wide<T>::kLanes;
  V<T> v[kWides];
  for (int a = 0; a < chain.ahead_count; ++a) {
    const char* ahead = chain.ahead[a] + at * int64_t(sizeof(T));
    for (int k = 0; k < kWides; ++k) __builtin_prefetch(ahead + k * 64, 0, 2);
  }
  const T* from = static_cast<const T*>(chain.from) + (chain.from_stays ? 0 : at);
  for (int k = 0; k < kWides; ++k) v[k] = access.load(from + k * kLanes);
  for (const Link *link = chain.links, *end = link + chain.count; link != end; ++link) {
    switch (link->code) {
      case LinkCode::add: apply_link<Op_add, false, T>(v, *link, at, access); break;
      case LinkCode::sub: apply_link<Op_sub, false, T>(v, *link, at, access); break;
      case LinkCode::sub_from: apply_link<Op_sub, true, T>(v, *link, at, access); break;
      case LinkCode::mul: apply_link<Op_mul, false, T>(v, *link, at, access); break;
      case LinkCode::div: apply_link<Op_div, false, T>(v, *link, at, access); break;
      case LinkCode::div_into: apply_link<Op_div, true, T>(v, *link, at, access); break;
      case LinkCode::max: apply_link<Max, false, T>(v, *link, at, access); break;
      case LinkCode::max_from: apply_link<Max, true, T>(v, *link, at, access); break;
      case LinkCode::min: apply_link<Min, false, T>(v, *link, at, access); break;
      case LinkCode::min_from: apply_link<Min, true, T>(v, *link, at, access); break;
      case LinkCode::neg:
        for (V<T>& a : v) a = -a;
        break;
      case LinkCode::square:
        for (V<T>& a : v) a = a * a;
        break;
      case LinkCode::sqrt:
        for (V<T>& a : v) a = sqrt_wide<T>(a);
        break;
      case LinkCode::call:
      case LinkCode::call_flipped:
      case LinkCode::with_itself:
      case LinkCode::round: call_link<T>(v, *link, at, n); break;
    }
    if (link->keep != nullptr) {
      T* keep = static_cast<T*>(link->keep) + (link->keep_stays ? 0 : at);
      for (int k = 0; k < kWides; ++k) access.store(keep + k * kLanes, v[k]);
    }
  }
  T* to = static_cast<T*>(chain.to) + (chain.to_stays ? 0 : at);
  if (chain.streams) {
    for (int k = 0; k < kWides; ++k) access.stream(to + k * kLanes, v[k]);
  } else {
    for (int k = 0; k < kWides; ++k) access.store(to + k * kLanes, v[k]);
  }
}

template <class T, int kWides, class Access>
TESSERA_INLINE void run_blocks(const Chain* chains, int count, int64_t at, int64_t n,
                               Access access) {
  for (const Chain* chain = chains; chain != chains + count; ++chain) {
    run_block<T, kWides>(*chain, at, n, access);
  }
}

template <class T>
void chain_loop(int64_t n, const Chain* chains, int count) {
  constexpr int64_t kLanes = Wide<T>::kLanes;
  const WholeBlock<T> whole;
  int64_t i = 0;
  const auto run = [&]<int kWides>(Count<kWides>) {
    constexpr int64_t kBlock = kWides * kLanes;
    for (; i + kBlock <= n; i += kBlock) run_blocks<T, kWides>(chains, count, i, kBlock, whole);
  };
  chains[count - 1].streams ? run(Count<kStreamedWides>{}) : run(Count<kBlockWides>{});
  for (; i + kLanes <= n; i += kLanes) run_blocks<T, 1>(chains, count, i, kLanes, whole);
  if (i < n) run_blocks<T, 1>(chains, count, i, n - i, PartBlock<T>{n - i});
}

constexpr void fill_chains(LoopTable& table) {
  table.chain_f32 = chain_loop<float>;
  table.chain_f64 = chain_loop<double>;
  table.stream_fence = stream_fence_loop;
}
