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

// mul neg over (extent0, 2, 5)
extern "C" __global__ void __launch_bounds__(256) tessera_mul_neg(
    const i32* in0,
    i32* out1,
    i64 extent0, i32* error) {
  const idx count = extent0 * 10;
  const idx first = (idx)blockIdx.x * 256 + (i32)threadIdx.x;
  const idx stride = (idx)gridDim.x * 256;
  for (idx point = first; point < count; point += stride) {
    const idx d2 = point % 5;
    const idx d1 = point / 5 % 2;
    const idx d0 = point / 10;
    const i32 load_0 = in0[d0 - d1 * 15 + d2 * 3 + 15];
    const i32 mul_1 = (i32)((u32)load_0 * (u32)load_0);
    const i32 neg_2 = (i32)(-(u32)mul_1);
    out1[point] = neg_2;
  }
}
