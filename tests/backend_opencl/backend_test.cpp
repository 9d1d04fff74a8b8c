// The backend as the engine sees it: devices, memory, copies, counters, kernels, errors.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <sstream>

#include "backend_opencl/opencl_test.h"
#include "support/expect_error.h"
#include "tessera/backend/opencl/devices.h"
#include "tessera/backend/opencl/kernels/kernel.h"
#include "tessera/runtime/caching_allocator.h"
#include "tessera/runtime/counters.h"

namespace tessera::test {
namespace {

// PoCL lends as much memory as the machine has; with a limit, a test can use it up.
[[maybe_unused]] const int kLimited = setenv("POCL_MEMORY_LIMIT", "1", 0);

class OpenClBackendTest : public OnOpenCl<> {};

std::vector<float> numbers(size_t n) {
  std::vector<float> result(n);
  std::iota(result.begin(), result.end(), 1.0f);
  return result;
}

std::vector<float> read(Backend& device, BufferRef from, size_t n) {
  std::vector<float> result(n);
  device.download(result.data(), from, int64_t(4 * n), Stream{});
  return result;
}

TEST(OpenClDevices, SaysWhyThereAreNone) {
  using namespace opencl;
  EXPECT_EQ(find_devices(open_library("libNoSuchOpenCL.so.9"), 1, true).absent,
            "libNoSuchOpenCL.so.9 not found");
  EXPECT_EQ(open_library("libm.so.6").absent, "libm.so.6 has no clGetPlatformIDs");
  Library none = {Api{}, ""};
  none.api->get_platform_ids = [](uint32_t, PlatformId*, uint32_t*) -> Status { return -1001; };
  EXPECT_EQ(find_devices(none, 1, true).absent, "no platform");
  none.api->get_platform_ids = [](uint32_t, PlatformId*, uint32_t*) -> Status { return -6; };
  EXPECT_EQ(find_devices(none, 1, true).absent,
            "the platforms cannot be listed: out of memory (-6)");
  none.api->get_platform_ids = [](uint32_t, PlatformId*, uint32_t* count) -> Status {
    if (count != nullptr) *count = 1;
    return kSuccess;
  };
  none.api->get_device_ids = [](PlatformId, Flags, uint32_t, DeviceId*, uint32_t*) -> Status {
    return -1;
  };
  EXPECT_EQ(find_devices(none, 1, true).absent, "no device of OpenCL 1.2 and up");
}

TEST(OpenClDevices, ReadsIntoHowManyPartsToDivide) {
  EXPECT_EQ(opencl::sub_devices_asked(nullptr), 1);
  EXPECT_EQ(opencl::sub_devices_asked(""), 1);
  EXPECT_EQ(opencl::sub_devices_asked("4"), 4);
  for (const char* wrong : {"0", "-1", "2x", "1025"}) {
    EXPECT_EQ(
        error_text([&] { opencl::sub_devices_asked(wrong); }),
        cat("TESSERA_OPENCL_SUBDEVICES: expected a number from 1 to 1024, got '", wrong, "'"));
  }
}

TEST(OpenClDevices, PreferredDeviceStaysTheCpu) {
  ::unsetenv("TESSERA_DEVICE");
  for (const Device device : available_devices()) {
    if (device.kind == DeviceKind::cuda) GTEST_SKIP() << "a CUDA device comes first";
  }
  EXPECT_EQ(preferred_device(), DeviceKind::cpu);
}

TEST_F(OpenClBackendTest, DescribesItself) {
  const Target& target = opencl_device().target();
  EXPECT_EQ(target.device, "opencl:0");
  EXPECT_NE(target.description.find("compute unit"), std::string::npos) << target.description;
  EXPECT_NE(target.description.find(", driver "), std::string::npos) << target.description;
  EXPECT_GT(target.memory_bytes, int64_t(1) << 28);
  EXPECT_GE(target.alignment, 64);
  for (const char* kernel : {"matmul", "attention", "attention_backward", "scatter_add", "scatter",
                             "update_slice", "sort", "topk", "copy", "custom"}) {
    EXPECT_TRUE(target.has(kernel)) << kernel;
  }
  EXPECT_FALSE(target.has("softmax")) << "a generated kernel does it";
}

TEST_F(OpenClBackendTest, IsFoundTheSameWayEveryTime) {
  const auto first = opencl::find_devices(opencl::library(), 1, true).list;
  const auto second = opencl::find_devices(opencl::library(), 1, true).list;
  ASSERT_EQ(first.size(), second.size());
  for (size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(first[i].id, second[i].id);
    EXPECT_TRUE(i == 0 || first[i - 1].is_gpu || !first[i].is_gpu) << "GPUs come first";
  }
}

TEST_F(OpenClBackendTest, CopiesBothWaysAtOffsets) {
  Backend& device = opencl_device();
  const auto memory = device.allocate(64), other = device.allocate(64);
  device.upload({memory->handle, 16}, numbers(4).data(), 16, Stream{});
  device.copy({other->handle, 4}, {memory->handle, 16}, 16, Stream{});
  EXPECT_EQ(read(device, {other->handle, 8}, 3), (std::vector<float>{2, 3, 4}));
  EXPECT_NE(error_text([&] {
              device.upload({memory->handle, 1000}, &device, 8, Stream{});
            }).find("OpenCL: an upload failed: error -30"),
            std::string::npos);
}

TEST_F(OpenClBackendTest, CountsWhatItDoes) {
  const CounterValues before = counters().snapshot();
  {
    const auto a = opencl_device().allocate(1000), b = opencl_device().allocate(0);
    const CounterValues during = counters().snapshot();
    EXPECT_EQ(during.allocations - before.allocations, 2);
    EXPECT_EQ(during.bytes_in_use - before.bytes_in_use, 1000);
  }
  EXPECT_EQ(counters().snapshot().bytes_in_use, before.bytes_in_use);
}

TEST_F(OpenClBackendTest, SaysWhatItCouldNotAllocate) {
  const int64_t bytes = int64_t(1) << 50;
  const std::string text = error_text([&] { opencl_device().allocate(bytes); });
  EXPECT_EQ(text.find(cat("opencl:0: out of memory: asked for ", bytes, " bytes; ")), 0u) << text;
  EXPECT_NE(text.find(" are free, and one buffer may have "), std::string::npos) << text;
}

// What is cached goes back to the device when it is full, and the request is repeated.
TEST_F(OpenClBackendTest, FreesTheCacheWhenFull) {
  const opencl::DeviceInfo& info = opencl::devices().list[0];
  const int64_t block = std::min(info.largest_buffer, info.memory_bytes / 3) / 64 * 64;
  if (info.memory_bytes > int64_t(4) << 30) GTEST_SKIP() << "more memory than a test should take";
  CachingAllocator allocator(opencl_device());
  std::vector<Buffer> held;
  try {
    for (int i = 0; i < 16; ++i) held.push_back(allocator.allocate(block));
    ADD_FAILURE() << "16 times a third of the memory";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("bytes are in use, nothing is cached"),
              std::string::npos);
  }
  held.clear();
  EXPECT_GT(allocator.stats().cached, 0);
  // Of another size class: nothing cached fits, and only what is cached makes room.
  const int64_t other = size_class(block / 3 * 2);
  for (int64_t room = info.memory_bytes * 9 / 10; room >= other; room -= other) {
    held.push_back(allocator.allocate(other));
  }
  EXPECT_EQ(allocator.stats().in_use, int64_t(held.size()) * other);
  EXPECT_EQ(allocator.stats().cached, 0);
}

TEST_F(OpenClBackendTest, RunsANamedKernelWithoutAGraphAtOffsets) {
  Backend& device = opencl_device();
  CachingAllocator allocator(device);
  const std::vector<float> a = {1, 2, 3, 4, 5, 6}, b = {1, 0, 0, 1, 1, 1};
  std::vector<Buffer> buffers(3);
  const Buffer all = allocator.allocate(256);
  for (size_t i = 0; i < 3; ++i) buffers[i] = {all.memory, int64_t(64 * i + 4), 24};
  device.upload(ref(buffers[0]), a.data(), 24, Stream{});
  device.upload(ref(buffers[1]), b.data(), 24, Stream{});
  KernelCall product;
  product.kernel = "matmul";
  product.operands = {{DType::f32, contiguous_view({2, 3})},
                      {DType::f32, contiguous_view({3, 2})},
                      {DType::f32, contiguous_view({2, 2})}};
  call_kernel(device, product, buffers);
  EXPECT_EQ(read(device, ref(buffers[2]), 4), (std::vector<float>{4, 5, 10, 11}));
}

TEST_F(OpenClBackendTest, RefusesUnknownKernelsAndWrongCounts) {
  KernelCall call;
  call.kernel = "fft";
  EXPECT_EQ(error_text([&] { opencl_device().compile(call); }),
            "opencl:0: expected the name of a kernel it has, got 'fft'");
  call.kernel = "matmul";
  EXPECT_EQ(error_text([&] { opencl_device().compile(call); }),
            "matmul: expected 3 operands, got 0");
  call.kernel = "attention";
  call.operands.resize(4, {DType::f32, contiguous_view({1, 1, 2, 4})});
  call.outputs = 2;
  EXPECT_EQ(error_text([&] { opencl_device().compile(call); }),
            "attention: expected 5 operands for options 0, got 4");
  call.operands.resize(5, {DType::f32, contiguous_view({1, 1, 2, 4})});
  for (int i : {0, 1, 2}) call.operands[size_t(i)].view = contiguous_view({1, 1, 2, 1 << 28});
  const std::string text = error_text([&] { opencl_device().compile(call); });
  EXPECT_EQ(text.find("attention: heads of 268435456 and 268435456 columns need "), 0u) << text;
  EXPECT_NE(text.find(" bytes of local memory, opencl:0 has "), std::string::npos) << text;
  call = {};
  call.kernel = "sort";
  const View long_row = contiguous_view({(int64_t(1) << 31) + 1});
  call.operands = {{DType::f32, long_row}, {DType::f32, long_row}, {DType::i64, long_row}};
  EXPECT_EQ(error_text([&] { opencl_device().compile(call); }),
            "sort: opencl:0 takes rows of at most 2147483648 elements, got 2147483649");
}

// A user's kernel takes no offsets, and a part of a buffer must be aligned.
TEST_F(OpenClBackendTest, AlignsTheOperandsOfUsersKernels) {
  Backend& device = opencl_device();
  const std::string source =
      "__kernel void fill(__global float* y, long n) { y[get_global_id(0)] = 3; }";
  KernelCall call;
  call.kernel = "custom";
  call.custom = std::make_shared<const CustomKernel>(CustomKernel{"fill", {}, "", source});
  call.operands = {{DType::f32, contiguous_view({64})}};
  const auto memory = device.allocate(4096);
  const std::unique_ptr<Executable> fill = device.compile(call);
  const BufferRef aligned = {memory->handle, device.target().alignment};
  device.launch(*fill, {&aligned, 1}, 0, Stream{});
  EXPECT_EQ(read(device, aligned, 2), (std::vector<float>{3, 3}));
  const BufferRef shifted = {memory->handle, 4};
  EXPECT_EQ(error_text([&] {
              device.launch(*fill, {&shifted, 1}, 0, Stream{});
            }),
            cat("fill: expected operands that start at a multiple of ", device.target().alignment,
                " bytes, got 4"));
}

// Each text that a launch may need: operands aligned or not, long rows shared by groups or not.
TEST_F(OpenClBackendTest, ChoosesTheKernelByTheLaunch) {
  constexpr int64_t kLong = 300000;
  KernelIR ir;
  ir.name = "sum";
  ir.extents = {kLong};
  ir.operands = {{DType::f32, false}, {DType::f32, true}};
  IrInst load, sum, store;
  load.kind = IrKind::load;
  load.operand = 0;
  load.strides = {1};
  sum.kind = IrKind::reduce;
  sum.level = IrLevel::row;
  sum.args[0] = 0;
  store.kind = IrKind::store;
  store.level = IrLevel::row;
  store.operand = 1;
  store.strides = {0};
  store.args[0] = 1;
  ir.insts = {load, sum, store};
  ASSERT_EQ(verify(ir), "");
  KernelCall call;
  call.ir = std::make_shared<const KernelIR>(ir);
  Backend& device = opencl_device();
  const std::unique_ptr<Executable> executable = device.compile(call);
  const auto x = device.allocate(4 * (kLong + 1)), y = device.allocate(64);
  const std::vector<float> ones(kLong + 1, 1.0f);
  device.upload({x->handle, 0}, ones.data(), 4 * (kLong + 1), Stream{});
  for (const int64_t extent : {kLong, int64_t(3)}) {
    for (const int64_t offset : {0, 4}) {
      const BufferRef operands[] = {{x->handle, offset}, {y->handle, offset}};
      device.launch(*executable, operands, extent, Stream{});
      EXPECT_EQ(read(device, operands[1], 1)[0], float(extent)) << offset;
    }
  }
}

TEST_F(OpenClBackendTest, SaysThatADeviceHasNoF64) {
  opencl::DeviceInfo info = opencl::devices().list[0];
  info.has_f64 = false;
  const std::unique_ptr<Backend> device = opencl::make_backend(info, "opencl:7");
  KernelCall product;
  product.kernel = "matmul";
  product.operands.resize(3, {DType::f64, contiguous_view({2, 2})});
  const std::string text = error_text([&] { device->compile(product); });
  EXPECT_EQ(text.find("matmul: f64 is not available on opencl:7 ("), 0u) << text;
  EXPECT_NE(text.find(", no f64): cast to f32, or compute on another device"), std::string::npos);
  for (OperandView& operand : product.operands) operand.dtype = DType::f32;
  EXPECT_NE(device->compile(product), nullptr);
}

std::string file_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST_F(OpenClBackendTest, KeepsTheSourceThatDoesNotCompile) {
  const std::string source = "__kernel void broken(__global float* y, long n) { y[0] = nonsense; }";
  opencl::Session session(opencl::devices().list[0], "opencl:0");
  const std::string text =
      full_error_text([&] { opencl::Kernel(session, "broken", source, "broken"); });
  EXPECT_EQ(text.find("broken: the kernel does not compile on opencl:0 ("), 0u) << text;
  EXPECT_NE(text.find("nonsense"), std::string::npos) << "the compiler's first error: " << text;
  const std::string before = "; its source is kept in ";
  const size_t at = text.find(before);
  ASSERT_NE(at, std::string::npos) << text;
  const std::string path = text.substr(at + before.size());
  EXPECT_EQ(file_text(path), source);
  std::filesystem::remove(path);
}

TEST_F(OpenClBackendTest, SaysWhatDoesNotFitAKernel) {
  const std::string source = "__kernel void one(__global float* y) { y[0] = 1; }";
  opencl::Session session(opencl::devices().list[0], "opencl:0");
  EXPECT_NE(error_text([&] {
              opencl::Kernel(session, "op", source, "two");
            }).find("op: its source has no kernel 'two' for opencl:0: "),
            std::string::npos);
  const opencl::Kernel kernel(session, "op", source, "one");
  const opencl::Mem mem = session.allocate(64);
  EXPECT_NE(error_text([&] {
              kernel(Stream{}, gpu::Range{}, mem.get(), 1);
            }).find("op: argument 1 does not fit its kernel: error "),
            std::string::npos);
  gpu::Range large;
  large.group[0] = size_t(1) << 30;
  EXPECT_NE(error_text([&] {
              kernel(Stream{}, large, mem.get());
            }).find("op: opencl:0 cannot run its kernel: error "),
            std::string::npos);
  gpu::Range none;
  none.groups[0] = 0;
  kernel(Stream{}, none, mem.get());
  session.finish(Stream{});
}

// Streams have queues of their own.
TEST_F(OpenClBackendTest, HasSeveralStreams) {
  Backend& device = opencl_device();
  const auto memory = device.allocate(64);
  device.upload({memory->handle, 0}, numbers(4).data(), 16, Stream{1});
  device.synchronize(Stream{1});
  EXPECT_EQ(read(device, {memory->handle, 0}, 4), numbers(4));
}

}  // namespace
}  // namespace tessera::test
