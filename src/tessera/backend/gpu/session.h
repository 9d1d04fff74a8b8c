// What the kernels of this folder need of a device that compiles source text at run time. The
// backends of OpenCL and CUDA give it; everything here is written once for both, in the words that
// a Dialect defines for hand-written kernels.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "tessera/codegen/dialect.h"
#include "tessera/runtime/backend.h"

namespace tessera::gpu {

// An operand of a kernel: two arguments, a pointer and the element (i64) it starts at. One that was
// left out is null.
struct Operand {
  void* mem = nullptr;
  int64_t start = 0;
};
Operand operand(BufferRef buffer, const OperandView& view);

// Work items per group, and groups.
struct Range {
  size_t group[3] = {1, 1, 1};
  size_t groups[3] = {1, 1, 1};
  size_t local_bytes = 0;  // beyond what the kernel declares; CUDA alone has such
};

// The values a kernel is launched with, in the order of its parameters.
class Arguments {
 public:
  struct Value {
    size_t offset, bytes;
  };

  void add(const Operand& operand) {
    append(&operand.mem, sizeof operand.mem);
    append(&operand.start, sizeof operand.start);
  }
  template <class T>
  requires std::is_trivially_copyable_v<T>
  void add(const T& value) { append(&value, sizeof value); }

  void add_bytes(std::span<const std::byte> value) { append(value.data(), value.size()); }

  size_t size() const { return values_.size(); }
  const void* at(size_t i) const { return bytes_.data() + values_[i].offset; }
  size_t bytes(size_t i) const { return values_[i].bytes; }

 private:
  void append(const void* value, size_t bytes);

  std::vector<std::byte> bytes_;  // each value aligned to 16
  std::vector<Value> values_;
};

// Thread safe.
class Kernel {
 public:
  virtual ~Kernel() = default;

  virtual int64_t largest_group() const = 0;

  // How many groups of so many work items a compute unit has room for at once.
  virtual int64_t groups_at_once(int64_t group) const = 0;

  // Queues the kernel; nothing happens where there are no groups.
  virtual void launch(Stream stream, const Range& range, const Arguments& arguments) const = 0;

  template <class... Args>
  void operator()(Stream stream, const Range& range, const Args&... args) const {
    Arguments arguments;
    (arguments.add(args), ...);
    launch(stream, range, arguments);
  }
};

// A flag that a kernel raises when it meets an index out of range, and what that means.
struct IndexCheck {
  virtual ~IndexCheck() = default;
  void* flag = nullptr;         // i32, 0
  std::string op, what, range;  // "gather", "an index is", "[0, 5)"
};

// Local memory that generated kernels may declare beside a row: a fold of each lane's values.
constexpr int64_t kFoldBytes = 8 << 10;

struct DeviceTraits {
  std::string name;  // "opencl:0"
  const Dialect* dialect = nullptr;
  bool has_addresses = false;  // handles are addresses that the host may add to
  int64_t compute_units = 0;
  int64_t local_bytes = 0;  // shared by a group
  int64_t row_bytes = 0;    // that a generated kernel may take for a row
  int64_t largest_group = 0;
  int64_t local_bytes_asked = 0;  // to be had by Range::local_bytes
  int64_t lanes_per_unit = 0;     // that run at once; 0: not known
  int cluster_groups = 1;         // that reach each other's local memory; 1: none
};

// Thread safe, as backends are.
class Session {
 public:
  virtual ~Session() = default;

  virtual const DeviceTraits& device() const = 0;

  // A function of a source, compiled now or before. `op` is named in errors.
  virtual std::unique_ptr<Kernel> build(const std::string& op, const std::string& source,
                                        const std::string& entry) = 0;

  // Room for what a kernel leaves for its next part; the next call for the stream may take it.
  virtual void* workspace(Stream stream, int64_t bytes) = 0;

  virtual void copy(BufferRef to, BufferRef from, int64_t bytes, Stream stream) = 0;

  virtual std::shared_ptr<const IndexCheck> make_check(std::string op, std::string what,
                                                       std::string range) = 0;
  // The stream's next synchronisation looks at the check.
  virtual void watch(Stream stream, const std::shared_ptr<const IndexCheck>& check) = 0;
};

// What Backend::compile returns on such a device.
class GpuExecutable : public Executable {
 public:
  virtual void launch(std::span<const BufferRef> operands, int64_t extent0,
                      Stream stream) const = 0;
};

}  // namespace tessera::gpu
