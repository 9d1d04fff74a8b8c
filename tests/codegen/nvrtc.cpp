#include "codegen/nvrtc.h"

#include <dlfcn.h>

#include <algorithm>
#include <cctype>

namespace tessera {

Nvrtc::Nvrtc() {
  void* library = nullptr;
  for (const char* name :
       {"libnvrtc.so.13", "libnvrtc.so.12", "/usr/local/cuda/lib64/libnvrtc.so"}) {
    if (library == nullptr) library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  }
  if (library == nullptr) return;
  const auto load = [library](auto& function, const char* name) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(library, name));
    return function != nullptr;
  };
  const bool has_all = load(create_, "nvrtcCreateProgram") &&
                       load(compile_, "nvrtcCompileProgram") &&
                       load(log_size_, "nvrtcGetProgramLogSize") &&
                       load(log_, "nvrtcGetProgramLog") && load(destroy_, "nvrtcDestroyProgram");
  if (!has_all) destroy_ = nullptr;
}

CompiledText Nvrtc::compile(const std::string& source, const std::string& architecture) const {
  CompiledText text;
  const std::string gpu = "--gpu-architecture=" + architecture;
  const char* const options[] = {gpu.c_str(), "--ptxas-options=-v"};
  Program program = nullptr;
  if (create_(&program, source.c_str(), "kernel.cu", 0, nullptr, nullptr) != 0) return text;
  text.compiled = compile_(program, 2, options) == 0;
  size_t size = 0;
  if (log_size_(program, &size) == 0) {
    text.log.resize(size);
    log_(program, text.log.data());
  }
  destroy_(&program);
  read_usage(text);
  return text;
}

void read_usage(CompiledText& text) {
  const std::string& log = text.log;
  // The number before each place where `words` stand.
  const auto numbers_before = [&log](const std::string& words) {
    std::vector<int> numbers;
    for (size_t at = log.find(words); at != std::string::npos; at = log.find(words, at + 1)) {
      size_t begin = at;
      while (begin > 0 && std::isdigit(static_cast<unsigned char>(log[begin - 1])) != 0) --begin;
      if (begin < at) numbers.push_back(std::stoi(log.substr(begin, at - begin)));
    }
    return numbers;
  };
  for (const int n : numbers_before(" registers")) text.registers = std::max(text.registers, n);
  for (const char* words : {" bytes spill stores", " bytes spill loads"}) {
    for (const int n : numbers_before(words)) text.spill_bytes += n;
  }
}

}  // namespace tessera
