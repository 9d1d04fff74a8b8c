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

// mul add exp over (extent0, 6)
extern "C" __global__ void __launch_bounds__(256) tessera_mul_add_exp(
    const f32* in0,
    const f32* in1,
    f32* out2,
    i64 extent0, i32* error) {
  const idx count = extent0 * 6;
  const idx first = (idx)blockIdx.x * 256 + (i32)threadIdx.x;
  const idx stride = (idx)gridDim.x * 256;
  for (idx point = first * 2; point < count; point += stride * 2) {
    const idx d1 = point % 6;
    const f32x2 wide_1 = *(const f32x2*)(in0 + point);
    const f32x2 wide_3 = *(const f32x2*)(in1 + d1);
    f32x2 wide_6;
    #pragma unroll
    for (i32 v = 0; v < 2; ++v) {
      const f32 constant_0 = 0.5f;
      const f32 load_1 = wide_1.v[v];
      const f32 mul_2 = load_1 * constant_0;
      const f32 load_3 = wide_3.v[v];
      const f32 add_4 = mul_2 + load_3;
      const f32 exp_5 = exp(add_4);
      wide_6.v[v] = exp_5;
    }
    *(f32x2*)(out2 + point) = wide_6;
  }
}
