typedef char i8;
typedef int i32;
typedef long i64;
typedef uchar u8;
typedef ushort u16;
typedef uint u32;
typedef ulong u64;
typedef float f32;
typedef i32 idx;
#define t_float(bits) as_float(bits)
#define t_bits(value) as_uint(value)
static inline f32 t_bf16_to_f32(u16 h) {
  return t_float((u32)h << 16);
}
static inline u16 t_f32_to_bf16(f32 f) {
  const u32 bits = t_bits(f);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return (u16)((bits >> 16) | 0x0040u);
  return (u16)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}
typedef struct {
  u16 v[8];
} __attribute__((aligned(16))) u16x8;
static inline f32 t_inverse_f32(f32 a) {
  return 1 / a;
}
static inline f32 t_gelu_tanh_f32(f32 a) {
  const f32 x = a < -10000 ? -10000 : a;
  const f32 w = x * ((f32)1.5957691216057308 + (f32)0.07135481627260025 * (x * x));
  const f32 small = exp(-fabs(w)), share = t_inverse_f32(1 + small);
  return x * (w < 0 ? small * share : share);
}

// gelu_tanh mul over (extent0)
__kernel __attribute__((reqd_work_group_size(256, 1, 1))) void tessera_gelu_tanh_mul(
    __global const u16* in0,
    __global const u16* in1,
    __global u16* out2,
    i64 extent0, __global i32* error) {
  const idx count = extent0;
  const idx first = (idx)get_group_id(0) * 256 + (i32)get_local_id(0);
  const idx whole = count - count % 8;
  const idx stride = (idx)get_num_groups(0) * 256;
  for (idx point = first * 8; point < whole; point += stride * 8) {
    const u16x8 wide_0 = *(__global const u16x8*)(in0 + point);
    const u16x8 wide_3 = *(__global const u16x8*)(in1 + point);
    u16x8 wide_5;
    #pragma unroll
    for (i32 v = 0; v < 8; ++v) {
      const f32 load_0 = t_bf16_to_f32(wide_0.v[v]);
      const f32 gelu_tanh_1 = t_gelu_tanh_f32(load_0);
      const f32 cast_2 = t_bf16_to_f32(t_f32_to_bf16(gelu_tanh_1));
      const f32 load_3 = t_bf16_to_f32(wide_3.v[v]);
      const f32 mul_4 = cast_2 * load_3;
      wide_5.v[v] = t_f32_to_bf16(mul_4);
    }
    *(__global u16x8*)(out2 + point) = wide_5;
  }
  for (idx point = whole + first; point < count; point += stride) {
    const f32 load_0 = t_bf16_to_f32(in0[point]);
    const f32 gelu_tanh_1 = t_gelu_tanh_f32(load_0);
    const f32 cast_2 = t_bf16_to_f32(t_f32_to_bf16(gelu_tanh_1));
    const f32 load_3 = t_bf16_to_f32(in1[point]);
    const f32 mul_4 = cast_2 * load_3;
    out2[point] = t_f32_to_bf16(mul_4);
  }
}
