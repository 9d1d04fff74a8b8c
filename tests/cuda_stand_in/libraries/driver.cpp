// A library that answers like libcuda.so.1 and runs kernels on the host, those that nvrtc.cpp
// compiled. Streams run at once; what is captured is kept as a list. Memory starts as NaN.
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "lanes.h"
#include "module.h"

namespace {

using Address = unsigned long long;
using Work = std::function<void()>;

constexpr int kSuccess = 0, kInvalid = 1, kOutOfMemory = 2, kNotFound = 500, kFault = 700;
constexpr size_t kTotal = size_t(1) << 30, kGranule = size_t(2) << 20;
constexpr int kPoison = 0xFB, kSharedBytes = 232448;

struct Stream {
  bool capturing = false;
  std::vector<Work> captured;
};
struct Graph {
  std::vector<Work> work;
};
struct Module {
  std::vector<void*> libraries;  // of each group of a cluster
};
using stand_in::Function;

std::recursive_mutex g_mutex;
size_t g_used = 0, g_clusters = 0, g_early = 0;
std::atomic<size_t> g_loads{0};
bool g_faulted = false, g_refuses = false;
std::map<Address, size_t> g_sizes;  // of allocations
std::map<Address, size_t> g_physical;
size_t g_copies = 0;
float g_clock = 0, g_kernel_time = 0;       // milliseconds
std::map<std::string, int64_t> g_launches;  // by entry

// A library of its own, whatever others were made of the same bytes.
void* open_copy(std::string_view bytes) {
  std::string path = (std::filesystem::temp_directory_path() / "tessera_module_XXXXXX").string();
  const int file = mkstemp(path.data());
  if (file < 0) return nullptr;
  std::ofstream(path, std::ios::binary).write(bytes.data(), std::streamsize(bytes.size()));
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  std::filesystem::remove(path);
  ::close(file);
  return library;
}

int submit(Stream* stream, Work work) {
  if (g_faulted) return kFault;
  if (stream != nullptr && stream->capturing) {
    stream->captured.push_back(std::move(work));
  } else {
    work();
  }
  return kSuccess;
}

}  // namespace

