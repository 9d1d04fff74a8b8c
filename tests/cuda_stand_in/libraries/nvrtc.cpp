// A library that answers like libnvrtc.so: it has the host's C++ compiler build CUDA text behind a
// shim. Its binaries are for the driver of driver.cpp, which runs them on the host.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>

#include "module.h"

namespace {

// Without headers: reading them would take more than half of a small kernel's compilation.
constexpr const char* kShim = R"(
using size_t = decltype(sizeof 0);
extern "C" void* memcpy(void*, const void*, size_t);
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define isnan(x) __builtin_isnan(x)
#define isinf(x) __builtin_isinf(x)
#define isfinite(x) __builtin_isfinite(x)
#define signbit(x) __builtin_signbit(x)
#define OF_ONE(name)                                      \
  extern "C" double name(double);                         \
  extern "C" float name##f(float);                        \
  static inline float name(float x) { return name##f(x); }
#define OF_TWO(name)                                      \
  extern "C" double name(double, double);                 \
  extern "C" float name##f(float, float);                 \
  static inline float name(float x, float y) { return name##f(x, y); }
OF_ONE(acos) OF_ONE(acosh) OF_ONE(asin) OF_ONE(asinh) OF_ONE(atan) OF_ONE(atanh) OF_ONE(cbrt)
OF_ONE(ceil) OF_ONE(cos) OF_ONE(cosh) OF_ONE(erf) OF_ONE(erfc) OF_ONE(exp) OF_ONE(exp2)
OF_ONE(expm1) OF_ONE(fabs) OF_ONE(floor) OF_ONE(lgamma) OF_ONE(log) OF_ONE(log10) OF_ONE(log1p)
OF_ONE(log2) OF_ONE(nearbyint) OF_ONE(rint) OF_ONE(round) OF_ONE(sin) OF_ONE(sinh) OF_ONE(sqrt)
OF_ONE(tan) OF_ONE(tanh) OF_ONE(tgamma) OF_ONE(trunc)
OF_TWO(atan2) OF_TWO(copysign) OF_TWO(fdim) OF_TWO(fmax) OF_TWO(fmin) OF_TWO(fmod) OF_TWO(hypot)
OF_TWO(pow) OF_TWO(remainder)
extern "C" double fma(double, double, double);
extern "C" float fmaf(float, float, float);
static inline float fma(float x, float y, float z) { return fmaf(x, y, z); }
struct Index { unsigned x; };
static Index threadIdx, blockIdx, blockDim, gridDim;
static void (*wait_for)(int);
struct Place { unsigned lane, group, lanes, groups; };
extern "C" void enter(Place place) {
  threadIdx.x = place.lane;
  blockIdx.x = place.group;
  blockDim.x = place.lanes;
  gridDim.x = place.groups;
}
#define __global__
#define __device__
#define __shared__ static
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __syncthreads() wait_for(1)
static void t_arrive() { wait_for(4); }
static void t_await() { wait_for(3); }
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
template <class T> static T min(T a, T b) { return b < a ? b : a; }
template <class T> static T max(T a, T b) { return a < b ? b : a; }
// Every lane of a warp takes part in every shuffle.
static unsigned long long handed[1024];
template <class T> static T hand(T value, unsigned from) {
  memcpy(&handed[threadIdx.x], &value, sizeof value);
  wait_for(2);
  T result;
  memcpy(&result, &handed[from], sizeof result);
  wait_for(2);
  return result;
}
template <class T> static T __shfl_down_sync(unsigned, T value, unsigned step, unsigned width) {
  const unsigned lane = threadIdx.x, from = lane + step;
  return hand(value, from / width == lane / width ? from : lane);
}
template <class T> static T __shfl_xor_sync(unsigned, T value, unsigned step, unsigned) {
  return hand(value, threadIdx.x ^ step);
}
static unsigned __match_any_sync(unsigned, unsigned value) {
  const unsigned first = threadIdx.x / 32 * 32;
  handed[threadIdx.x] = value;
  wait_for(2);
  unsigned equals = 0;
  for (unsigned i = 0; i < 32; ++i) equals |= unsigned(handed[first + i] == value) << i;
  wait_for(2);
  return equals;
}
static inline void __syncwarp() { wait_for(2); }
static inline int __popc(unsigned bits) { return __builtin_popcount(bits); }
// Lanes take turns, so nothing comes between.
template <class T> static T atomicAdd(T* at, T value) {
  const T before = *at;
  *at += value;
  return before;
}
template <class T> static T __shfl_up_sync(unsigned, T value, unsigned step, unsigned width) {
  const unsigned lane = threadIdx.x;
  return hand(value, lane % width >= step ? lane - step : lane);
}
template <class T> static T __shfl_sync(unsigned, T value, unsigned from, unsigned width) {
  return hand(value, threadIdx.x / width * width + from);
}
)";

constexpr const char* kEntries = R"(
template <size_t... I> struct Indices {};
template <size_t N, size_t... I> struct Below : Below<N - 1, N - 1, I...> {};
template <size_t... I> struct Below<0, I...> { using Type = Indices<I...>; };
template <class... A, size_t... I>
static void call_with(void (*kernel)(A...), void** params, Indices<I...>) {
  kernel(*static_cast<A*>(params[I])...);
}
template <class... A>
static void call(void (*kernel)(A...), void** params) {
  call_with(kernel, params, typename Below<sizeof...(A)>::Type());
}
template <class... A>
static const size_t* sizes_of(void (*)(A...)) {
  static const size_t sizes[] = {sizeof(A)..., 0};
  return sizes;
}
#define ENTRY(name)                                                                  \
  extern "C" void name##__run(void** params, Place place, void (*wait)(int)) {         \
    enter(place);                                                                    \
    wait_for = wait;                                                                 \
    call(name, params);                                                              \
  }                                                                                  \
  extern "C" const size_t* name##__sizes() { return sizes_of(name); }
)";

