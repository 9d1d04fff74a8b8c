#include <gtest/gtest.h>

#include "cli/run_command.h"
#include "support/fake_cuda.h"
#include "tessera/io/json.h"
#include "tessera/runtime/registry.h"

namespace tessera {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

const Environment kNothing = {"TESSERA_OPENCL_LIBRARY=libnone.so.1",
                              "TESSERA_CUDA_LIBRARY=libnone.so.2"};

TEST(DevicesCommand, TellsWhyOthersAreAbsent) {
  const CommandResult result = run_command({"devices"}, kNothing);
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.err, "");
  const std::string cpu = backend("cpu").target().description;
  EXPECT_TRUE(result.out.starts_with("cpu         " + cpu + "\n            memory: "));
  EXPECT_TRUE(contains(result.out, ", instruction sets: baseline"));
  EXPECT_TRUE(contains(result.out, " (in use)"));
  EXPECT_TRUE(contains(result.out,
                       "\nno CUDA device: libnone.so.2 not found: with an NVIDIA card: apt-get "
                       "install nvidia-driver (Debian, non-free), ubuntu-drivers install (Ubuntu)\n"
                       "no OpenCL device: libnone.so.1 not found: apt-get install "
                       "ocl-icd-libopencl1 pocl-opencl-icd\n"))
      << result.out;
}

TEST(DevicesCommand, WritesJson) {
  const CommandResult result = run_command({"devices", "--json"}, kNothing);
  const Json document = Json::parse(result.out, "devices");
  const Json& cpu = document.at("devices").at(size_t(0));
  EXPECT_EQ(cpu.get<std::string>("name"), "cpu");
  EXPECT_GT(cpu.get<int64_t>("memory_bytes"), 0);
  EXPECT_GT(cpu.get<int64_t>("logical_processors"), 0);
  EXPECT_EQ(cpu.at("instruction_sets").at(size_t(0)).as_string(), "baseline");
  EXPECT_TRUE(cpu.get<bool>("usable"));
  const Json& absent = document.at("absent");
  EXPECT_EQ(absent.at(size_t(0)).get<std::string>("kind"), "cuda");
  EXPECT_EQ(absent.at(size_t(0)).get<std::string>("reason"), "libnone.so.2 not found");
  EXPECT_EQ(absent.at(size_t(1)).get<std::string>("remedy"),
            "apt-get install ocl-icd-libopencl1 pocl-opencl-icd");
}

TEST(DevicesCommand, TellsAbsencesApart) {
  const TempFolder vendors, library;
  // The loader of ocl-icd looks for drivers here.
  Environment environment = {"OCL_ICD_VENDORS=" + vendors.path().native(),
                             "TESSERA_CUDA_LIBRARY=" + make_fake_cuda(library, 100, 0).native()};
  const std::string out = run_command({"devices"}, environment).out;
  EXPECT_TRUE(contains(out,
                       "\nno CUDA device: driver found, no device: nvidia-smi says whether the "
                       "driver sees a card; a container needs to be given it\n"))
      << out;
  if (contains(out, "libOpenCL.so.1 not found")) GTEST_SKIP() << "no OpenCL here";
  EXPECT_TRUE(contains(out,
                       "\nno OpenCL device: no platform: apt-get install pocl-opencl-icd (for the "
                       "CPU), or the OpenCL driver of the GPU's maker\n"))
      << out;
}

// A card that the driver knows is listed even where the driver lacks what the backend needs.
TEST(DevicesCommand, ListsCudaDevicesOfTheDriver) {
  const TempFolder folder;
  const Environment environment = {"TESSERA_OPENCL_LIBRARY=libnone.so.1",
                                   "TESSERA_CUDA_LIBRARY=" + make_fake_cuda(folder, 0, 2).native()};
  const std::string out = run_command({"devices"}, environment).out;
  EXPECT_TRUE(contains(
      out,
      "\ncuda:1      Card 8, 132 multiprocessors, compute capability 9.1, driver for CUDA 12.8\n"
      "            memory: 2.0 GiB\n"
      "            not used: "))
      << out;
  EXPECT_TRUE(contains(out, " has no cuGetErrorName: the driver is too old\n")) << out;
  EXPECT_FALSE(contains(out, "no CUDA device"));
  const Json document = Json::parse(run_command({"devices", "--json"}, environment).out, "devices");
  const Json& card = document.at("devices").at(size_t(1));
  EXPECT_EQ(card.get<std::string>("name"), "cuda:0");
  EXPECT_EQ(card.get<int64_t>("memory_bytes"), int64_t(1) << 30);
  EXPECT_FALSE(card.get<bool>("usable"));
  EXPECT_TRUE(card.get<std::string>("reason").ends_with("the driver is too old"));
}

TEST(DevicesCommand, ListsOpenClDevices) {
  if (!why_absent(DeviceKind::opencl).empty()) GTEST_SKIP() << why_absent(DeviceKind::opencl);
  const std::string out = run_command({"devices"}).out;
  const std::string description = backend("opencl:0").target().description;
  EXPECT_TRUE(contains(out, "\nopencl:0    " + description + "\n            memory: ")) << out;
  EXPECT_TRUE(contains(description, ", driver ")) << description;
  EXPECT_FALSE(contains(out, "no OpenCL device"));
}

TEST(DevicesCommand, AnAbsentDeviceThatIsAskedForSaysWhy) {
  const CommandResult result = run_command({"selftest", "--device", "opencl"}, kNothing);
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.err, "tessera: Failed to initialize OpenCL device 0: libnone.so.1 not found\n");
}

TEST(DevicesCommand, RefusesWords) {
  const CommandResult result = run_command({"devices", "cpu"});
  EXPECT_EQ(result.status, 2);
  EXPECT_EQ(result.err,
            "tessera: devices: expected options alone, got 'cpu'\ntry 'tessera devices --help'\n");
}

}  // namespace
}  // namespace tessera
