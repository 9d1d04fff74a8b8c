// A function of a program, and launching it.
#pragma once

#include <type_traits>

#include "tessera/backend/opencl/session.h"

namespace tessera::opencl {

// An operand of a kernel: two arguments, a pointer and the element (i64) it starts at. One that was
// left out is null.
struct Operand {
  MemId mem = nullptr;
  int64_t start = 0;
};
Operand operand(BufferRef buffer, const OperandView& view);

// Work items per group, and groups.
struct Range {
  size_t group[3] = {1, 1, 1};
  size_t groups[3] = {1, 1, 1};
};

// Thread safe: a launch holds the kernel.
class Kernel {
 public:
  // `op` is named in errors.
  Kernel(Session& session, std::string op, const std::string& source, const std::string& entry);

  int64_t largest_group() const;

  // Queues the kernel; nothing happens where there are no groups.
  template <class... Args>
  void operator()(Stream stream, const Range& range, const Args&... args) const {
    Launch launch(*this, stream);
    (launch.add(args), ...);
    launch.run(range);
  }

  class Launch {
   public:
    Launch(const Kernel& kernel, Stream stream)
        : kernel_(kernel), stream_(stream), lock_(kernel.mutex_) {}

    void add(const Operand& operand) {
      set(&operand.mem, sizeof operand.mem);
      set(&operand.start, sizeof operand.start);
    }
    template <class T>
    requires std::is_trivially_copyable_v<T>
    void add(const T& value) { set(&value, sizeof value); }
    void run(const Range& range);

   private:
    void set(const void* value, size_t bytes);

    const Kernel& kernel_;
    Stream stream_;
    std::lock_guard<std::mutex> lock_;
    uint32_t count_ = 0;
  };

 private:
  Session& session_;
  const std::string op_;
  std::shared_ptr<const Program> program_;
  KernelHandle handle_;
  mutable std::mutex mutex_;
};

// What Backend::compile returns here.
class OpenClExecutable : public Executable {
 public:
  virtual void launch(std::span<const BufferRef> operands, int64_t extent0,
                      Stream stream) const = 0;
};

}  // namespace tessera::opencl
