#include "tessera/backend/cpu/access.h"

#include <algorithm>

namespace tessera::cpu {

namespace {

// Splits `count` consecutive points, row-major over dimensions [first, last), into runs along the
// last of them: f(coordinates, length, position of the run's start).
template <class F>
void for_each_run(const Domain& domain, int first, int last, int64_t start, int64_t count, F f) {
  int64_t at[kMaxRank] = {};
  if (first == last) return f(at, int64_t(1), int64_t(0));
  int64_t rest = start;
  for (int d = last - 1; d > first; --d) {
    at[d] = rest % domain.extents[d];
    rest /= domain.extents[d];
  }
  at[first] = rest;
  // Also for a row-level access over an empty inner domain: it still has its one value.
  if (count == 1) return f(at, int64_t(1), int64_t(0));
  for (int64_t done = 0; done < count;) {
    const int64_t length = std::min(count - done, domain.extents[last - 1] - at[last - 1]);
    f(at, length, done);
    done += length;
    at[last - 1] = 0;
    for (int d = last - 2; d >= first && ++at[d] == domain.extents[d] && d > first; --d) at[d] = 0;
  }
}

// A rectangle of a tile whose elements have one stride along each side in memory.
struct Rectangle {
  int64_t row, rows, point, points;  // position and size inside the tile
  int64_t base;                      // element index in the operand of its first element
  int64_t row_stride, point_stride;
};

int64_t dot(const Access& access, const int64_t* at, int first, int last) {
  int64_t sum = 0;
  for (int d = first; d < last; ++d) sum += at[d] * access.strides[d];
  return sum;
}

template <class F>
void for_each_rectangle(const Domain& domain, const Access& access, const Tile& tile, F f) {
  const int inner = domain.inner, rank = domain.rank;
  const int64_t row_stride = inner > 0 ? access.strides[inner - 1] : 0;
  const int64_t point_stride = access.strides[rank - 1];
  auto outer_run = [&](const int64_t* outer_at, int64_t rows, int64_t row) {
    const int64_t base = access.offset + dot(access, outer_at, 0, inner);
    auto inner_run = [&](const int64_t* inner_at, int64_t points, int64_t point) {
      const int64_t start = base + dot(access, inner_at, inner, rank);
      f(Rectangle{row, rows, point, points, start, row_stride, point_stride}, outer_at, inner_at);
    };
    for_each_run(domain, inner, rank, tile.point0, tile.points, inner_run);
  };
  for_each_run(domain, 0, inner, tile.row0, tile.rows, outer_run);
}

// Cuts [at, at + length) to [low, high) and moves the start of what is left.
struct Cut {
  int64_t skip, length;
};
Cut cut_run(int64_t at, int64_t length, int64_t low, int64_t high) {
  const int64_t begin = std::clamp(low, at, at + length);
  const int64_t end = std::clamp(high, begin, at + length);
  return {begin - at, end - begin};
}

bool inside(const Access& access, const int64_t* at, int first, int last) {
  for (int d = first; d < last; ++d) {
    if (at[d] < access.low[d] || at[d] >= access.high[d]) return false;
  }
  return true;
}

// What a mask leaves of a rectangle; it may be empty.
Rectangle cut_rectangle(const Domain& domain, const Access& access, Rectangle r,
                        const int64_t* outer_at, const int64_t* inner_at) {
  const int inner = domain.inner, last = domain.rank - 1;
  if (!inside(access, outer_at, 0, inner - 1) || !inside(access, inner_at, inner, last)) {
    r.rows = 0;
    return r;
  }
  if (inner > 0) {
    const int d = inner - 1;
    const Cut cut = cut_run(outer_at[d], r.rows, access.low[d], access.high[d]);
    r.row += cut.skip;
    r.base += cut.skip * r.row_stride;
    r.rows = cut.length;
  }
  const Cut cut = cut_run(inner_at[last], r.points, access.low[last], access.high[last]);
  r.point += cut.skip;
  r.base += cut.skip * r.point_stride;
  r.points = cut.length;
  return r;
}

// A rectangle seen in the order its tile is stored.
struct Oriented {
  int64_t slow, slows, fast, fasts, slow_stride, fast_stride;
};
Oriented orient(const Rectangle& r, const Tile& tile) {
  if (tile.inner_fast) return {r.row, r.rows, r.point, r.points, r.row_stride, r.point_stride};
  return {r.point, r.points, r.row, r.rows, r.point_stride, r.row_stride};
}

[[noreturn]] void fail_index(int64_t index, int64_t limit) {
  fail("index ", index, " is out of range [0, ", limit, ")");
}

const char* element(const Access& access, const char* operand, int64_t index) {
  return operand + index * access.memory_size;
}

void load_indexed(const Workspace& work, const Access& access, const Oriented& o, int64_t base,
                  const RegisterSource& index, char* to, int64_t to_stride, int size) {
  const char* operand = work.operands[access.operand];
  const int64_t* first = reinterpret_cast<const int64_t*>(index.at) + o.fast * index.fast;
  for (int64_t i = 0; i < o.slows; ++i) {
    const int64_t* run = first + (o.slow + i) * index.slow;
    const int64_t start = base + i * o.slow_stride;
    char* target = to + i * to_stride * size;
    const int64_t indices = index.fast == 0 ? 1 : o.fasts;
    const int64_t bad = work.plan->find_outside(indices, run, access.index_limit);
    if (bad < indices) fail_index(run[bad], access.index_limit);
    if (index.fast == 0) {
      access.move(target, element(access, operand, start + *run * access.index_stride),
                  {1, o.fasts, 0, 1, 0, o.fast_stride});
    } else {
      access.gather(o.fasts, target, element(access, operand, start), o.fast_stride, run,
                    access.index_stride);
    }
  }
}

void load_rectangle(const Workspace& work, const Access& access, const Rectangle& r,
                    const Tile& tile, char* to, int size, const LoadRegisters& registers) {
  if (r.rows == 0 || r.points == 0) return;
  const Oriented o = orient(r, tile);
  char* target = to + (o.slow * tile.fast() + o.fast) * size;
  if (access.indexed) {
    return load_indexed(work, access, o, r.base, registers.index, target, tile.fast(), size);
  }
  access.move(target, element(access, work.operands[access.operand], r.base),
              {o.slows, o.fasts, tile.fast(), 1, o.slow_stride, o.fast_stride});
}

void fill_rectangle(const Access& access, const Rectangle& r, const Tile& tile, char* to, int size,
                    const RegisterSource& fill) {
  const Oriented o = orient(r, tile);
  access.fill(to + (o.slow * tile.fast() + o.fast) * size,
              fill.at + (o.slow * fill.slow + o.fast * fill.fast) * size,
              {o.slows, o.fasts, tile.fast(), 1, fill.slow, fill.fast});
}

}  // namespace

const char* find_in_place(const Workspace& work, const Access& access, const Tile& tile) {
  const Domain& domain = *work.domain;
  const bool plain = !access.converts && !access.masked && !access.indexed && !access.must_copy;
  if (!plain || domain.inner > 1 || domain.rank - domain.inner > 1) return nullptr;
  const int64_t row_stride = domain.inner > 0 ? access.strides[0] : 0;
  const int64_t point_stride = access.strides[domain.rank - 1];
  const int64_t fast = tile.inner_fast ? point_stride : row_stride;
  const int64_t slow = tile.inner_fast ? row_stride : point_stride;
  const bool fits = (fast == 1 || tile.fast() == 1) && (slow == tile.fast() || tile.slow() == 1);
  if (!fits) return nullptr;
  const int64_t start = access.offset + tile.row0 * row_stride + tile.point0 * point_stride;
  return element(access, work.operands[access.operand], start);
}

void load_tile(const Workspace& work, const Access& access, const Tile& tile, char* to, int size,
               const LoadRegisters& registers) {
  auto load = [&](const Rectangle& r, const int64_t* outer_at, const int64_t* inner_at) {
    if (!access.masked) return load_rectangle(work, access, r, tile, to, size, registers);
    const Rectangle left = cut_rectangle(*work.domain, access, r, outer_at, inner_at);
    const bool all = left.rows == r.rows && left.points == r.points;
    if (!all) fill_rectangle(access, r, tile, to, size, registers.fill);
    load_rectangle(work, access, left, tile, to, size, registers);
  };
  for_each_rectangle(*work.domain, access, tile, load);
}

void store_tile(const Workspace& work, const Access& access, const Tile& tile, const char* from,
                int size, int64_t slow, int64_t fast) {
  char* operand = work.operands[access.operand];
  auto store = [&](const Rectangle& r, const int64_t*, const int64_t*) {
    const Oriented o = orient(r, tile);
    access.move(operand + r.base * access.memory_size,
                from + (o.slow * slow + o.fast * fast) * size,
                {o.slows, o.fasts, o.slow_stride, o.fast_stride, slow, fast});
  };
  for_each_rectangle(*work.domain, access, tile, store);
}

void index_tile(const Workspace& work, const Access& access, const Tile& tile, int64_t* to) {
  auto count = [&](const Rectangle& r, const int64_t*, const int64_t*) {
    const Oriented o = orient(r, tile);
    work.plan->iota(to + o.slow * tile.fast() + o.fast, o.slows, o.fasts, tile.fast(), r.base,
                    o.slow_stride, o.fast_stride);
  };
  for_each_rectangle(*work.domain, access, tile, count);
}

}  // namespace tessera::cpu
