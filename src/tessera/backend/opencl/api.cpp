#include "tessera/backend/opencl/api.h"

#include <cstdlib>

#include "tessera/base/error.h"
#include "tessera/runtime/shared_library.h"

namespace tessera::opencl {

Library open_library(const char* name) {
  const std::optional<SharedLibrary> library = SharedLibrary::open({&name, 1});
  if (!library) return {std::nullopt, cat(name, " not found")};
  Api api = {};
  std::string missing;
  auto find = [&]<class F>(F*& function, const char* symbol) {
    function = library->function<F>(symbol);
    if (function == nullptr && missing.empty()) missing = symbol;
  };
  find(api.get_platform_ids, "clGetPlatformIDs");
  find(api.get_device_ids, "clGetDeviceIDs");
  find(api.get_device_info, "clGetDeviceInfo");
  find(api.create_sub_devices, "clCreateSubDevices");
  find(api.create_context, "clCreateContext");
  find(api.release_context, "clReleaseContext");
  find(api.create_command_queue, "clCreateCommandQueue");
  find(api.release_command_queue, "clReleaseCommandQueue");
  find(api.create_buffer, "clCreateBuffer");
  find(api.create_sub_buffer, "clCreateSubBuffer");
  find(api.release_mem_object, "clReleaseMemObject");
  find(api.enqueue_read_buffer, "clEnqueueReadBuffer");
  find(api.enqueue_write_buffer, "clEnqueueWriteBuffer");
  find(api.enqueue_copy_buffer, "clEnqueueCopyBuffer");
  find(api.enqueue_fill_buffer, "clEnqueueFillBuffer");
  find(api.create_program_with_source, "clCreateProgramWithSource");
  find(api.create_program_with_binary, "clCreateProgramWithBinary");
  find(api.build_program, "clBuildProgram");
  find(api.get_program_info, "clGetProgramInfo");
  find(api.get_program_build_info, "clGetProgramBuildInfo");
  find(api.release_program, "clReleaseProgram");
  find(api.create_kernel, "clCreateKernel");
  find(api.release_kernel, "clReleaseKernel");
  find(api.set_kernel_arg, "clSetKernelArg");
  find(api.get_kernel_work_group_info, "clGetKernelWorkGroupInfo");
  find(api.enqueue_nd_range_kernel, "clEnqueueNDRangeKernel");
  find(api.finish, "clFinish");
  if (!missing.empty()) return {std::nullopt, cat(name, " has no ", missing)};
  return {api, ""};
}

const Library& library() {
  static const Library instance = [] {
    const char* asked = std::getenv("TESSERA_OPENCL_LIBRARY");
    return open_library(asked != nullptr && *asked != 0 ? asked : "libOpenCL.so.1");
  }();
  return instance;
}

const Api& api() { return *library().api; }

bool is_out_of_memory(Status status) {
  return status == kAllocationFailure || status == kOutOfResources || status == kOutOfHostMemory ||
         status == kInvalidBufferSize;
}

std::string to_text(Status status) {
  return is_out_of_memory(status) ? cat("out of memory (", status, ")") : cat("error ", status);
}

void expect_success(Status status, const char* what) {
  if (status != kSuccess) fail("OpenCL: ", what, " failed: ", to_text(status));
}

}  // namespace tessera::opencl
