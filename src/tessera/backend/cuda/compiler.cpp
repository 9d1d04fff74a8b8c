#include "tessera/backend/cuda/compiler.h"

#include <cstdlib>

#include "tessera/backend/cuda/libraries.h"
#include "tessera/base/error.h"

namespace tessera::cuda {

namespace {

NvrtcLibrary open_nvrtc() {
  const char* asked = std::getenv("TESSERA_NVRTC_LIBRARY");
  const bool is_asked = asked != nullptr && *asked != '\0';
  const std::vector<const char*> names =
      is_asked ? std::vector{asked} : std::vector{"libnvrtc.so.13", "libnvrtc.so.12"};
  const std::optional<SharedLibrary> library = open_library(names);
  if (!library) return {std::nullopt, cat(names[0], " not found")};
  Nvrtc n = {};
  const char* missing = nullptr;
  auto find = [&]<class F>(F*& function, const char* symbol) {
    function = library->function<F>(symbol);
    if (function == nullptr && missing == nullptr) missing = symbol;
  };
  find(n.version, "nvrtcVersion");
  find(n.count_architectures, "nvrtcGetNumSupportedArchs");
  find(n.architectures, "nvrtcGetSupportedArchs");
  find(n.create, "nvrtcCreateProgram");
  find(n.compile, "nvrtcCompileProgram");
  find(n.binary_size, "nvrtcGetCUBINSize");
  find(n.binary, "nvrtcGetCUBIN");
  find(n.ptx_size, "nvrtcGetPTXSize");
  find(n.ptx, "nvrtcGetPTX");
  find(n.log_size, "nvrtcGetProgramLogSize");
  find(n.log, "nvrtcGetProgramLog");
  find(n.destroy, "nvrtcDestroyProgram");
  if (missing != nullptr) return {std::nullopt, cat(library->name(), " has no ", missing)};
  return {n, ""};
}

}  // namespace

const NvrtcLibrary& nvrtc_library() {
  static const NvrtcLibrary instance = open_nvrtc();
  return instance;
}

std::string architecture_for(int major, int minor, const std::vector<int>& known) {
  const int own = 10 * major + minor;
  int best = 0;
  for (const int architecture : known) {
    if (architecture <= own && architecture > best) best = architecture;
  }
  if (best == 0) return "";
  if (best != own) return cat("compute_", best);
  return cat("sm_", own, own >= 90 ? "a" : "");  // a: with what only this architecture has
}

int cluster_groups(const std::string& architecture) {
  const size_t number = architecture.find('_') + 1;
  const bool has_clusters = number > 0 && std::stoi(architecture.substr(number)) >= 90;
  return has_clusters ? 8 : 1;
}

std::string compiler_version() {
  int major = 0, minor = 0;
  nvrtc_library().nvrtc->version(&major, &minor);
  return cat("NVRTC ", major, ".", minor);
}

std::vector<int> compiler_architectures() {
  int count = 0;
  nvrtc_library().nvrtc->count_architectures(&count);
  std::vector<int> known(size_t(count), 0);
  nvrtc_library().nvrtc->architectures(known.data());
  return known;
}

Compiled compile_text(const std::string& source, const std::string& architecture,
                      const std::vector<std::string>& options) {
  const Nvrtc& n = *nvrtc_library().nvrtc;
  const std::string gpu = "--gpu-architecture=" + architecture;
  std::vector<const char*> all = {gpu.c_str()};
  for (const std::string& option : options) all.push_back(option.c_str());
  Compiled result;
  Nvrtc::Program program = nullptr;
  if (n.create(&program, source.c_str(), "kernel.cu", 0, nullptr, nullptr) != 0) return result;
  const bool compiled = n.compile(program, int(all.size()), all.data()) == 0;
  size_t size = 0;
  if (n.log_size(program, &size) == 0 && size > 0) {
    result.log.resize(size);
    n.log(program, result.log.data());
  }
  const bool is_text = architecture.starts_with("compute_");
  if (compiled && (is_text ? n.ptx_size : n.binary_size)(program, &size) == 0) {
    result.binary.resize(size);
    (is_text ? n.ptx : n.binary)(program, result.binary.data());
  }
  n.destroy(&program);
  return result;
}

}  // namespace tessera::cuda
