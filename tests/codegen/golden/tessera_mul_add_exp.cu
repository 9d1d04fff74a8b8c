typedef signed char i8;
typedef int i32;
typedef long long i64;
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef float f32;
typedef double f64;

// mul add exp over (extent0, 6)
extern "C" __global__ void __launch_bounds__(256) tessera_mul_add_exp(
    const f32* in0,
    const f32* in1,
    f32* out2,
    i64 extent0, i32* error) {
  const i64 count = extent0 * 6;
  const i64 first = (i64)blockIdx.x * 256 + (i32)threadIdx.x;
  const i64 stride = (i64)gridDim.x * 256;
  for (i64 point = first; point < count; point += stride) {
    const i64 d1 = point % 6;
    const f32 constant_0 = 0.5f;
    const f32 load_1 = in0[point];
    const f32 mul_2 = load_1 * constant_0;
    const f32 load_3 = in1[d1];
    const f32 add_4 = mul_2 + load_3;
    const f32 exp_5 = exp(add_4);
    out2[point] = exp_5;
  }
}
