// The part of CUDA's driver API that the backend uses, declared here and opened at run time: no
// vendor's header, and absent is an expected case.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace tessera::cuda {

using Result = int;
using DeviceNumber = int;
using Address = unsigned long long;  // on the device
using ContextId = struct ContextTag*;
using StreamId = struct StreamTag*;
using EventId = struct EventTag*;
using ModuleId = struct ModuleTag*;
using FunctionId = struct FunctionTag*;
using GraphId = struct GraphTag*;
using GraphExecId = struct GraphExecTag*;
using PhysicalId = unsigned long long;  // memory without an address

inline constexpr Result kSuccess = 0, kOutOfMemory = 2;

struct Location {
  int type = 1;  // a device
  int id = 0;
};
struct AllocationKind {
  int type = 1;  // pinned
  int handle_types = 0;
  Location location;
  void* windows = nullptr;
  struct {
    unsigned char compression = 0, rdma = 0;
    unsigned short usage = 0;
    unsigned char reserved[4] = {};
  } flags;
};
struct Access {
  Location location;
  int flags = 3;  // read and write
};

enum DeviceAttribute : int {
  kLargestGroup = 1,
  kSharedBytes = 8,
  kMultiprocessors = 16,
  kLanesPerMultiprocessor = 39,
  kMajor = 75,
  kMinor = 76,
  kSharedBytesOptIn = 97,
  kHasVirtualMemory = 102,
  kHasClusters = 120,
};
enum FunctionAttribute : int {
  kFunctionLargestGroup = 0,
  kFunctionDynamicShared = 8,
  kFunctionSharedShare = 9,  // of a multiprocessor's memory that is cache or shared, percent
};

inline constexpr unsigned kStreamNonBlocking = 1, kEventWithoutTiming = 2, kHostMapped = 2;
inline constexpr int kCaptureRelaxed = 2;
inline constexpr int kStartsEarly = 6;  // CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION

// CUlaunchAttribute, of which one kind is used: the kernel may be put in place before the one in
// front of it has ended.
struct LaunchAttribute {
  int id = kStartsEarly;
  int unused = 0;
  int value = 1;
  char rest[60] = {};
};
static_assert(sizeof(LaunchAttribute) == 72);

struct LaunchConfig {  // CUlaunchConfig
  unsigned groups[3];
  unsigned group[3];
  unsigned shared_bytes;
  StreamId stream;
  const LaunchAttribute* attributes;
  unsigned attribute_count;
};

// Each member is the function cu… of its name.
struct Driver {
  Result (*init)(unsigned);
  Result (*error_name)(Result, const char**);
  Result (*error_string)(Result, const char**);
  Result (*device_get)(DeviceNumber*, int);
  Result (*device_attribute)(int*, int, DeviceNumber);
  Result (*context_retain)(ContextId*, DeviceNumber);
  Result (*context_set)(ContextId);
  Result (*mem_info)(size_t* free, size_t* total);
  Result (*mem_alloc)(Address*, size_t);
  Result (*mem_free)(Address);
  Result (*host_alloc)(void**, size_t, unsigned);
  Result (*host_free)(void*);
  Result (*host_address)(Address*, void*, unsigned);
  Result (*address_reserve)(Address*, size_t, size_t, Address, unsigned long long);
  Result (*address_free)(Address, size_t);
  Result (*mem_granularity)(size_t*, const AllocationKind*, int);
  Result (*mem_create)(PhysicalId*, size_t, const AllocationKind*, unsigned long long);
  Result (*mem_release)(PhysicalId);
  Result (*mem_map)(Address, size_t, size_t, PhysicalId, unsigned long long);
  Result (*mem_unmap)(Address, size_t);
  Result (*mem_access)(Address, size_t, const Access*, size_t);
  Result (*copy_to_device)(Address, const void*, size_t, StreamId);
  Result (*copy_to_host)(void*, Address, size_t, StreamId);
  Result (*copy)(Address, Address, size_t, StreamId);
  Result (*fill)(Address, unsigned, size_t, StreamId);  // 32-bit words
  Result (*stream_create)(StreamId*, unsigned);
  Result (*stream_destroy)(StreamId);
  Result (*stream_synchronize)(StreamId);
  Result (*begin_capture)(StreamId, int);
  Result (*end_capture)(StreamId, GraphId*);
  Result (*event_create)(EventId*, unsigned);
  Result (*event_destroy)(EventId);
  Result (*event_record)(EventId, StreamId);
  Result (*event_synchronize)(EventId);
  Result (*event_elapsed)(float* milliseconds, EventId, EventId);
  Result (*module_load)(ModuleId*, const void*);
  Result (*module_unload)(ModuleId);
  Result (*module_function)(FunctionId*, ModuleId, const char*);
  Result (*function_attribute)(int*, int, FunctionId);
  Result (*set_function_attribute)(FunctionId, int, int);
  Result (*occupancy)(int*, FunctionId, int group, size_t shared);
  Result (*launch)(const LaunchConfig*, FunctionId, void**, void**);
  Result (*graph_instantiate)(GraphExecId*, GraphId, unsigned long long);
  Result (*graph_launch)(GraphExecId, StreamId);
  Result (*graph_exec_destroy)(GraphExecId);
  Result (*graph_destroy)(GraphId);
};

// A driver that offers all of them, or why there is none, in one sentence.
struct DriverLibrary {
  std::optional<Driver> driver;
  std::string absent;
};
DriverLibrary open_driver(const char* name);

// The process-wide one: TESSERA_CUDA_LIBRARY, or libcuda.so.1 wherever it is.
const DriverLibrary& driver_library();
const Driver& driver();  // REQUIRES driver_library().driver

// A result in words: "out of memory (2)".
std::string to_text(Result result);

// Throws "CUDA: <what> failed: <result>" unless it is kSuccess.
void expect_success(Result result, const char* what);

}  // namespace tessera::cuda
