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
#define t_beats(v, i, best, at)                        \
  ((v) > (best) || ((v) != (v) && (best) == (best)) || \
   (((v) == (best) || ((v) != (v) && (best) != (best))) && (i) < (at)))
typedef struct {
  f32 v[4];
} __attribute__((aligned(16))) f32x4;

// argmax over (extent0 | 3, 20)
__kernel __attribute__((reqd_work_group_size(256, 1, 1))) void tessera_argmax(
    __global const f32* in0,
    __global i64* out1,
    i64 extent0, __global i32* error) {
  __local f32 shared_f32[256];
  __local i64 shared_i64[256];
  const idx rows = extent0;
  const idx cols = 60;
  const i32 lane = (i32)get_local_id(0);
  const i32 part = lane % 16;
  const i32 team = lane / 16;
  const idx stride = (idx)get_num_groups(0) * 16;
  for (idx first = (idx)get_group_id(0) * 16; first < rows; first += stride) {
    const bool is_mine = first + team < rows;
    const idx row = is_mine ? first + team : rows - 1;
    f32 best_1 = t_float(0xff800000u);
    i64 argmax_1 = 9223372036854775807;
    for (idx col = part * 4; col < cols; col += 64) {
      const f32x4 wide_0 = *(__global const f32x4*)(in0 + row * 60 + col);
      #pragma unroll
      for (i32 v = 0; v < 4; ++v) {
        const f32 load_0 = wide_0.v[v];
        if (t_beats(load_0, col + v, best_1, argmax_1)) {
          best_1 = load_0;
          argmax_1 = col + v;
        }
      }
    }
    shared_f32[lane] = best_1;
    shared_i64[lane] = argmax_1;
    barrier(CLK_LOCAL_MEM_FENCE);
    best_1 = shared_f32[team * 16];
    argmax_1 = shared_i64[team * 16];
    #pragma unroll
    for (i32 k = 1; k < 16; ++k) {
      const f32 other_best_1 = shared_f32[team * 16 + k];
      const i64 other_argmax_1 = shared_i64[team * 16 + k];
      if (t_beats(other_best_1, other_argmax_1, best_1, argmax_1)) {
        best_1 = other_best_1;
        argmax_1 = other_argmax_1;
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (part == 0 && is_mine) {
      out1[row] = argmax_1;
    }
  }
}
