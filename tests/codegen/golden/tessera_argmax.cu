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
#define t_beats(v, i, best, at)                        \
  ((v) > (best) || ((v) != (v) && (best) == (best)) || \
   (((v) == (best) || ((v) != (v) && (best) != (best))) && (i) < (at)))
struct alignas(16) f32x4 {
  f32 v[4];
};

// argmax over (extent0 | 3, 20)
extern "C" __global__ void __launch_bounds__(256) tessera_argmax(
    const f32* in0,
    i64* out1,
    i64 extent0, i32* error) {
  const idx rows = extent0;
  const idx cols = 60;
  const i32 lane = (i32)threadIdx.x;
  const i32 part = lane % 16;
  const i32 team = lane / 16;
  const idx stride = (idx)gridDim.x * 16;
  for (idx first = (idx)blockIdx.x * 16; first < rows; first += stride) {
    const bool is_mine = first + team < rows;
    const idx row = is_mine ? first + team : rows - 1;
    f32 best_1 = t_float(0xff800000u);
    i64 argmax_1 = 9223372036854775807;
    for (idx col = part * 4; col < cols; col += 64) {
      const f32x4 wide_0 = *(const f32x4*)(in0 + row * 60 + col);
      #pragma unroll
      for (i32 v = 0; v < 4; ++v) {
        const f32 load_0 = wide_0.v[v];
        if (t_beats(load_0, col + v, best_1, argmax_1)) {
          best_1 = load_0;
          argmax_1 = col + v;
        }
      }
    }
    #pragma unroll
    for (i32 step = 8; step > 0; step /= 2) {
      const f32 other_best_1 = __shfl_down_sync(0xffffffffu, best_1, step, 16);
      const i64 other_argmax_1 = __shfl_down_sync(0xffffffffu, argmax_1, step, 16);
      if (t_beats(other_best_1, other_argmax_1, best_1, argmax_1)) {
        best_1 = other_best_1;
        argmax_1 = other_argmax_1;
      }
    }
    best_1 = __shfl_sync(0xffffffffu, best_1, 0, 16);
    argmax_1 = __shfl_sync(0xffffffffu, argmax_1, 0, 16);
    if (part == 0 && is_mine) {
      out1[row] = argmax_1;
    }
  }
}
