typedef char i8;
typedef int i32;
typedef long i64;
typedef uchar u8;
typedef ushort u16;
typedef uint u32;
typedef ulong u64;
typedef float f32;
#define t_float(bits) as_float(bits)
#define t_beats(v, i, best, at)                        \
  ((v) > (best) || ((v) != (v) && (best) == (best)) || \
   (((v) == (best) || ((v) != (v) && (best) != (best))) && (i) < (at)))

// argmax over (extent0 | 3, 20)
__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void tessera_argmax(
    __global const f32* in0,
    __global i64* out1,
    i64 extent0, __global i32* error) {
  __local f32 scratch_f32[64];
  __local i64 scratch_at[64];
  const i64 rows = extent0;
  const i64 cols = 60;
  const i32 lane = (i32)get_local_id(0);
  const i64 stride = (i64)get_num_groups(0);
  for (i64 row = (i64)get_group_id(0); row < rows; row += stride) {
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
    barrier(CLK_LOCAL_MEM_FENCE);
    for (i32 width = 32; width > 0; width /= 2) {
      if (lane < width && t_beats(scratch_f32[lane + width], scratch_at[lane + width],
                                  scratch_f32[lane], scratch_at[lane])) {
        scratch_f32[lane] = scratch_f32[lane + width];
        scratch_at[lane] = scratch_at[lane + width];
      }
      barrier(CLK_LOCAL_MEM_FENCE);
    }
    const i64 argmax_1 = scratch_at[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane == 0) {
      out1[row] = argmax_1;
    }
  }
}