struct Program {
  std::string source, log, binary;
};

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The names behind what begins an entry: of a generated kernel, and of one in the words of a
// dialect.
std::set<std::string> entries_of(const std::string& text) {
  std::set<std::string> names;
  for (const std::string mark : {"extern \"C\" __global__ void ", "\nKERNEL ", "\nKERNEL_OF("}) {
    for (size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + 1)) {
      size_t begin = at + mark.size();
      const auto skip_brackets = [&] {
        begin = text.find_first_not_of(" \n", text.find(')', begin) + 1);
      };
      if (mark.back() == '(') skip_brackets();
      for (const std::string_view word : {"__launch_bounds__", "__cluster_dims__"}) {
        if (text.compare(begin, word.size(), word) == 0) skip_brackets();
      }
      const size_t end = text.find('(', begin);
      if (begin == std::string::npos || end == std::string::npos) break;
      const std::string name = text.substr(begin, end - begin);
      // Not the macros' own definitions.
      if (name.find_first_of(" \n#") == std::string::npos) names.insert(name);
    }
  }
  return names;
}

// Groups of a cluster, which all entries have in common.
std::string cluster_of(const std::string& text) {
  const std::string mark = "__cluster_dims__(";
  const size_t at = text.find(mark);
  if (at == std::string::npos) return "1";
  return text.substr(at + mark.size(), text.find(',', at) - at - mark.size());
}

// Shared memory whose size a launch says gets as much as there is.
void give_room(std::string& text) {
  const std::string mark = "extern __shared__ ";
  for (size_t at; (at = text.find(mark)) != std::string::npos;) {
    const bool aligned = at >= 12 && text.compare(at - 12, 12, "alignas(16) ") == 0;
    text.replace(at, mark.size(), aligned ? "static " : "alignas(16) static ");
    text.insert(text.find("[]", at) + 1, "232448");
  }
}

// How many compilations run now, and how many of them wait for each other.
std::mutex g_mutex;
std::condition_variable g_changed;
int g_running = 0, g_most = 0, g_together = 1;

