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
static inline u16 t_f32_to_f16(f32 f) {
  const u32 bits = t_bits(f), sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return (u16)(sign | 0x7e00u);
  if (magnitude >= 0x477ff000u) return (u16)(sign | 0x7c00u);
  if (magnitude < 0x33000000u) return (u16)sign;
  if (magnitude < 0x38800000u) {
    const u32 shift = 126u - (magnitude >> 23);
    const u32 mantissa = (magnitude & 0x7fffffu) | 0x800000u;
    const u32 kept = mantissa >> shift, rest = mantissa & ((1u << shift) - 1u);
    const u32 middle = 1u << (shift - 1u);
    const u32 up = rest > middle || (rest == middle && (kept & 1u)) ? 1u : 0u;
    return (u16)(sign | (kept + up));
  }
  return (u16)(sign | ((magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13));
}
static inline f32 t_bf16_to_f32(u16 h) {
  return t_float((u32)h << 16);
}

// gather over (extent0, 3)
__kernel __attribute__((reqd_work_group_size(256, 1, 1))) void tessera_gather(
    __global const u16* in0,
    __global const i32* in1,
    __global u16* out2,
    i64 extent0, __global i32* error) {
  const idx count = extent0 * 3;
  const idx first = (idx)get_group_id(0) * 256 + (i32)get_local_id(0);
  const idx stride = (idx)get_num_groups(0) * 256;
  for (idx point = first; point < count; point += stride) {
    const idx d1 = point % 3;
    const idx d0 = point / 3;
    const i32 load_0 = in1[d0];
    const i64 cast_1 = (i64)load_0;
    f32 load_2 = 0.0f;
    if (cast_1 >= 0 && cast_1 < 10) {
      load_2 = t_bf16_to_f32(in0[d1 + cast_1 * 3]);
    } else {
      *error = 1;
    }
    out2[point] = t_f32_to_f16(load_2);
  }
}
