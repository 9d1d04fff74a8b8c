#include "tessera/backend/cpu/tile.h"

#include <algorithm>
#include <cstring>

#include "tessera/backend/cpu/access.h"

namespace tessera::cpu {

namespace {

// Below this many values in a run, a row's value is spread over the tile first, so that one call
// serves all rows.
constexpr int64_t kLongRun = 16;

// Strides of a register inside a tile: along its slow and its fast side.
struct RegisterStrides {
  int64_t slow, fast;
};

RegisterStrides register_strides(Level level, const Tile& tile) {
  if (level == Level::point) return {tile.fast(), 1};
  if (level == Level::uniform) return {0, 0};
  return tile.inner_fast ? RegisterStrides{1, 0} : RegisterStrides{0, 1};
}

const char* spread(const Workspace& work, int reg, const Tile& tile, int k) {
  const Register& r = work.plan->registers[size_t(reg)];
  const int64_t room = std::max(work.capacity, work.row_capacity);
  char* to = work.spare + k * 8 * room;
  const RegisterStrides s = register_strides(r.level, tile);
  work.plan->spread[r.size](to, work.registers[reg],
                            {tile.slow(), tile.fast(), tile.fast(), 1, s.slow, s.fast});
  return to;
}

char* destination(const Workspace& work, const Step& step) {
  char*& reg = work.registers[step.reg];
  if (step.level == Level::point) reg = work.points + step.slot * work.capacity;
  if (step.level == Level::row) reg = work.rows + step.slot * work.row_capacity;
  return reg;  // a uniform register keeps its place
}

struct Argument {
  const char* at = nullptr;
  int64_t slow_bytes = 0;
};

void run_scalar(const Workspace& work, const Step& step, const Tile& tile) {
  char* to = destination(work, step);
  Argument args[3];
  unsigned scalars = 0;
  bool by_rows = false;
  const bool one_run = tile.slow() == 1;
  for (int k = 0; k < step.arity; ++k) {
    const Register& reg = work.plan->registers[size_t(step.args[k])];
    args[k].at = work.registers[step.args[k]];
    if (reg.level == step.level) {
      args[k].slow_bytes = tile.fast() * reg.size;
    } else if (reg.level == Level::uniform) {
      scalars |= 1u << k;
    } else if (one_run || tile.fast() >= kLongRun) {
      by_rows = by_rows || !one_run;
      args[k].slow_bytes = tile.inner_fast ? reg.size : 0;
      if (tile.inner_fast) scalars |= 1u << k;
    } else {
      args[k].at = spread(work, step.args[k], tile, k);
      args[k].slow_bytes = tile.fast() * reg.size;
    }
  }
  if (!by_rows) {
    return step.scalar(tile.count(), to, args[0].at, args[1].at, args[2].at, scalars);
  }
  for (int64_t i = 0; i < tile.slow(); ++i) {
    step.scalar(tile.fast(), to, args[0].at, args[1].at, args[2].at, scalars);
    to += tile.fast() * step.size;
    for (Argument& arg : args) arg.at += arg.slow_bytes;
  }
}

void run_cast(const Workspace& work, const Step& step, const Tile& tile) {
  char* to = destination(work, step);
  const char* from = work.registers[step.args[0]];
  if (step.cast == nullptr) return step.round(tile.count(), to, from);
  if (step.round == nullptr) return step.cast(tile.count(), to, from);
  step.cast(tile.count(), work.spare, from);
  step.round(tile.count(), to, work.spare);
}

// The part of the domain a step at `level` sees of a tile.
Tile tile_at(Level level, const Tile& tile) {
  if (level == Level::point) return tile;
  if (level == Level::row) return {tile.row0, tile.rows, 0, 1, false};
  return {0, 1, 0, 1, false};
}

void run_store(const Workspace& work, const Step& step, const Tile& tile) {
  const Register& value = work.plan->registers[size_t(step.args[0])];
  // Inside a row-level tile a row register is what a point register is elsewhere.
  const Level level = value.level == step.level ? Level::point : value.level;
  const RegisterStrides s = register_strides(level, tile);
  store_tile(work, work.plan->accesses[size_t(step.access)], tile, work.registers[step.args[0]],
             value.size, s.slow, s.fast);
}

void run_load(const Workspace& work, const Step& step, const Tile& tile) {
  char* to = destination(work, step);
  const Access& access = work.plan->accesses[size_t(step.access)];
  // A uniform value is copied: it must survive a store into the memory it came from.
  const char* in_place = step.level == Level::uniform ? nullptr : find_in_place(work, access, tile);
  if (in_place != nullptr) {
    work.registers[step.reg] = const_cast<char*>(in_place);  // read only
    return;
  }
  LoadRegisters regs;
  auto bind = [&](int arg, RegisterSource& source) {
    if (arg < 0) return;
    const Register& reg = work.plan->registers[size_t(arg)];
    const RegisterStrides s =
        register_strides(reg.level == step.level ? Level::point : reg.level, tile);
    source = {work.registers[arg], s.slow, s.fast};
  };
  bind(step.args[0], regs.fill);
  bind(step.args[1], regs.index);
  load_tile(work, access, tile, to, step.size, regs);
}

char* state_of(const Workspace& work, int slot, char* rows) {
  return rows + slot * work.row_capacity;
}

}  // namespace

void run_step(const Workspace& work, const Step& step, const Tile& whole) {
  const Tile tile = tile_at(step.level, whole);
  if (tile.count() == 0) return;
  switch (step.kind) {
    case IrKind::constant: return;
    case IrKind::index:
      return index_tile(work, work.plan->accesses[size_t(step.access)], tile,
                        reinterpret_cast<int64_t*>(destination(work, step)));
    case IrKind::load: return run_load(work, step, tile);
    case IrKind::scalar: return run_scalar(work, step, tile);
    case IrKind::cast: return run_cast(work, step, tile);
    case IrKind::store: return run_store(work, step, tile);
    case IrKind::reduce: TESSERA_ASSERT(!"a reduce is run by run_fold");
  }
}

void run_fold(const Workspace& work, const Step& step, const Tile& tile, char* rows) {
  if (tile.count() == 0) return;
  const int arg = step.args[0];
  const bool ready = work.plan->registers[size_t(arg)].level == Level::point;
  const char* from = ready ? work.registers[arg] : spread(work, arg, tile, 0);
  int64_t* where = nullptr;
  if (step.where_slot >= 0) {
    where = reinterpret_cast<int64_t*>(state_of(work, step.where_slot, rows));
  }
  step.fold(state_of(work, step.slot, rows), where, from,
            {tile.rows, tile.points, tile.inner_fast, tile.point0});
}

void start_fold(const Workspace& work, const Step& step, int64_t count, char* rows) {
  char* state = state_of(work, step.slot, rows);
  work.plan->spread[step.size](state, &step.identity, {1, count, 0, 1, 0, 0});
  if (step.where_slot < 0) return;
  std::memset(state_of(work, step.where_slot, rows), 0, size_t(count) * sizeof(int64_t));
}

void combine_fold(const Workspace& work, const Step& step, int64_t count, char* rows,
                  const char* part) {
  int64_t* where = nullptr;
  const int64_t* part_where = nullptr;
  if (step.where_slot >= 0) {
    where = reinterpret_cast<int64_t*>(state_of(work, step.where_slot, rows));
    part_where = reinterpret_cast<const int64_t*>(part + step.where_slot * work.row_capacity);
  }
  step.combine(count, state_of(work, step.slot, rows), where, part + step.slot * work.row_capacity,
               part_where);
}

}  // namespace tessera::cpu
