#include "tessera/backend/cpu/tile.h"

#include <algorithm>
#include <cstring>

#include "tessera/backend/cpu/access.h"
#include "tessera/backend/cpu/chain.h"
#include "tessera/backend/cpu/together.h"

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

char* state_of(const Workspace& work, int slot, char* rows) {
  return rows + slot * work.row_capacity;
}

struct Argument {
  const char* at = nullptr;
  int64_t slow_bytes = 0;
  bool scalar = false;
};

// Operands of a step, bound to a tile: whether one call serves the whole of it, or each of its runs
// along the fast side takes one.
class Arguments {
 public:
  Arguments(const Workspace& work, Level level, const Tile& tile)
      : work_(work), level_(level), tile_(tile), one_run_(tile.slow() == 1) {}

  bool by_rows() const { return by_rows_; }

  Argument bind(int reg) {
    const Register& r = work_.plan->registers[size_t(reg)];
    const char* at = work_.registers[reg];
    if (r.level == level_) return {at, tile_.fast() * r.size, false};
    if (r.level == Level::uniform) return {at, 0, true};
    if (one_run_ || tile_.fast() >= kLongRun) {
      by_rows_ = by_rows_ || !one_run_;
      return {at, tile_.inner_fast ? r.size : 0, tile_.inner_fast};
    }
    return {spread(work_, reg, tile_, spreads_++), tile_.fast() * r.size, false};
  }

 private:
  const Workspace& work_;
  Level level_;
  const Tile& tile_;
  bool one_run_;
  bool by_rows_ = false;
  int spreads_ = 0;
};

void run_scalar(const Workspace& work, const Step& step, const Tile& tile) {
  char* to = destination(work, step);
  Argument args[3];
  Arguments arguments(work, step.level, tile);
  unsigned scalars = 0;
  for (int k = 0; k < step.arity; ++k) {
    args[k] = arguments.bind(step.args[k]);
    if (args[k].scalar) scalars |= 1u << k;
  }
  if (!arguments.by_rows()) {
    return step.scalar(tile.count(), to, args[0].at, args[1].at, args[2].at, scalars);
  }
  for (int64_t i = 0; i < tile.slow(); ++i) {
    step.scalar(tile.fast(), to, args[0].at, args[1].at, args[2].at, scalars);
    to += tile.fast() * step.size;
    for (Argument& arg : args) arg.at += arg.slow_bytes;
  }
}

// The links of a chain with the addresses of a tile.
struct BoundLinks {
  Link links[kMostLinks];
  int64_t slow_bytes[kMostLinks];  // of the operands, from run to run
};

// Where a link's value goes: the memory where a store would put it, or its slot.
char* place_of(const Workspace& work, const PlannedLink& link, int slot, const Tile& tile) {
  if (link.local) return work.blocks + slot * kMostBlock;
  char* const in_slot = work.points + slot * work.capacity;
  if (link.direct < 0) return in_slot;
  const char* at = find_in_place(work, work.plan->accesses[size_t(link.direct)], tile);
  const auto is_there = [&](int reg) { return work.registers[reg] == at; };
  const bool taken = std::any_of(link.read_later.begin(), link.read_later.end(), is_there);
  return at == nullptr || taken ? in_slot : const_cast<char*>(at);
}

void bind_links(const Workspace& work, const Step& step, const Tile& tile, Arguments& arguments,
                BoundLinks& bound) {
  for (size_t k = 0; k < step.links.size(); ++k) {
    const PlannedLink& link = step.links[k];
    const Argument arg = link.arg >= 0 ? arguments.bind(link.arg) : Argument{};
    bound.slow_bytes[k] = link.arg_local ? 0 : arg.slow_bytes;
    bound.links[k] = {link.code, arg.scalar, link.arg_local, link.local,
                      arg.at,    nullptr,    link.loop,      link.cast};
    if (!link.keeps) continue;
    work.registers[link.reg] = place_of(work, link, link.slot, tile);
    bound.links[k].keep = work.registers[link.reg];
  }
}

void bind_chain(const Workspace& work, const Step& step, const Tile& tile, Arguments& arguments,
                Chain& chain, BoundLinks& bound) {
  const Argument from = arguments.bind(step.args[0]);
  bind_links(work, step, tile, arguments, bound);
  const PlannedLink& last = step.links.back();
  chain.from = from.at;
  chain.from_stays = step.from_local;
  chain.to = work.registers[step.reg] = place_of(work, last, step.slot, tile);
  chain.to_stays = last.local;
  chain.links = bound.links;
  chain.count = int(step.links.size());
  chain.streams = false;
  chain.ahead_count = 0;
}

