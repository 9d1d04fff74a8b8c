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
struct alignas(8) f32x2 {
  f32 v[2];
};

// concat pad over (extent0, 6)
extern "C" __global__ void __launch_bounds__(256) tessera_concat_pad(
    const f32* in0,
    const f32* in1,
    f32* out2,
    i64 extent0, i32* error) {
  const idx count = extent0 * 6;
  const idx first = (idx)blockIdx.x * 256 + (i32)threadIdx.x;
  const idx stride = (idx)gridDim.x * 256;
  for (idx point = first * 2; point < count; point += stride * 2) {
    const idx d1 = point % 6;
    const idx d0 = point / 6;
    f32x2 wide_3;
    #pragma unroll
    for (i32 v = 0; v < 2; ++v) {
      const f32 constant_0 = -1.0f;
      const f32 load_1 = d0 < 1048576 && d1 + v >= 3 && d1 + v < 5 ? in1[d0 * 2 + d1 + v - 3] : constant_0;
      const f32 load_2 = d1 + v < 3 ? in0[d0 * 3 + d1 + v] : load_1;
      wide_3.v[v] = load_2;
    }
    *(f32x2*)(out2 + point) = wide_3;
  }
}
