typedef signed char i8;
typedef int i32;
typedef long long i64;
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef float f32;
typedef double f64;
typedef i32 idx;
#define t_float(bits) __uint_as_float(bits)
#define t_bits(value) __float_as_uint(value)
#if defined(__CUDA_ARCH__)
static __device__ inline u16 t_f32_to_f16(f32 f) {
  u16 h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f));
  return h;
}
#else
static __device__ inline u16 t_f32_to_f16(f32 f) {
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
#endif
static __device__ inline f32 t_bf16_to_f32(u16 h) {
  return t_float((u32)h << 16);
}

// gather over (extent0, 3)
extern "C" __global__ void __launch_bounds__(256) tessera_gather(
    const u16* in0,
    const i32* in1,
    u16* out2,
    i64 extent0, i32* error) {
  const idx count = extent0 * 3;
  const idx first = (idx)blockIdx.x * 256 + (i32)threadIdx.x;
  const idx stride = (idx)gridDim.x * 256;
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
