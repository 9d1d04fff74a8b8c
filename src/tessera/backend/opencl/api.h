// The part of the OpenCL 1.2 API that the backend uses, declared here and opened at run time: no
// vendor's header, and absent is an expected case.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace tessera::opencl {

using Status = int32_t;
using Flags = uint64_t;
using Property = intptr_t;

using PlatformId = struct PlatformTag*;
using DeviceId = struct DeviceTag*;
using ContextId = struct ContextTag*;
using QueueId = struct QueueTag*;
using MemId = struct MemTag*;
using ProgramId = struct ProgramTag*;
using KernelId = struct KernelTag*;
using EventId = struct EventTag*;

struct Region {
  size_t origin, size;  // bytes
};

inline constexpr Status kSuccess = 0;
inline constexpr Status kAllocationFailure = -4;
inline constexpr Status kOutOfResources = -5;
inline constexpr Status kOutOfHostMemory = -6;
inline constexpr Status kInvalidBufferSize = -61;

inline constexpr uint32_t kTrue = 1;  // of blocking calls
inline constexpr Flags kReadWrite = 1;
inline constexpr uint32_t kRegion = 0x1220;
inline constexpr Property kPartitionEqually = 0x1086;
inline constexpr uint32_t kBuildLog = 0x1183, kBinarySizes = 0x1165, kBinaries = 0x1166;
inline constexpr uint32_t kKernelGroupSize = 0x11B0;

// Each member is the function cl… of its name in camel case.
struct Api {
  Status (*get_platform_ids)(uint32_t, PlatformId*, uint32_t*);
  Status (*get_device_ids)(PlatformId, Flags, uint32_t, DeviceId*, uint32_t*);
  Status (*get_device_info)(DeviceId, uint32_t, size_t, void*, size_t*);
  Status (*create_sub_devices)(DeviceId, const Property*, uint32_t, DeviceId*, uint32_t*);
  ContextId (*create_context)(const Property*, uint32_t, const DeviceId*,
                              void (*)(const char*, const void*, size_t, void*), void*, Status*);
  Status (*release_context)(ContextId);
  QueueId (*create_command_queue)(ContextId, DeviceId, Flags, Status*);
  Status (*release_command_queue)(QueueId);
  MemId (*create_buffer)(ContextId, Flags, size_t, void*, Status*);
  MemId (*create_sub_buffer)(MemId, Flags, uint32_t, const void*, Status*);
  Status (*release_mem_object)(MemId);
  Status (*enqueue_read_buffer)(QueueId, MemId, uint32_t, size_t, size_t, void*, uint32_t,
                                const EventId*, EventId*);
  Status (*enqueue_write_buffer)(QueueId, MemId, uint32_t, size_t, size_t, const void*, uint32_t,
                                 const EventId*, EventId*);
  Status (*enqueue_copy_buffer)(QueueId, MemId, MemId, size_t, size_t, size_t, uint32_t,
                                const EventId*, EventId*);
  Status (*enqueue_fill_buffer)(QueueId, MemId, const void*, size_t, size_t, size_t, uint32_t,
                                const EventId*, EventId*);
  ProgramId (*create_program_with_source)(ContextId, uint32_t, const char**, const size_t*,
                                          Status*);
  ProgramId (*create_program_with_binary)(ContextId, uint32_t, const DeviceId*, const size_t*,
                                          const unsigned char**, Status*, Status*);
  Status (*build_program)(ProgramId, uint32_t, const DeviceId*, const char*,
                          void (*)(ProgramId, void*), void*);
  Status (*get_program_info)(ProgramId, uint32_t, size_t, void*, size_t*);
  Status (*get_program_build_info)(ProgramId, DeviceId, uint32_t, size_t, void*, size_t*);
  Status (*release_program)(ProgramId);
  KernelId (*create_kernel)(ProgramId, const char*, Status*);
  Status (*release_kernel)(KernelId);
  Status (*set_kernel_arg)(KernelId, uint32_t, size_t, const void*);
  Status (*get_kernel_work_group_info)(KernelId, DeviceId, uint32_t, size_t, void*, size_t*);
  Status (*enqueue_nd_range_kernel)(QueueId, KernelId, uint32_t, const size_t*, const size_t*,
                                    const size_t*, uint32_t, const EventId*, EventId*);
  Status (*finish)(QueueId);
};

// A library that offers all of them, or why there is none, in one sentence.
struct Library {
  std::optional<Api> api;
  std::string absent;
};
Library open_library(const char* name);

// The process-wide one: TESSERA_OPENCL_LIBRARY, or libOpenCL.so.1.
const Library& library();
const Api& api();  // REQUIRES library().api

struct Release {
  void operator()(MemId mem) const { api().release_mem_object(mem); }
  void operator()(ProgramId program) const { api().release_program(program); }
  void operator()(KernelId kernel) const { api().release_kernel(kernel); }
};
using Mem = std::unique_ptr<MemTag, Release>;
using Program = std::unique_ptr<ProgramTag, Release>;
using KernelHandle = std::unique_ptr<KernelTag, Release>;

// A status in words: "out of memory", "error -54".
std::string to_text(Status status);
bool is_out_of_memory(Status status);

// Throws "<what> failed: <status>" unless it is kSuccess.
void expect_success(Status status, const char* what);

}  // namespace tessera::opencl
