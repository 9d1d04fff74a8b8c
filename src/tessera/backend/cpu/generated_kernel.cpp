#include "tessera/backend/cpu/generated_kernel.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "tessera/backend/cpu/isa.h"
#include "tessera/backend/cpu/scratch.h"
#include "tessera/backend/cpu/tiling.h"
#include "tessera/base/thread_pool.h"

namespace tessera::cpu {

namespace {

// Values computed per thread and part: below this, waking a thread costs more than it saves.
constexpr int64_t kWorthAThread = 32768;

// One launch: what all its threads share.
class Launch {
 public:
  Launch(const Plan& plan, std::span<char* const> operands, int64_t extent0)
      : plan_(plan), operands_(operands.data()), domain_(make_domain(plan, extent0)) {}

  void run() {
    const bool empty = domain_.inner_count == 0;
    if (domain_.outer_count == 0 || (empty && plan_.map)) return;
    tiling_ = choose_tiling(plan_, domain_);
    program_ = tiling_.whole ? &plan_.whole : &plan_.chunked;
    measure();
    prepare_shared();
    run_once(empty);
    if (plan_.map) {
      run_map();
    } else if (tiling_.whole) {
      run_whole();
    } else {
      run_chunked();
    }
  }

 private:
  int64_t register_count() const { return int64_t(plan_.registers.size()); }

  void measure() {
    capacity_ = padded(tiling_.rows * tiling_.points);
    row_capacity_ = padded(tiling_.rows);
    row_area_ = plan_.row_bytes * row_capacity_;
    point_area_ = program_->point_bytes * capacity_;
    block_area_ = program_->point_bytes * kMostBlock;
    spare_area_ = 3 * 8 * std::max(capacity_, row_capacity_);
    const int64_t per_tile = tiling_.rows * tiling_.points * std::max(1, plan_.point_steps);
    shared_.streams = outgrows_caches(plan_, domain_) && !works_in_place();
    tiles_worth_a_thread_ = std::max<int64_t>(1, kWorthAThread / std::max<int64_t>(1, per_tile));
  }

  // An output in an input's memory: its lines are in the caches anyhow.
  bool works_in_place() const {
    const std::vector<IrOperand>& operands = plan_.ir.operands;
    for (size_t out = 0; out < operands.size(); ++out) {
      for (size_t in = 0; operands[out].is_output && in < operands.size(); ++in) {
        if (!operands[in].is_output && operands_[in] == operands_[out]) return true;
      }
    }
    return false;
  }

  // Layout of the launch's scratch: register addresses, uniform values, then row areas (one for the
  // rows and one for each segment's partial results).
  void prepare_shared() {
    const int64_t addresses = padded(register_count() * int64_t(sizeof(char*)));
    const int64_t values = padded(register_count() * 8);
    const int64_t row_areas = tiling_.whole || plan_.map ? 0 : 1 + tiling_.segments;
    char* at = scratch(Scratch::launch, addresses + values + row_areas * row_area_ + 256);
    shared_.plan = &plan_;
    shared_.domain = &domain_;
    shared_.operands = operands_;
    shared_.registers = reinterpret_cast<char**>(at);
    shared_.capacity = shared_.row_capacity = 1;
    char* uniform = at + addresses;
    shared_rows_ = uniform + values;
    for (int64_t i = 0; i < register_count(); ++i) {
      const Register& reg = plan_.registers[size_t(i)];
      shared_.registers[i] = uniform + i * 8;
      if (reg.is_constant) std::memcpy(uniform + i * 8, &reg.constant, 8);
    }
  }

  void run_once(bool empty) {
    alignas(64) char spare[3 * 8];
    shared_.spare = spare;
    for (const Step& step : plan_.once) {
      // Where there are no points, what belongs to them has no memory to read either.
      const bool of_points = plan_.ir.insts[size_t(step.reg)].level == IrLevel::elem;
      if (empty && of_points) continue;
      run_step(shared_, step, {0, 1, 0, 1, false});
    }
  }

