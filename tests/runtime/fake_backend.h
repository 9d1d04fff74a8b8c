// A backend with a small memory and no kernels, to test what stands on the seam.
#pragma once

#include <cstdlib>

#include "tessera/runtime/backend.h"

namespace tessera::test {

class FakeBackend : public Backend {
 public:
  explicit FakeBackend(int64_t room) : room_(room) {}

  const Target& target() const override { return target_; }
  std::shared_ptr<Memory> allocate(int64_t bytes) override {
    if (bytes > room_ - used) fail("fake: out of memory: asked for ", bytes, " bytes");
    used += bytes;
    ++allocations;
    return std::make_shared<Memory>(this, std::malloc(size_t(bytes) + 1), bytes, false);
  }
  void release(Memory& memory) override {
    used -= memory.bytes;
    std::free(memory.handle);
  }
  void upload(BufferRef, const void*, int64_t, Stream) override {}
  void download(void*, BufferRef, int64_t, Stream) override {}
  void copy(BufferRef, BufferRef, int64_t, Stream) override {}
  std::unique_ptr<Executable> compile(const KernelCall&) override {
    return std::make_unique<Executable>();
  }
  void launch(const Executable&, std::span<const BufferRef> operands, int64_t extent0,
              Stream) override {
    last_operands = int64_t(operands.size());
    last_extent = extent0;
  }
  void synchronize(Stream) override {}

  int64_t used = 0, allocations = 0, last_operands = 0, last_extent = -1;

 private:
  Target target_;
  int64_t room_;
};

}  // namespace tessera::test
