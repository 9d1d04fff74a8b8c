// The rendered texts through the compilers of their dialects, where those are installed.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include "codegen/host_kernel.h"
#include "codegen/zoo.h"
#include "tessera/codegen/render.h"

namespace tessera {
namespace {

std::vector<KernelIR> all_kernels() {
  std::vector<KernelIR> kernels = golden_kernels();
  for (int i = 0; i < kDTypeCount; ++i) {
    const DType dtype = static_cast<DType>(i);
    kernels.push_back(all_ops_kernel(dtype).ir);
    kernels.push_back(all_casts_kernel(dtype));
    if (dtype != DType::boolean) kernels.push_back(all_reductions_kernel(dtype, 100));
  }
  return kernels;
}

// The functions of NVRTC this test calls; nvrtcProgram is an opaque pointer.
struct Nvrtc {
  void* library = nullptr;
  int (*create)(void**, const char*, const char*, int, const char* const*, const char* const*);
  int (*compile)(void*, int, const char* const*);
  int (*log_size)(void*, size_t*);
  int (*log)(void*, char*);
  int (*destroy)(void**);

  bool open() {
    for (const char* name :
         {"libnvrtc.so.13", "libnvrtc.so.12", "/usr/local/cuda/lib64/libnvrtc.so"}) {
      library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
      if (library != nullptr) break;
    }
    return library != nullptr && load(create, "nvrtcCreateProgram") &&
           load(compile, "nvrtcCompileProgram") && load(log_size, "nvrtcGetProgramLogSize") &&
           load(log, "nvrtcGetProgramLog") && load(destroy, "nvrtcDestroyProgram");
  }

  template <class F>
  bool load(F& function, const char* name) {
    function = reinterpret_cast<F>(dlsym(library, name));
    return function != nullptr;
  }
};

TEST(Compilers, NvrtcTakesTheCudaText) {
  Nvrtc nvrtc;
  if (!nvrtc.open()) GTEST_SKIP() << "no libnvrtc on this machine";
  const char* const options[] = {"--gpu-architecture=sm_80"};
  for (const KernelIR& ir : all_kernels()) {
    const RenderedKernel kernel = render(ir, cuda_dialect());
    void* program = nullptr;
    ASSERT_EQ(nvrtc.create(&program, kernel.source.c_str(), "kernel.cu", 0, nullptr, nullptr), 0);
    const int result = nvrtc.compile(program, 1, options);
    size_t size = 0;
    ASSERT_EQ(nvrtc.log_size(program, &size), 0);
    std::string log(size, '\0');
    ASSERT_EQ(nvrtc.log(program, log.data()), 0);
    EXPECT_EQ(result, 0) << log << kernel.source;
    EXPECT_EQ(nvrtc.destroy(&program), 0);
  }
}

TEST(Compilers, ClangTakesTheOpenClText) {
  std::string clang, output;
  for (const char* name : {"clang", "clang-16", "clang-18"}) {
    if (clang.empty() && run_command(std::string(name) + " --version", output)) clang = name;
  }
  if (clang.empty()) GTEST_SKIP() << "no clang on this machine";
  const TempFolder folder;
  std::string files;
  for (const KernelIR& ir : all_kernels()) {
    const RenderedKernel kernel = render(ir, opencl_dialect());
    const std::string path = folder.path(kernel.entry + ".cl");
    write_text(path, kernel.source);
    files += " '" + path + "'";
  }
  const std::string command =
      clang +
      " -x cl -cl-std=CL1.2 -target spir64-unknown-unknown -Xclang -finclude-default-header" +
      " -Wall -Wno-unused-parameter -fsyntax-only";
  EXPECT_TRUE(run_command(command + files, output)) << output;
}

}  // namespace
}  // namespace tessera
