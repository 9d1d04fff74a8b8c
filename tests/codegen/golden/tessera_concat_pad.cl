typedef char i8;
typedef int i32;
typedef long i64;
typedef uchar u8;
typedef ushort u16;
typedef uint u32;
typedef ulong u64;
typedef float f32;
typedef i32 idx;
typedef struct {
  f32 v[2];
} __attribute__((aligned(8))) f32x2;

// concat pad over (extent0, 6)
__kernel __attribute__((reqd_work_group_size(256, 1, 1))) void tessera_concat_pad(
    __global const f32* in0,
    __global const f32* in1,
    __global f32* out2,
    i64 extent0, __global i32* error) {
  const idx count = extent0 * 6;
  const idx first = (idx)get_group_id(0) * 256 + (i32)get_local_id(0);
  const idx stride = (idx)get_num_groups(0) * 256;
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
    *(__global f32x2*)(out2 + point) = wide_3;
  }
}
