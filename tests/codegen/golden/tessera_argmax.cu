typedef signed char i8;
typedef int i32;
typedef long long i64;
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef float f32;
typedef double f64;
#define t_float(bits) __uint_as_float(bits)
#define t_beats(v, i, best, at)                        \
  ((v) > (best) || ((v) != (v) && (best) == (best)) || \
   (((v) == (best) || ((v) != (v) && (best) != (best))) && (i) < (at)))

// argmax over (extent0 | 3, 20)
extern "C" __global__ void __launch_bounds__(64) tessera_argmax(
    const f32* in0,
    i64* out1,
    i64 extent0, i32* error) {
  __shared__ f32 scratch_f32[64];
  __shared__ i64 scratch_at[64];
  const i64 rows = extent0;
  const i64 cols = 60;
  const i32 lane = (i32)threadIdx.x;
  const i64 stride = (i64)gridDim.x;
  for (i64 row = (i64)blockIdx.x; row < rows; row += stride) {
    f32 best_1 = t_float(0xff800000u);
    i64 at_1 = 9223372036854775807;
    for (i64 col = lane; col < cols; col += 64) {
      const f32 load_0 = in0[row * 60 + col];
      if (t_beats(load_0, col, best_1, at_1)) {
        best_1 = load_0;
        at_1 = col;
      }
    }
    scratch_f32[lane] = best_1;
    scratch_at[lane] = at_1;
    __syncthreads();
    for (i32 width = 32; width > 0; width /= 2) {
      if (lane < width && t_beats(scratch_f32[lane + width], scratch_at[lane + width],
                                  scratch_f32[lane], scratch_at[lane])) {
        scratch_f32[lane] = scratch_f32[lane + width];
        scratch_at[lane] = scratch_at[lane + width];
      }
      __syncthreads();
    }
    const i64 argmax_1 = scratch_at[0];
    __syncthreads();
    if (lane == 0) {
      out1[row] = argmax_1;
    }
  }
}
