#include "codegen/host_kernel.h"

#include <dlfcn.h>

#include <algorithm>
#include <barrier>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "tessera/base/error.h"
#include "tessera/codegen/render.h"
#include "tessera/codegen/text.h"

namespace tessera {

namespace {

// What a lane waits at, and how.
struct Waiting {
  std::barrier<>*group, *cluster;
  void (*wait)(std::barrier<>*) = [](std::barrier<>* barrier) { barrier->arrive_and_wait(); };
  void (*arrive)(std::barrier<>*);
  void (*await)(std::barrier<>*);
};
using Entry = void (*)(void** params, unsigned lane, unsigned group, unsigned groups, Waiting*);

constexpr const char* kShim = R"(
#include <math.h>
#include <string.h>
#include <utility>
struct Index { unsigned x; };
static thread_local Index threadIdx, blockIdx, gridDim;
struct Waiting {
  void *group, *cluster;
  void (*wait)(void*);
  void (*arrive)(void*);
  void (*await)(void*);
};
static thread_local Waiting* waiting;
#define __global__
#define __device__
#define __shared__ static
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __syncthreads() waiting->wait(waiting->group)
static void t_arrive() { waiting->arrive(waiting->cluster); }
static void t_await() { waiting->await(waiting->cluster); }
// Where this stands in the library of each group of a cluster.
extern "C" { void* group_bases[8]; }
static void* t_of_group(void* at, int group) {
  return (char*)group_bases[group] + ((char*)at - (char*)group_bases);
}
template <class To, class From> static To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From), "");
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}
static inline float __uint_as_float(unsigned b) { return bits_as<float>(b); }
static inline unsigned __float_as_uint(float f) { return bits_as<unsigned>(f); }
static inline double __longlong_as_double(long long b) { return bits_as<double>(b); }
// Every lane of the group takes part in every shuffle.
static unsigned long long handed[1024];
template <class T> static T hand(T value, unsigned from) {
  memcpy(&handed[threadIdx.x], &value, sizeof value);
  __syncthreads();
  T result;
  memcpy(&result, &handed[from], sizeof result);
  __syncthreads();
  return result;
}
template <class T> static T __shfl_down_sync(unsigned, T value, unsigned step, unsigned width) {
  const unsigned lane = threadIdx.x, from = lane + step;
  return hand(value, from / width == lane / width ? from : lane);
}
template <class T> static T __shfl_sync(unsigned, T value, unsigned from, unsigned width) {
  return hand(value, threadIdx.x / width * width + from);
}
)";

constexpr const char* kLaunch = R"(
template <class... A, size_t... I>
static void call(void (*kernel)(A...), void** params, std::index_sequence<I...>) {
  kernel(*static_cast<A*>(params[I])...);
}
template <class... A>
static void call(void (*kernel)(A...), void** params) {
  call(kernel, params, std::index_sequence_for<A...>());
}
#define SHIM(name, entry)                                                              \
  extern "C" void name(void** params, unsigned lane, unsigned group, unsigned groups, \
                       Waiting* where) {                                              \
    threadIdx.x = lane;                                                               \
    blockIdx.x = group;                                                               \
    gridDim.x = groups;                                                               \
    waiting = where;                                                                  \
    call(entry, params);                                                              \
  }
)";

thread_local std::optional<std::barrier<>::arrival_token> arrived;
void arrive_at(std::barrier<>* barrier) {
  TESSERA_ASSERT(!arrived);
  arrived.emplace(barrier->arrive());
}
void await_at(std::barrier<>* barrier) {
  TESSERA_ASSERT(arrived);
  barrier->wait(std::move(*arrived));
  arrived.reset();
}

std::shared_ptr<void> open(const std::string& library) {
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) throw std::runtime_error(dlerror());
  return std::shared_ptr<void>(handle, dlclose);
}

}  // namespace

