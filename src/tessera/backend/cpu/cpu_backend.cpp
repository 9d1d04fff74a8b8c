#include "tessera/backend/cpu/cpu_backend.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

#include "tessera/backend/cpu/generated_kernel.h"
#include "tessera/backend/cpu/host_memory.h"
#include "tessera/backend/cpu/isa.h"
#include "tessera/backend/cpu/kernels/named_kernel.h"
#include "tessera/backend/cpu/kernels/product.h"
#include "tessera/backend/cpu/scratch.h"
#include "tessera/base/thread_pool.h"
#include "tessera/runtime/counters.h"

namespace tessera {

namespace {

constexpr size_t kMostOperands = 256;  // of a kernel whose addresses fit on the stack

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos) {
      return line.substr(colon + 2);
    }
  }
  return "processor of unknown name";
}

int64_t physical_memory() {
  return int64_t(sysconf(_SC_PHYS_PAGES)) * int64_t(sysconf(_SC_PAGE_SIZE));
}

Target describe() {
  Target target;
  target.device = "cpu";
  const int threads = 1 + thread_pool().workers();
  target.description =
      cat(processor_name(), ", ", threads, threads == 1 ? " thread, " : " threads, ",
          cpu::name(cpu::isa()), ", ", cpu::onednn_status());
  target.memory_bytes = physical_memory();
  target.turns_products = true;
  target.orders_outputs = true;
  for (const cpu::NamedKernelRow& row : cpu::named_kernels()) {
    target.named_kernels.emplace_back(row.name);
    if (!row.halves) target.wide_kernels.emplace_back(row.name);
  }
  return target;
}

// An output that was left out stays without an address.
char* address(BufferRef buffer) {
  return buffer.handle == nullptr ? nullptr : static_cast<char*>(buffer.handle) + buffer.offset;
}

class GeneratedExecutable : public Executable {
 public:
  explicit GeneratedExecutable(const KernelIR& ir) : kernel(ir) {}
  cpu::GeneratedKernel kernel;
};

// Its parts one after the other: starting a kernel costs next to nothing here.
class JoinedExecutable : public cpu::NamedKernel {
 public:
  explicit JoinedExecutable(const KernelCall& call) : call_(call), kernel_(*call.ir) {}

  void run(std::span<char* const> operands) const override {
    std::vector<std::vector<char*>> parts(call_.parts.size());
    for (size_t i = 0; i < operands.size(); ++i) {
      parts[part_operand(call_, i).part].push_back(operands[i]);
    }
    for (size_t p = 0; p < parts.size(); ++p) kernel_.run(parts[p], call_.parts[p]);
  }

 private:
  const KernelCall call_;
  const cpu::GeneratedKernel kernel_;
};

class CpuBackend : public Backend {
 public:
  CpuBackend() : target_(describe()) {}

  const Target& target() const override { return target_; }

  std::shared_ptr<Memory> allocate(int64_t bytes) override {
    TESSERA_ASSERT(bytes >= 0);
    void* handle = cpu::allocate_host(bytes);
    if (handle == nullptr) fail("cpu: out of memory: asked for ", bytes, " bytes");
#ifndef NDEBUG
    // NaN in every floating type: what is read before it is written shows.
    std::memset(handle, 0xFB, size_t(bytes));
#endif
    counters().add_allocation(bytes);
    return std::make_shared<Memory>(this, handle, bytes, false);
  }

  void release(Memory& memory) override {
    counters().add_release(memory.bytes);
    std::free(memory.handle);
  }

  void upload(BufferRef to, const void* from, int64_t bytes, Stream) override {
    if (bytes > 0) std::memcpy(address(to), from, size_t(bytes));
  }
  void download(void* to, BufferRef from, int64_t bytes, Stream) override {
    if (bytes > 0) std::memcpy(to, address(from), size_t(bytes));
  }
  void copy(BufferRef to, BufferRef from, int64_t bytes, Stream) override {
    if (bytes > 0) std::memmove(address(to), address(from), size_t(bytes));
  }

  std::unique_ptr<Executable> compile(const KernelCall& call) override {
    counters().compiles.fetch_add(1, std::memory_order_relaxed);
    if (call.ir == nullptr) return compile_named(call);
    TESSERA_ASSERT(verify(*call.ir).empty());
    if (!call.parts.empty()) return std::make_unique<JoinedExecutable>(call);
    return std::make_unique<GeneratedExecutable>(*call.ir);
  }

  void launch(const Executable& executable, std::span<const BufferRef> operands, int64_t extent0,
              Stream) override {
    counters().launches.fetch_add(1, std::memory_order_relaxed);
    char* on_stack[kMostOperands];
    std::unique_ptr<char*[]> on_heap;
    if (operands.size() > kMostOperands) on_heap = std::make_unique<char*[]>(operands.size());
    char** addresses = on_heap ? on_heap.get() : on_stack;
    for (size_t i = 0; i < operands.size(); ++i) addresses[i] = address(operands[i]);
    const std::span<char* const> all(addresses, operands.size());
    if (const auto* generated = dynamic_cast<const GeneratedExecutable*>(&executable)) {
      generated->kernel.run(all, extent0);
    } else {
      static_cast<const cpu::NamedKernel&>(executable).run(all);
    }
  }

  void synchronize(Stream) override {}

 private:
  static std::unique_ptr<Executable> compile_named(const KernelCall& call) {
    for (const cpu::NamedKernelRow& row : cpu::named_kernels()) {
      if (row.name != call.kernel) continue;
      if (row.operands >= 0 && int(call.operands.size()) != row.operands) {
        fail(row.name, ": expected ", row.operands, " operands, got ", call.operands.size());
      }
      return row.make(call);
    }
    fail("cpu: expected the name of a kernel it has, got '", call.kernel, "'");
  }

  Target target_;
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend() { return std::make_unique<CpuBackend>(); }

}  // namespace tessera