extern "C" {

// For tests: synchronisations report a fault; modules are refused.
void stand_in_fault(bool faulted) { g_faulted = faulted; }
void stand_in_refuse(bool refuses) { g_refuses = refuses; }

// For tests: each kernel takes a millisecond on the clock that events read; how often one ran.
void stand_in_slow_kernels(bool slow) { g_kernel_time = slow ? 1 : 0; }
int64_t stand_in_launches(const char* entry) {
  const std::lock_guard lock(g_mutex);
  return g_launches[entry];
}

// How many launches may begin before the kernel in front of them has ended.
size_t stand_in_early() { return g_early; }

// How many modules have been loaded.
size_t stand_in_loads() { return g_loads; }

// How many clusters have been started.
size_t stand_in_clusters() { return g_clusters; }

// How many copies on the device have run.
size_t stand_in_copies() { return g_copies; }

// For other stand-ins: what passes on that clock, and work of a stream.
void stand_in_pass(float milliseconds) { g_clock += milliseconds; }
int stand_in_submit(Stream* stream, const Work& work) {
  const std::lock_guard lock(g_mutex);
  return submit(stream, work);
}

int cuInit(unsigned) { return kSuccess; }
int cuDriverGetVersion(int* version) {
  *version = 13000;
  return kSuccess;
}
int cuDeviceGetCount(int* count) {
  *count = 1;
  return kSuccess;
}
int cuDeviceGet(int* device, int index) {
  *device = index;
  return kSuccess;
}
int cuDeviceGetName(char* name, int bytes, int) {
  std::strncpy(name, "Stand-in", size_t(bytes));
  return kSuccess;
}
int cuDeviceTotalMem_v2(size_t* bytes, int) {
  *bytes = kTotal;
  return kSuccess;
}
int cuDeviceGetAttribute(int* value, int what, int) {
  *value = what == 1    ? 1024
           : what == 8  ? 49152
           : what == 16 ? 4
           : what == 38 ? 4096
           : what == 75 ? 9
           : what == 76 ? 0
           : what == 97 ? kSharedBytes
                        : 1;
  return kSuccess;
}
int cuGetErrorName(int, const char** text) {
  *text = "ERROR";
  return kSuccess;
}
int cuGetErrorString(int code, const char** text) {
  *text = code == kOutOfMemory ? "out of memory"
          : code == kFault     ? "an illegal memory access was encountered"
          : code == kNotFound  ? "named symbol not found"
                               : "invalid argument";
  return kSuccess;
}
int cuDevicePrimaryCtxRetain(void** context, int) {
  static int instance;
  *context = &instance;
  return kSuccess;
}
int cuCtxSetCurrent(void*) { return kSuccess; }

int cuMemGetInfo_v2(size_t* free, size_t* total) {
  const std::lock_guard lock(g_mutex);
  *free = kTotal - g_used;
  *total = kTotal;
  return kSuccess;
}
int cuMemAlloc_v2(Address* made, size_t bytes) {
  const std::lock_guard lock(g_mutex);
  if (bytes > kTotal - g_used) return kOutOfMemory;
  const size_t rounded = (bytes + 255) / 256 * 256;
  void* memory = std::aligned_alloc(256, rounded);
  std::memset(memory, kPoison, rounded);
  *made = reinterpret_cast<Address>(memory);
  g_sizes[*made] = bytes;
  g_used += bytes;
  return kSuccess;
}
int cuMemFree_v2(Address address) {
  const std::lock_guard lock(g_mutex);
  const auto found = g_sizes.find(address);
  if (found == g_sizes.end()) return kInvalid;
  g_used -= found->second;
  g_sizes.erase(found);
  std::free(reinterpret_cast<void*>(address));
  return kSuccess;
}
int cuMemHostAlloc(void** made, size_t bytes, unsigned) {
  *made = std::malloc(bytes);
  return kSuccess;
}
int cuMemFreeHost(void* memory) {
  std::free(memory);
  return kSuccess;
}
int cuMemHostGetDevicePointer_v2(Address* address, void* memory, unsigned) {
  *address = reinterpret_cast<Address>(memory);
  return kSuccess;
}
int cuMemAddressReserve(Address* made, size_t bytes, size_t, Address, unsigned long long) {
  void* memory = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return kOutOfMemory;
  *made = reinterpret_cast<Address>(memory);
  return kSuccess;
}
int cuMemAddressFree(Address address, size_t bytes) {
  return munmap(reinterpret_cast<void*>(address), bytes) == 0 ? kSuccess : kInvalid;
}
int cuMemGetAllocationGranularity(size_t* bytes, const void*, int) {
  *bytes = kGranule;
  return kSuccess;
}
int cuMemCreate(unsigned long long* id, size_t bytes, const void*, unsigned long long) {
  const std::lock_guard lock(g_mutex);
  static unsigned long long next = 0;
  if (bytes % kGranule != 0) return kInvalid;
  if (bytes > kTotal - g_used) return kOutOfMemory;
  *id = ++next;
  g_physical[*id] = bytes;
  g_used += bytes;
  return kSuccess;
}
int cuMemRelease(unsigned long long id) {
  const std::lock_guard lock(g_mutex);
  g_used -= g_physical[id];
  g_physical.erase(id);
  return kSuccess;
}
int cuMemMap(Address address, size_t bytes, size_t, unsigned long long id, unsigned long long) {
  const std::lock_guard lock(g_mutex);
  const auto found = g_physical.find(id);
  return found != g_physical.end() && found->second == bytes && address % kGranule % 4096 == 0
             ? kSuccess
             : kInvalid;
}
int cuMemUnmap(Address address, size_t bytes) {
  return mprotect(reinterpret_cast<void*>(address), bytes, PROT_NONE) == 0 ? kSuccess : kInvalid;
}
int cuMemSetAccess(Address address, size_t bytes, const void*, size_t) {
  void* memory = reinterpret_cast<void*>(address);
  if (mprotect(memory, bytes, PROT_READ | PROT_WRITE) != 0) return kInvalid;
  std::memset(memory, kPoison, bytes);
  return kSuccess;
}
int cuMemcpyHtoDAsync_v2(Address to, const void* from, size_t bytes, Stream* stream) {
  const std::lock_guard lock(g_mutex);
  return submit(stream, [=] { std::memcpy(reinterpret_cast<void*>(to), from, bytes); });
}
int cuMemcpyDtoHAsync_v2(void* to, Address from, size_t bytes, Stream* stream) {
  const std::lock_guard lock(g_mutex);
  return submit(stream, [=] { std::memcpy(to, reinterpret_cast<void*>(from), bytes); });
}
int cuMemcpyDtoDAsync_v2(Address to, Address from, size_t bytes, Stream* stream) {
  const std::lock_guard lock(g_mutex);
  return submit(stream, [=] {
    ++g_copies;
    std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), bytes);
  });
}
int cuMemsetD32Async(Address to, unsigned word, size_t count, Stream* stream) {
  const std::lock_guard lock(g_mutex);
  return submit(stream, [=] { std::fill_n(reinterpret_cast<unsigned*>(to), count, word); });
}