  // This thread's registers, on top of the launch's uniform ones.
  Workspace enter_thread() const {
    const int64_t addresses = padded(register_count() * int64_t(sizeof(char*)));
    char* at = scratch(Scratch::tile,
                       addresses + block_area_ + point_area_ + row_area_ * 2 + spare_area_ + 256);
    Workspace work = shared_;
    work.registers = reinterpret_cast<char**>(at);
    work.blocks = at + addresses;
    work.points = work.blocks + padded(block_area_);
    work.rows = work.points + padded(point_area_);
    work.spare = work.rows + padded(row_area_ * 2);
    work.capacity = capacity_;
    work.row_capacity = row_capacity_;
    std::memcpy(work.registers, shared_.registers, size_t(register_count()) * sizeof(char*));
    place_rows(work);
    return work;
  }

  void place_rows(const Workspace& work) const {
    for (int64_t i = 0; i < register_count(); ++i) {
      const int slot = plan_.registers[size_t(i)].row_slot;
      if (slot >= 0) work.registers[i] = work.rows + slot * work.row_capacity;
    }
  }

  template <class Body>
  void parallel(int64_t tasks, int64_t grain, const Body& body) const {
    if (tasks <= grain) return run_part(body, 0, tasks);
    auto part = [&](int64_t begin, int64_t end) { run_part(body, begin, end); };
    thread_pool().parallel_for(tasks, tasks_of_part(tasks, grain), std::cref(part));
  }

  template <class Body>
  void run_part(const Body& body, int64_t begin, int64_t end) const {
    body(begin, end);
    if (shared_.streams) plan_.stream_fence();
  }

  Tile row_tile(int64_t block) const {
    const int64_t row0 = block * tiling_.rows;
    return {row0, std::min(tiling_.rows, domain_.outer_count - row0), 0, 0, plan_.inner_fast};
  }

  void set_points(Tile& tile, int64_t chunk) const {
    tile.point0 = chunk * tiling_.points;
    tile.points = std::min(tiling_.points, domain_.inner_count - tile.point0);
  }

  void run_map() {
    const Phase& phase = program_->phases[0];
    auto body = [&](int64_t begin, int64_t end) {
      const Workspace work = enter_thread();
      for (int64_t task = begin; task < end; ++task) {
        Tile tile = row_tile(task / tiling_.chunks);
        set_points(tile, task % tiling_.chunks);
        for (const Step& step : phase.rows) run_step(work, step, tile);
        run_points(work, phase, tile, work.rows);
      }
    };
    parallel(tiling_.row_blocks * tiling_.chunks, tiles_worth_a_thread_, body);
  }

  void run_whole() {
    auto body = [&](int64_t begin, int64_t end) {
      const Workspace work = enter_thread();
      for (int64_t block = begin; block < end; ++block) {
        Tile tile = row_tile(block);
        tile.points = domain_.inner_count;
        for (const Phase& phase : program_->phases) run_whole_phase(work, phase, tile);
      }
    };
    parallel(tiling_.row_blocks, tiles_worth_a_thread_, body);
  }

  static void run_whole_phase(const Workspace& work, const Phase& phase, const Tile& tile) {
    for (const Step& step : phase.rows) run_step(work, step, tile);
    start_results(work, phase, tile.rows);
    run_points(work, phase, tile, work.rows);
  }

  // Folds go into the state at `rows`.
  static void run_points(const Workspace& work, const Phase& phase, const Tile& tile, char* rows) {
    const std::vector<Step>& steps = phase.points;
    for (size_t i = 0; i < steps.size(); i += size_t(steps[i].together)) {
      if (steps[i].kind == IrKind::reduce) {
        run_fold(work, steps[i], tile, rows);
      } else if (!steps[i].links.empty()) {
        run_chains(work, &steps[i], tile);
      } else {
        run_step(work, steps[i], tile);
      }
    }
  }

  // Rows that are cut: either every thread takes its own rows, or all share the segments of one
  // block of rows after the other. The operations and their order are the same.
  void run_chunked() {
    const int64_t per_segment = tiling_.segment / tiling_.points;
    const int64_t block_tiles = tiling_.chunks;
    const int64_t grain = std::max<int64_t>(1, tiles_worth_a_thread_ / block_tiles);
    const int64_t threads = 1 + thread_pool().workers();
    const bool small = tiling_.row_blocks * block_tiles <= tiles_worth_a_thread_;
    if (small || tiling_.segments == 1 || tiling_.row_blocks >= 2 * threads) {
      auto body = [&](int64_t begin, int64_t end) {
        const Workspace work = enter_thread();
        for (int64_t block = begin; block < end; ++block) run_block_alone(work, row_tile(block));
      };
      return parallel(tiling_.row_blocks, grain, body);
    }
    const int64_t segment_grain = std::max<int64_t>(1, tiles_worth_a_thread_ / per_segment);
    for (int64_t block = 0; block < tiling_.row_blocks; ++block) {
      run_block_together(row_tile(block), segment_grain);
    }
  }

