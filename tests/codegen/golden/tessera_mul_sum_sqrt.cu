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
struct alignas(16) f32x4 {
  f32 v[4];
};

// mul sum sqrt over (| extent0), a part of each row
extern "C" __global__ void __launch_bounds__(256) tessera_mul_sum_sqrt(
    const f32* in0,
    f32* out1,
    i64 extent0, i32* error, u64* scratch, i64 splits) {
  __shared__ f32 shared_f32[8];
  const idx rows = 1;
  const idx cols = extent0;
  const idx whole = cols - cols % 4;
  const i32 lane = (i32)threadIdx.x;
  const i32 part = lane;
  const idx split = (idx)blockIdx.x % (idx)splits;
  const idx stride = (idx)gridDim.x / (idx)splits;
  for (idx row = (idx)blockIdx.x / (idx)splits; row < rows; row += stride) {
    f32 sum_2 = 0.0f;
    for (idx col = (split * 256 + part) * 4; col < whole; col += (idx)splits * 256 * 4) {
      const f32x4 wide_0 = *(const f32x4*)(in0 + col);
      #pragma unroll
      for (i32 v = 0; v < 4; ++v) {
        const f32 load_0 = wide_0.v[v];
        const f32 mul_1 = load_0 * load_0;
        sum_2 = sum_2 + mul_1;
      }
    }
    for (idx col = whole + (split * 256 + part); col < cols; col += (idx)splits * 256) {
      const f32 load_0 = in0[col];
      const f32 mul_1 = load_0 * load_0;
      sum_2 = sum_2 + mul_1;
    }
    #pragma unroll
    for (i32 step = 16; step > 0; step /= 2) {
      const f32 other_sum_2 = __shfl_down_sync(0xffffffffu, sum_2, step, 32);
      sum_2 = sum_2 + other_sum_2;
    }
    if (lane % 32 == 0) {
      shared_f32[lane / 32] = sum_2;
    }
    __syncthreads();
    sum_2 = shared_f32[0];
    #pragma unroll
    for (i32 k = 1; k < 8; ++k) {
      const f32 other_sum_2 = shared_f32[k];
      sum_2 = sum_2 + other_sum_2;
    }
    __syncthreads();
    if (part == 0) {
      ((f32*)scratch)[split] = sum_2;
    }
  }
}

// mul sum sqrt over (| extent0), of the parts
extern "C" __global__ void __launch_bounds__(256) tessera_mul_sum_sqrt_fold(
    const f32* in0,
    f32* out1,
    i64 extent0, i32* error, u64* scratch, i64 splits) {
  __shared__ f32 shared_f32[8];
  const idx rows = 1;
  const i32 lane = (i32)threadIdx.x;
  const i32 part = lane;
  const idx stride = (idx)gridDim.x;
  for (idx row = (idx)blockIdx.x; row < rows; row += stride) {
    f32 sum_2 = 0.0f;
    for (idx s = part; s < splits; s += 256) {
      const f32 other_sum_2 = ((f32*)scratch)[s];
      sum_2 = sum_2 + other_sum_2;
    }
    #pragma unroll
    for (i32 step = 16; step > 0; step /= 2) {
      const f32 other_sum_2 = __shfl_down_sync(0xffffffffu, sum_2, step, 32);
      sum_2 = sum_2 + other_sum_2;
    }
    if (lane % 32 == 0) {
      shared_f32[lane / 32] = sum_2;
    }
    __syncthreads();
    sum_2 = shared_f32[0];
    #pragma unroll
    for (i32 k = 1; k < 8; ++k) {
      const f32 other_sum_2 = shared_f32[k];
      sum_2 = sum_2 + other_sum_2;
    }
    __syncthreads();
    const f32 sqrt_3 = sqrt(sum_2);
    if (part == 0) {
      out1[0] = sqrt_3;
    }
  }
}