int cuStreamCreate(Stream** stream, unsigned) {
  *stream = new Stream;
  return kSuccess;
}
int cuStreamDestroy_v2(Stream* stream) {
  delete stream;
  return kSuccess;
}
int cuStreamSynchronize(Stream*) { return g_faulted ? kFault : kSuccess; }
int cuStreamBeginCapture_v2(Stream* stream, int) {
  const std::lock_guard lock(g_mutex);
  if (stream->capturing) return kInvalid;
  stream->capturing = true;
  stream->captured.clear();
  return kSuccess;
}
int cuStreamEndCapture(Stream* stream, Graph** graph) {
  const std::lock_guard lock(g_mutex);
  if (!stream->capturing) return kInvalid;
  stream->capturing = false;
  *graph = new Graph{std::move(stream->captured)};
  return kSuccess;
}
int cuGraphInstantiateWithFlags(Graph** exec, Graph* graph, unsigned long long) {
  *exec = new Graph(*graph);
  return kSuccess;
}
int cuGraphLaunch(Graph* graph, Stream* stream) {
  const std::lock_guard lock(g_mutex);
  for (const Work& work : graph->work) {
    if (const int result = submit(stream, work)) return result;
  }
  return kSuccess;
}
int cuGraphExecDestroy(Graph* graph) {
  delete graph;
  return kSuccess;
}
int cuGraphDestroy(Graph* graph) {
  delete graph;
  return kSuccess;
}

int cuEventCreate(float** event, unsigned) {
  *event = new float(0);
  return kSuccess;
}
int cuEventDestroy_v2(float* event) {
  delete event;
  return kSuccess;
}
int cuEventRecord(float* event, Stream*) {
  const std::lock_guard lock(g_mutex);
  *event = g_clock;
  return kSuccess;
}
int cuEventSynchronize(float*) { return kSuccess; }
int cuEventElapsedTime(float* milliseconds, const float* begin, const float* end) {
  *milliseconds = 1 + *end - *begin;
  return kSuccess;
}

