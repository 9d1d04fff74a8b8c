typedef char i8;
typedef int i32;
typedef long i64;
typedef uchar u8;
typedef ushort u16;
typedef uint u32;
typedef ulong u64;
typedef float f32;
typedef i32 idx;
static inline f32 t_uniform(i64 index, i64 key, i64 offset) {
  const u64 counter = (u64)offset + ((u64)index >> 2);
  u32 c0 = (u32)counter, c1 = (u32)(counter >> 32), c2 = 0, c3 = 0;
  u32 k0 = (u32)key, k1 = (u32)((u64)key >> 32);
  #pragma unroll
  for (i32 turn = 0; turn < 10; ++turn) {
    const u64 p0 = (u64)0xD2511F53u * c0, p1 = (u64)0xCD9E8D57u * c2;
    c0 = (u32)(p1 >> 32) ^ c1 ^ k0;
    c1 = (u32)p1;
    c2 = (u32)(p0 >> 32) ^ c3 ^ k1;
    c3 = (u32)p0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  const u32 pair0 = (index & 1) ? c1 : c0, pair1 = (index & 1) ? c3 : c2;
  return (f32)(((index & 2) ? pair1 : pair0) >> 8) * 5.9604644775390625e-8f;
}
typedef struct {
  f32 v[8];
} __attribute__((aligned(16))) f32x8;
typedef struct {
  u8 v[8];
} __attribute__((aligned(8))) u8x8;

// uniform lt div where over (extent0)
__kernel __attribute__((reqd_work_group_size(256, 1, 1))) void tessera_uniform_lt_div_where(
    __global const f32* in0,
    __global const i64* in1,
    __global f32* out2,
    __global u8* out3,
    i64 extent0, __global i32* error) {
  const idx count = extent0;
  const idx first = (idx)get_group_id(0) * 256 + (i32)get_local_id(0);
  const idx whole = count - count % 8;
  const idx stride = (idx)get_num_groups(0) * 256;
  for (idx point = first * 8; point < whole; point += stride * 8) {
    const f32x8 wide_6 = *(__global const f32x8*)(in0 + point);
    f32x8 wide_10;
    u8x8 wide_11;
    #pragma unroll
    for (i32 v = 0; v < 8; ++v) {
      const i64 index_0 = point + v;
      const i64 load_1 = in1[0];
      const i64 load_2 = in1[1];
      const f32 uniform_3 = t_uniform(index_0, load_1, load_2);
      const f32 constant_4 = 0.9f;
      const bool lt_5 = uniform_3 < constant_4;
      const f32 load_6 = wide_6.v[v];
      const f32 div_7 = load_6 / constant_4;
      const f32 constant_8 = 0.0f;
      const f32 where_9 = lt_5 ? div_7 : constant_8;
      wide_10.v[v] = where_9;
      wide_11.v[v] = (u8)lt_5;
    }
    *(__global f32x8*)(out2 + point) = wide_10;
    *(__global u8x8*)(out3 + point) = wide_11;
  }
  for (idx point = whole + first; point < count; point += stride) {
    const i64 index_0 = point;
    const i64 load_1 = in1[0];
    const i64 load_2 = in1[1];
    const f32 uniform_3 = t_uniform(index_0, load_1, load_2);
    const f32 constant_4 = 0.9f;
    const bool lt_5 = uniform_3 < constant_4;
    const f32 load_6 = in0[point];
    const f32 div_7 = load_6 / constant_4;
    const f32 constant_8 = 0.0f;
    const f32 where_9 = lt_5 ? div_7 : constant_8;
    out2[point] = where_9;
    out3[point] = (u8)lt_5;
  }
}