// What this tile writes after this chain, and what the next one reads at its start. What the chain
// writes itself is under way already: of that, the next tile's, unless it goes past the caches.
void look_ahead(const Workspace& work, const Step& step, const Tile& tile, Chain& chain) {
  Tile next = tile;
  next.row0 += tile.rows;
  const bool last = next.row0 + next.rows > work.domain->outer_count;
  for (const int i : work.plan->ahead) {
    const Access& access = work.plan->accesses[size_t(i)];
    const bool writes = work.plan->ir.operands[size_t(access.operand)].is_output;
    const bool later = writes && i != step.links.back().direct;
    if ((last && !later) || (writes && work.streams)) continue;
    const char* at = find_in_place(work, access, later ? tile : next);
    if (at != nullptr) chain.ahead[chain.ahead_count++] = at;
  }
}

// Whether a chain's result goes past the caches. REQUIRES that no other chain reads it.
bool streams(const Workspace& work, const Step& step, const Tile& tile, bool by_rows,
             const Chain& chain) {
  const bool in_slot = chain.to_stays || chain.to == work.points + step.slot * work.capacity;
  const bool aligned = reinterpret_cast<uintptr_t>(chain.to) % 64 == 0;
  const bool each_row = !by_rows || tile.fast() * step.size % 64 == 0;
  return work.streams && !in_slot && aligned && each_row;
}

void advance(const void*& at, int64_t bytes) { at = static_cast<const char*>(at) + bytes; }
void advance(void*& at, int64_t bytes) {
  if (at != nullptr) at = static_cast<char*>(at) + bytes;
}

// From one run to the next.
void advance(Chain& chain, BoundLinks& bound, int64_t bytes) {
  advance(chain.from, chain.from_stays ? 0 : bytes);
  advance(chain.to, chain.to_stays ? 0 : bytes);
  for (int k = 0; k < chain.ahead_count; ++k) chain.ahead[k] += bytes;
  for (int k = 0; k < chain.count; ++k) {
    advance(bound.links[k].operand, bound.slow_bytes[k]);
    advance(bound.links[k].keep, bound.links[k].keep_stays ? 0 : bytes);
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
  const Access& access = work.plan->accesses[size_t(step.access)];
  // A chain may have written it there.
  const bool placed = level == Level::point && step.level == Level::point &&
                      work.registers[step.args[0]] == find_in_place(work, access, tile);
  if (placed) return;
  const RegisterStrides s = register_strides(level, tile);
  store_tile(work, access, tile, work.registers[step.args[0]], value.size, s.slow, s.fast);
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
    case IrKind::scalar: TESSERA_ASSERT(step.links.empty()); return run_scalar(work, step, tile);
    case IrKind::cast: return run_cast(work, step, tile);
    case IrKind::store: return run_store(work, step, tile);
    case IrKind::reduce: TESSERA_ASSERT(!"a reduce is run by run_fold");
  }
}

void run_chains(const Workspace& work, const Step* steps, const Tile& tile) {
  if (tile.count() == 0) return;
  Chain chains[kMostTogether];
  BoundLinks bound[kMostTogether];
  Arguments arguments(work, Level::point, tile);
  const int count = steps->together;
  for (int k = 0; k < count; ++k) {
    bind_chain(work, steps[k], tile, arguments, chains[k], bound[k]);
    if (steps[k].looks_ahead) look_ahead(work, steps[k], tile, chains[k]);
  }
  const bool by_rows = arguments.by_rows();
  const int last = count - 1;
  chains[last].streams = streams(work, steps[last], tile, by_rows, chains[last]);
  if (!by_rows) return steps->chain(tile.count(), chains, count);
  for (int64_t i = 0; i < tile.slow(); ++i) {
    steps->chain(tile.fast(), chains, count);
    for (int k = 0; k < count; ++k) advance(chains[k], bound[k], tile.fast() * steps->size);
  }
}

void run_fold(const Workspace& work, const Step& step, const Tile& tile, char* rows) {
  if (tile.count() == 0) return;
  const Fold fold = {tile.rows, tile.points, tile.inner_fast, tile.point0};
  if (step.dot != nullptr) {
    return step.dot(state_of(work, step.slot, rows), work.registers[step.args[0]],
                    work.registers[step.args[1]], fold);
  }
  const int arg = step.args[0];
  const bool ready = work.plan->registers[size_t(arg)].level == Level::point;
  const char* from = ready ? work.registers[arg] : spread(work, arg, tile, 0);
  int64_t* where = nullptr;
  if (step.where_slot >= 0) {
    where = reinterpret_cast<int64_t*>(state_of(work, step.where_slot, rows));
  }
  step.fold(state_of(work, step.slot, rows), where, from, fold);
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