TempFolder::TempFolder() {
  std::string pattern =
      (std::filesystem::temp_directory_path() / "tessera_codegen_XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
  folder_ = pattern;
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

void write_text(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  if (!file.flush()) throw std::runtime_error("cannot write " + path);
}

std::optional<std::string> read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

bool run_command(const std::string& command, std::string& output) {
  output.clear();
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return false;
  char block[4096];
  for (size_t n = 0; (n = fread(block, 1, sizeof block, pipe)) > 0;) output.append(block, n);
  return pclose(pipe) == 0;
}

std::string host_compiler_missing() {
  std::string output;
  if (run_command(std::string("'") + TESSERA_HOST_CXX + "' --version", output)) return "";
  return std::string("cannot run the C++ compiler ") + TESSERA_HOST_CXX + ": " + output;
}

std::vector<RenderOptions> promised_options() {
  return {{.max_group_size = 8}, {.max_group_size = 64, .alignment = 16, .narrow_index = true}};
}

std::string promise_name(const testing::TestParamInfo<RenderOptions>& info) {
  return info.param.alignment == 1 ? "Nothing" : "Everything";
}

HostKernel::HostKernel(const KernelIR& ir, int group_size)
    : HostKernel(ir, RenderOptions{.max_group_size = group_size}) {}

HostKernel::HostKernel(const KernelIR& ir, const RenderOptions& options)
    : ir_(ir), rendered_(render(ir, cuda_dialect(), options)) {
  const TempFolder folder;
  const std::string source = folder.path("kernel.cpp"), library = folder.path("kernel.so");
  std::string shims = cat("SHIM(shim_run, ", rendered_.entry, ")\n");
  if (options.split) shims += cat("SHIM(shim_fold, ", rendered_.fold_entry, ")\n");
  // What a launch sizes has the size that this kernel asks for.
  const std::string text = replace_all(rendered_.source, "extern __shared__ u8 row_memory[]",
                                       cat("static u8 row_memory[", rendered_.local_bytes, "]"));
  write_text(source, kShim + text + kLaunch + shims);
  std::string output;
  // Signed overflow traps, because a device's compiler may assume that there is none.
  const std::string flags =
      "-std=c++17 -O1 -ffp-contract=off -fsanitize=signed-integer-overflow "
      "-fsanitize-undefined-trap-on-error -shared -fPIC";
  const std::string command =
      cat("'", TESSERA_HOST_CXX, "' ", flags, " -o '", library, "' '", source, "'");
  if (!run_command(command, output)) throw std::runtime_error(output + "\n" + rendered_.source);
  for (int i = 0; i < rendered_.cluster; ++i) {
    const std::string copy = folder.path(cat("kernel", i, ".so"));
    std::filesystem::copy_file(library, copy);
    libraries_.push_back(open(copy));
  }
  for (const auto& each : libraries_) {
    auto* const bases = static_cast<void**>(dlsym(each.get(), "group_bases"));
    for (size_t i = 0; i < libraries_.size(); ++i) {
      bases[i] = dlsym(libraries_[i].get(), "group_bases");
    }
  }
  is_split_ = options.split;
}

int HostKernel::run(std::vector<void*> operands, int64_t extent0, int64_t max_groups) const {
  int error = 0;
  int* error_pointer = &error;
  std::vector<void*> params;
  for (void*& operand : operands) params.push_back(&operand);
  params.push_back(&extent0);
  params.push_back(&error_pointer);
  const int64_t most = max_groups * rendered_.cluster;
  launch("shim_run", params, std::min(most, rendered_.group_count(ir_, extent0)));
  return error;
}

int HostKernel::run_split(std::vector<void*> operands, int64_t extent0, int64_t splits) const {
  int error = 0;
  int* error_pointer = &error;
  std::vector<uint64_t> scratch(size_t(rendered_.scratch_bytes(ir_, extent0, splits) / 8));
  uint64_t* scratch_pointer = scratch.data();
  std::vector<void*> params;
  for (void*& operand : operands) params.push_back(&operand);
  params.insert(params.end(), {&extent0, &error_pointer, &scratch_pointer, &splits});
  launch("shim_run", params, rendered_.group_count(ir_, extent0, splits));
  launch("shim_fold", params, rendered_.fold_group_count(ir_, extent0));
  return error;
}

void HostKernel::run_parts(std::vector<KernelPart> parts, int capacity, int64_t max_groups) const {
  const bool split = is_split_;
  std::vector<std::vector<uint64_t>> scratch;
  for (KernelPart& part : parts) {
    const int64_t bytes = rendered_.scratch_bytes(ir_, part.extent0, part.splits);
    part.scratch = scratch.emplace_back(size_t(bytes / 8)).data();
    part.groups = rendered_.group_count(ir_, part.extent0, part.splits);
    if (!split) part.groups = std::min(part.groups, max_groups);
  }
  const auto run = [&](const char* entry) {
    std::vector<uint64_t> table = part_table(parts, capacity, split);
    void* error = nullptr;
    std::vector<void*> params = {table.data(), &error};
    int64_t groups = 0;
    for (const KernelPart& part : parts) groups += part.groups;
    launch(entry, params, groups);
  };
  run("shim_run");
  if (!split) return;
  for (KernelPart& part : parts) part.groups = rendered_.fold_group_count(ir_, part.extent0);
  run("shim_fold");
}

void HostKernel::launch(const char* entry, std::vector<void*>& params, int64_t count) const {
  const auto groups = unsigned(count), cluster = unsigned(rendered_.cluster);
  std::barrier<> all(rendered_.group_size * rendered_.cluster);
  std::vector<std::unique_ptr<std::barrier<>>> own;
  std::vector<std::thread> lanes;
  for (unsigned member = 0; member < cluster; ++member) {
    own.push_back(std::make_unique<std::barrier<>>(rendered_.group_size));
    const auto run = reinterpret_cast<Entry>(dlsym(libraries_[member].get(), entry));
    if (run == nullptr) throw std::runtime_error(cat("the shim has no ", entry));
    const auto lane_work = [&, run, member, barrier = own.back().get()](unsigned lane) {
      Waiting waiting = {.group = barrier, .cluster = &all, .arrive = arrive_at, .await = await_at};
      for (unsigned group = member; group < groups; group += cluster) {
        run(params.data(), lane, group, groups, &waiting);
        TESSERA_ASSERT(!arrived);    // it waits for whoever may still reach its memory
        barrier->arrive_and_wait();  // the next group uses the same local arrays
      }
    };
    for (int lane = 0; lane < rendered_.group_size; ++lane) {
      lanes.emplace_back(lane_work, unsigned(lane));
    }
  }
  for (std::thread& lane : lanes) lane.join();
}

}  // namespace tessera
