#include "tessera/backend/cpu/kernels/epilogue.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "tessera/backend/cpu/isa.h"
#include "tessera/base/thread_pool.h"
#include "tessera/kernel/kernel_ir.h"

namespace tessera::cpu {

namespace {

constexpr int64_t kWorthATask = 1 << 14;  // elements

char* at(char* start, int64_t bytes) { return start == nullptr ? nullptr : start + bytes; }

const char* at(const char* start, int64_t bytes) {
  return start == nullptr ? nullptr : start + bytes;
}

}  // namespace

void finish_block(const Epilogue& e, const Region& r) {
  const int64_t size = size_of(e.dtype);
  const int64_t step = e.partial_sums == nullptr ? r.rows : e.group;
  for (int64_t i = r.row; i < r.row + r.rows; i += step) {
    const auto place = [&](int64_t row_step) { return (i * row_step + r.column) * size; };
    e.finish({std::min(step, r.row + r.rows - i), r.columns, at(e.c, place(e.c_row)), e.c_row,
              at(e.bias, r.column * size), at(e.sum, place(e.n)), e.n, e.streams,
              at(e.x, place(e.x_row)), e.x_row,
              at(e.partial_sums, (i / e.group * e.n + r.column) * size)});
  }
}

void finish_all(const Epilogue& e) {
  auto task = [&](int64_t begin, int64_t end) {
    const int64_t row = begin * e.group;
    finish_block(e, {row, std::min(end * e.group, e.m) - row, 0, e.n});
  };
  const int64_t grain = std::max<int64_t>(1, kWorthATask / std::max<int64_t>(1, e.group * e.n));
  thread_pool().parallel_for(divide_up(e.m, e.group), grain, std::cref(task));
}

void sum_groups(const Epilogue& e, char* sums) {
  const int64_t size = size_of(e.dtype), groups = divide_up(e.m, e.group);
  const CombineLoop add = loops().combine[int(ReduceOp::sum)][int(e.dtype)];
  auto task = [&](int64_t begin, int64_t end) {
    char* const total = sums + begin * size;
    std::memset(total, 0, size_t((end - begin) * size));
    for (int64_t g = 0; g < groups; ++g) {
      add(end - begin, total, nullptr, e.partial_sums + (g * e.n + begin) * size, nullptr);
    }
  };
  const int64_t grain = std::max<int64_t>(64, kWorthATask / std::max<int64_t>(1, groups));
  thread_pool().parallel_for(e.n, grain, std::cref(task));
}

}  // namespace tessera::cpu