  void run_segment(const Workspace& work, const Phase& phase, Tile tile, int64_t segment,
                   char* part) const {
    for (const Step& step : phase.points) {
      if (step.kind == IrKind::reduce) start_fold(work, step, tile.rows, part);
    }
    const int64_t per_segment = tiling_.segment / tiling_.points;
    const int64_t last = std::min(tiling_.chunks, (segment + 1) * per_segment);
    for (int64_t chunk = segment * per_segment; chunk < last; ++chunk) {
      set_points(tile, chunk);
      run_points(work, phase, tile, part);
    }
  }

  static void start_results(const Workspace& work, const Phase& phase, int64_t rows) {
    for (const Step& step : phase.points) {
      if (step.kind == IrKind::reduce) start_fold(work, step, rows, work.rows);
    }
  }

  static void combine(const Workspace& work, const Phase& phase, int64_t rows, const char* part) {
    for (const Step& step : phase.points) {
      if (step.kind == IrKind::reduce) combine_fold(work, step, rows, work.rows, part);
    }
  }

  void run_block_alone(const Workspace& work, const Tile& tile) const {
    char* part = work.rows + row_area_;
    for (const Phase& phase : program_->phases) {
      for (const Step& step : phase.rows) run_step(work, step, tile);
      start_results(work, phase, tile.rows);
      for (int64_t segment = 0; segment < tiling_.segments && !phase.points.empty(); ++segment) {
        run_segment(work, phase, tile, segment, part);
        combine(work, phase, tile.rows, part);
      }
    }
  }

  void run_block_together(const Tile& tile, int64_t grain) {
    // The rows live in the launch's scratch; each thread adds its own point registers.
    for (const Phase& phase : program_->phases) {
      {
        Workspace work = enter_thread();
        work.rows = shared_rows_;
        restore_rows(work);
        for (const Step& step : phase.rows) run_step(work, step, tile);
        start_results(work, phase, tile.rows);
        save_rows(work);
      }
      if (phase.points.empty()) continue;
      auto body = [&](int64_t begin, int64_t end) {
        Workspace work = enter_thread();
        work.rows = shared_rows_;
        restore_rows(work);
        for (int64_t s = begin; s < end; ++s) run_segment(work, phase, tile, s, part_of(s));
      };
      parallel(tiling_.segments, grain, body);
      Workspace work = shared_;
      work.rows = shared_rows_;
      work.row_capacity = row_capacity_;
      for (int64_t s = 0; s < tiling_.segments; ++s) combine(work, phase, tile.rows, part_of(s));
    }
  }

  char* part_of(int64_t segment) const { return shared_rows_ + (1 + segment) * row_area_; }

  // Row registers keep their addresses from phase to phase: a load may have left one in its
  // operand.
  void save_rows(const Workspace& work) {
    for (int64_t i = 0; i < register_count(); ++i) {
      if (plan_.registers[size_t(i)].row_slot >= 0) shared_.registers[i] = work.registers[i];
    }
    rows_saved_ = true;
  }

  void restore_rows(const Workspace& work) const {
    if (!rows_saved_) return place_rows(work);
    for (int64_t i = 0; i < register_count(); ++i) {
      if (plan_.registers[size_t(i)].row_slot >= 0) work.registers[i] = shared_.registers[i];
    }
  }

  const Plan& plan_;
  char* const* operands_;
  Domain domain_;
  Tiling tiling_{};
  const Program* program_ = nullptr;
  Workspace shared_{};
  char* shared_rows_ = nullptr;
  bool rows_saved_ = false;
  int64_t capacity_ = 0, row_capacity_ = 0;
  int64_t row_area_ = 0, point_area_ = 0, block_area_ = 0, spare_area_ = 0;
  int64_t tiles_worth_a_thread_ = 1;
};

}  // namespace

GeneratedKernel::GeneratedKernel(const KernelIR& ir) : plan_(make_plan(ir, loops())) {}

void GeneratedKernel::run(std::span<char* const> operands, int64_t extent0) const {
  Launch(plan_, operands, extent0).run();
}

}  // namespace tessera::cpu
