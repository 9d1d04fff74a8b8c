// The seam between the engine and a device: everything a backend must do, in nine functions, and
// five more for those that can grow memory in place, tell what is left of it, or record work.
//
// Buffers are opaque handles with an offset. Work is issued to a Stream in order; a backend without
// queues does it at once. Functions may be called from any thread; calls on one stream are ordered
// by the caller.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "tessera/kernel/kernel_call.h"

namespace tessera {

class Backend;

// A piece of device memory: owned (released with the last reference) or foreign (a map, a span).
struct Memory {
  Backend* backend = nullptr;
  void* handle = nullptr;  // on the CPU the address itself
  int64_t bytes = 0;
  bool foreign = false;

  Memory(Backend* backend_, void* handle_, int64_t bytes_, bool foreign_)
      : backend(backend_), handle(handle_), bytes(bytes_), foreign(foreign_) {}
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory();  // backend->release(*this) unless foreign
};

// Part of a Memory. Copying it copies the reference, not the contents.
struct Buffer {
  std::shared_ptr<Memory> memory;
  int64_t offset = 0;  // bytes
  int64_t bytes = 0;
};

// What a launch takes: cheap to make, does not own.
struct BufferRef {
  void* handle = nullptr;
  int64_t offset = 0;  // bytes

  bool operator==(const BufferRef&) const = default;
};
inline BufferRef ref(const Buffer& buffer) {
  return {buffer.memory ? buffer.memory->handle : nullptr, buffer.offset};
}

struct Stream {
  int index = 0;
};

// A kernel ready to launch. Backends derive from it.
class Executable {
 public:
  virtual ~Executable() = default;
};

class Backend {
 public:
  virtual ~Backend() = default;

  virtual const Target& target() const = 0;

  // Aligned to target().alignment; contents undefined. Throws Error with what was asked when the
  // device has no more.
  virtual std::shared_ptr<Memory> allocate(int64_t bytes) = 0;
  virtual void release(Memory& memory) = 0;

  virtual void upload(BufferRef to, const void* from, int64_t bytes, Stream stream) = 0;
  virtual void download(void* to, BufferRef from, int64_t bytes, Stream stream) = 0;  // waits
  virtual void copy(BufferRef to, BufferRef from, int64_t bytes, Stream stream) = 0;

  // For a named kernel the views are fixed here; for an ir, extents[0] is given again at launch.
  virtual std::unique_ptr<Executable> compile(const KernelCall& call) = 0;

  // `operands` in the order of KernelCall::operands. Bad indices in the data throw Error here on
  // the CPU, at the next synchronize() elsewhere. `extent0` is ir->extents[0]; named kernels ignore
  // it.
  virtual void launch(const Executable& executable, std::span<const BufferRef> operands,
                      int64_t extent0, Stream stream) = 0;

  virtual void synchronize(Stream stream) = 0;

  // Memory for temporaries that may grow where it is: extend() then keeps its handle and contents.
  // False: it cannot; allocate anew. Throws when the device has no more.
  virtual std::shared_ptr<Memory> allocate_arena(int64_t bytes) { return allocate(bytes); }
  virtual bool extend(Memory&, int64_t /*bytes*/) { return false; }

  // What an allocation may take now, whoever uses the rest. Nothing: the device does not say.
  virtual std::optional<int64_t> free_bytes() { return std::nullopt; }

  // What is launched on the stream between the two is kept instead of run; launch() of the result,
  // without operands, then runs all of it, over the same buffers. False: this backend records
  // nothing. Null: not this work; `reason` says why.
  virtual bool begin_recording(Stream) { return false; }
  virtual std::unique_ptr<Executable> end_recording(Stream, std::string& /*reason*/) {
    return nullptr;
  }
};

}  // namespace tessera
