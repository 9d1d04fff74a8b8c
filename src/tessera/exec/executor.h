// Executor: a Program bound to a backend. Binding compiles kernels and checks that memory suffices;
// running launches the instructions in order and allocates nothing once the arena has its size. On
// a backend that records, a program that runs a second time over the same buffers is recorded, and
// is one launch from then on.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "tessera/compile/program.h"
#include "tessera/exec/kernel_cache.h"
#include "tessera/exec/profile.h"
#include "tessera/runtime/backend.h"

namespace tessera {

// What all executors of one backend share: kernels, and the arena. Programs that share an arena do
// not overlap in time: a run holds its lock.
class ExecContext {
 public:
  explicit ExecContext(Backend& backend) : backend_(backend) {}

  Backend& backend() { return backend_; }
  KernelCache& kernels() { return kernels_; }
  int64_t arena_bytes() const;

 private:
  friend class Executor;
  Backend& backend_;
  KernelCache kernels_;
  mutable std::mutex run_mutex_;
  std::shared_ptr<Memory> arena_;
};

class Executor {
 public:
  // Throws with the breakdown when the device's memory cannot hold the program, or what is free of
  // it cannot hold what the program adds: its outputs, and temporaries beyond those of others.
  Executor(Program program, ExecContext& context);

  const Program& program() const { return program_; }

  // Buffers in the order of the program's externals and outputs, each of the planned size. Errors
  // in the data (an index out of range) throw with the kernel and its scope. Every kernel is added
  // to `profile`, or else to the active one where there is one; each is then waited for.
  void run(std::span<const Buffer> externals, std::span<const Buffer> outputs,
           Profile* profile = nullptr);

 private:
  struct Step {
    std::shared_ptr<const Executable> executable;
    int64_t extent0 = 0;
    int first = 0, count = 0;  // of places_
  };
  // Where an operand lies: entry `base` of the table of bases, plus an offset. Base 0 is the arena.
  struct Place {
    int base;
    int64_t offset;
  };

  // A run over these bases: null until the second one.
  struct Recording {
    std::vector<BufferRef> bases;
    std::shared_ptr<const Executable> work;
  };

  void check_memory() const;
  void check_free_memory() const;
  void ensure_arena();
  void launch(size_t i);
  void launch_all();
  void replay();
  std::shared_ptr<const Executable> record();
  void run_profiled(Profile& profile);

  Program program_;
  ExecContext& context_;
  std::vector<Step> steps_;
  std::vector<Place> places_;
  std::vector<BufferRef> bases_;     // arena, externals, outputs; refilled by each run
  std::vector<BufferRef> operands_;  // scratch of one launch

  bool records_ = true;                // until the backend or the work says no
  std::vector<Recording> recordings_;  // most recent first

  // The activities of the profile that a run added to last: the run itself, then each instruction.
  uint64_t profile_id_ = 0;
  std::vector<int> activities_;
};

}  // namespace tessera