// While it lives, a compilation runs.
class Running {
 public:
  Running() {
    std::unique_lock lock(g_mutex);
    g_most = std::max(g_most, ++g_running);
    g_changed.notify_all();
    g_changed.wait_for(lock, std::chrono::seconds(20), [] { return g_most >= g_together; });
  }
  ~Running() {
    const std::lock_guard lock(g_mutex);
    --g_running;
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
};

bool build(Program& program) {
  const Running running;
  std::string text = kShim + program.source + kEntries;
  give_room(text);
  for (const std::string& name : entries_of(program.source)) text += "ENTRY(" + name + ")\n";
  bool waits = false;
  for (const char* word : {"__syncthreads();", "__shfl", "BARRIER;"}) {
    waits = waits || program.source.find(word) != std::string::npos;
  }
  text += std::string("extern \"C\" const bool waits = ") + (waits ? "true" : "false") + ";\n";
  text += "extern \"C\" const unsigned cluster = " + cluster_of(program.source) + ";\n";
  std::string pattern =
      (std::filesystem::temp_directory_path() / "tessera_stand_in_XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) return false;
  const std::filesystem::path folder = pattern;
  std::ofstream(folder / "kernel.cpp", std::ios::binary) << text;
  const std::string command =
      std::string("'") + TESSERA_HOST_CXX +
      "' -std=c++17 -O1 -w -ffp-contract=off -shared -fPIC -o '" + (folder / "kernel.so").string() +
      "' '" + (folder / "kernel.cpp").string() + "' > '" + (folder / "log").string() + "' 2>&1";
  const bool built = std::system(command.c_str()) == 0;
  program.log = read(folder / "log");
  if (built) {
    const std::string library = read(folder / "kernel.so");
    const size_t size = library.size();
    program.binary.assign(stand_in::kMagic, sizeof stand_in::kMagic);
    program.binary.append(reinterpret_cast<const char*>(&size), sizeof size);
    program.binary += library;
  }
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  return built;
}

}  // namespace

extern "C" {

// For tests: compilations wait, for a while, until so many run at once; how many have since.
void stand_in_wait_for(int together) {
  const std::lock_guard lock(g_mutex);
  g_together = together;
  g_most = 0;
}
int stand_in_most_at_once() {
  const std::lock_guard lock(g_mutex);
  return g_most;
}

int nvrtcVersion(int* major, int* minor) {
  *major = 13;
  *minor = 0;
  return 0;
}
int nvrtcGetNumSupportedArchs(int* count) {
  *count = 3;
  return 0;
}
int nvrtcGetSupportedArchs(int* known) {
  known[0] = 75, known[1] = 80, known[2] = 90;
  return 0;
}
int nvrtcCreateProgram(Program** program, const char* source, const char*, int, const char* const*,
                       const char* const*) {
  *program = new Program{source, "", ""};
  return 0;
}
int nvrtcCompileProgram(Program* program, int, const char* const*) {
  return build(*program) ? 0 : 6;
}
int nvrtcGetCUBINSize(Program* program, size_t* size) {
  *size = program->binary.size();
  return 0;
}
int nvrtcGetCUBIN(Program* program, char* to) {
  std::memcpy(to, program->binary.data(), program->binary.size());
  return 0;
}
int nvrtcGetPTXSize(Program* program, size_t* size) { return nvrtcGetCUBINSize(program, size); }
int nvrtcGetPTX(Program* program, char* to) { return nvrtcGetCUBIN(program, to); }
int nvrtcGetProgramLogSize(Program* program, size_t* size) {
  *size = program->log.size() + 1;
  return 0;
}
int nvrtcGetProgramLog(Program* program, char* to) {
  std::memcpy(to, program->log.c_str(), program->log.size() + 1);
  return 0;
}
int nvrtcDestroyProgram(Program** program) {
  delete *program;
  *program = nullptr;
  return 0;
}

}  // extern "C"