int cuModuleLoadData(Module** module, const void* image) {
  const auto* bytes = static_cast<const char*>(image);
  ++g_loads;
  if (g_refuses) return kInvalid;
  if (std::memcmp(bytes, stand_in::kMagic, sizeof stand_in::kMagic) != 0) return kInvalid;
  size_t size = 0;
  std::memcpy(&size, bytes + 8, sizeof size);
  std::vector<void*> libraries;
  unsigned cluster = 1;
  while (libraries.size() < cluster) {
    libraries.push_back(open_copy({bytes + 16, size}));
    if (libraries.back() == nullptr) return kInvalid;
    const auto* const groups = static_cast<const unsigned*>(dlsym(libraries[0], "cluster"));
    if (groups == nullptr || *groups > stand_in::kMostGroups) return kInvalid;
    cluster = *groups;
  }
  for (void* library : libraries) {
    auto* const bases = static_cast<void**>(dlsym(library, "group_bases"));
    for (unsigned i = 0; i < cluster; ++i) bases[i] = dlsym(libraries[i], "group_bases");
  }
  *module = new Module{std::move(libraries)};
  return kSuccess;
}
int cuModuleUnload(Module* module) {
  delete module;  // its functions may be in a graph: the library stays
  return kSuccess;
}
int cuModuleGetFunction(Function** function, Module* module, const char* name) {
  const std::string entry = name;
  Function made = {};
  made.entry = entry;
  for (void* library : module->libraries) {
    made.run.push_back(reinterpret_cast<stand_in::Run>(dlsym(library, (entry + "__run").c_str())));
    made.enter.push_back(reinterpret_cast<stand_in::Enter>(dlsym(library, "enter")));
    if (made.run.back() == nullptr) return kNotFound;
  }
  void* const first = module->libraries[0];
  made.sizes = reinterpret_cast<stand_in::Sizes>(dlsym(first, (entry + "__sizes").c_str()));
  made.waits = *static_cast<const bool*>(dlsym(first, "waits"));
  *function = new Function(std::move(made));
  return kSuccess;
}
int cuFuncGetAttribute(int* value, int, Function*) {
  *value = 1024;
  return kSuccess;
}
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* count, Function*, int lanes, size_t) {
  *count = 2048 / lanes;
  return kSuccess;
}
int cuFuncSetAttribute(Function* function, int what, int value) {
  if (what == 9) return kSuccess;
  if (what != 8 || value < 0 || value > kSharedBytes) return kInvalid;
  function->shared = std::max(function->shared, size_t(value));
  return kSuccess;
}
struct LaunchConfig {
  unsigned groups, groups_y, groups_z, lanes, lanes_y, lanes_z, shared;
  Stream* stream;
  const void* attributes;
  unsigned attribute_count;
};
int cuLaunchKernelEx(const LaunchConfig* config, Function* function, void** params, void**) {
  const std::lock_guard lock(g_mutex);
  const unsigned groups = config->groups, lanes = config->lanes;
  if (config->shared > function->shared) return kInvalid;
  if (groups == 0 || lanes == 0 || lanes > 1024) return kInvalid;
  if (config->groups_y * config->groups_z * config->lanes_y * config->lanes_z != 1) return kInvalid;
  const auto cluster = unsigned(function->run.size());
  if (groups % cluster != 0) return kInvalid;
  if (cluster > 1) g_clusters += groups / cluster;
  g_early += config->attribute_count;
  std::vector<std::vector<char>> values;
  const size_t* sizes = function->sizes();
  for (size_t i = 0; sizes[i] != 0; ++i) {
    const char* value = static_cast<const char*>(params[i]);
    values.emplace_back(value, value + sizes[i]);
  }
  return submit(config->stream, [=]() mutable {
    g_clock += g_kernel_time;
    ++g_launches[function->entry];
    std::vector<void*> pointers;
    for (std::vector<char>& value : values) pointers.push_back(value.data());
    for (unsigned group = 0; group < groups; group += cluster) {
      // Barriers that not all lanes reach hang a card; here they are a fault.
      if (!stand_in::run_groups(*function, pointers.data(), {0, group, lanes, groups}))
        g_faulted = true;
    }
  });
}

}  // extern "C"
