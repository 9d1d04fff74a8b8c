// Runs a kernel's CUDA text on the host: the C++ compiler builds it behind a shim in which a
// group's lanes are threads, and groups run one after the other, but for those of a cluster, each
// of which has a copy of the library, and so local memory of its own.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tessera/codegen/render.h"

namespace tessera {

// Why kernels cannot be run here; empty when they can.
std::string host_compiler_missing();

class HostKernel {
 public:
  // Throws std::runtime_error with the compiler's output when the text does not compile.
  explicit HostKernel(const KernelIR& ir, int group_size = 8);
  HostKernel(const KernelIR& ir, const RenderOptions& options);

  // `operands` point to the first elements. Returns the error flag. At most `max_groups` groups are
  // or clusters are started, so that each has several rows to walk.
  int run(std::vector<void*> operands, int64_t extent0, int64_t max_groups = 3) const;

  // A split kernel: both entries.
  int run_split(std::vector<void*> operands, int64_t extent0, int64_t splits) const;

  // A joined kernel, of `capacity` parts or fewer. Groups and, of a split one, the scratch memory
  // are given here.
  void run_parts(std::vector<KernelPart> parts, int capacity, int64_t max_groups = 3) const;

  const RenderedKernel& rendered() const { return rendered_; }

  // The same with vectors of elements.
  template <class... Vectors>
  int operator()(int64_t extent0, Vectors&... vectors) const {
    return run({const_cast<void*>(static_cast<const void*>(vectors.data()))...}, extent0);
  }

 private:
  void launch(const char* entry, std::vector<void*>& params, int64_t groups) const;

  KernelIR ir_;
  RenderedKernel rendered_;
  std::vector<std::shared_ptr<void>> libraries_;  // one for each group of a cluster
  bool is_split_ = false;
};

// Nothing promised, and everything but a split: what tests of values run under.
std::vector<RenderOptions> promised_options();
std::string promise_name(const testing::TestParamInfo<RenderOptions>& info);

// A folder that goes away with the object.
class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  std::string path(const std::string& file) const { return folder_ + "/" + file; }

 private:
  std::string folder_;
};

// Writes `text` to a file, and reads one; absent when it cannot be opened.
void write_text(const std::string& path, const std::string& text);
std::optional<std::string> read_text(const std::string& path);

// Runs a shell command, true when it succeeds; `output` takes what it printed.
bool run_command(const std::string& command, std::string& output);

}  // namespace tessera
