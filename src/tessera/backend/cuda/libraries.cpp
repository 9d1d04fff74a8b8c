#include "tessera/backend/cuda/libraries.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

namespace tessera::cuda {

namespace {

namespace fs = std::filesystem;

// The folders in `folder` whose names begin so, in order.
std::vector<fs::path> folders_in(const fs::path& folder, const std::string& prefix) {
  std::vector<fs::path> found;
  std::error_code code;
  for (fs::directory_iterator it(folder, code); !code && it != fs::directory_iterator();
       it.increment(code)) {
    if (it->path().filename().string().starts_with(prefix)) found.push_back(it->path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

// nvidia/<part>/lib of the packages that pip installs under `root`/python3….
void add_wheels(const fs::path& root, std::vector<std::string>& folders) {
  for (const fs::path& python : folders_in(root, "python3")) {
    for (const char* packages : {"site-packages", "dist-packages"}) {
      for (const fs::path& part : folders_in(python / packages / "nvidia", "")) {
        folders.push_back((part / "lib").string());
      }
    }
  }
}

}  // namespace

std::vector<std::string> library_folders() {
  std::vector<std::string> folders;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const char* value = std::getenv(variable); value != nullptr && *value != '\0') {
      folders.push_back(std::string(value) + "/lib64");
    }
  }
  folders.insert(folders.end(), {"/usr/local/cuda/lib64", "/usr/local/cuda/lib"});
  if (const char* value = std::getenv("VIRTUAL_ENV")) add_wheels(fs::path(value) / "lib", folders);
  if (const char* value = std::getenv("HOME")) {
    add_wheels(fs::path(value) / ".local/lib", folders);
  }
  add_wheels("/usr/local/lib", folders);
  add_wheels("/usr/lib", folders);
  folders.insert(folders.end(), {"/usr/lib/wsl/lib", "/usr/lib/aarch64-linux-gnu/nvidia",
                                 "/usr/lib/aarch64-linux-gnu/tegra"});
  return folders;
}

std::vector<std::string> library_files(std::span<const char* const> names,
                                       std::span<const std::string> folders) {
  std::vector<std::string> files(names.begin(), names.end());
  for (const std::string& folder : folders) {
    for (const char* name : names) {
      std::error_code ignored;
      if (const fs::path file = fs::path(folder) / name; fs::exists(file, ignored)) {
        files.push_back(file.string());
      }
    }
  }
  return files;
}

std::optional<SharedLibrary> open_library(std::span<const char* const> names) {
  const std::vector<std::string> files = library_files(names, library_folders());
  std::vector<const char*> paths;
  for (const std::string& file : files) paths.push_back(file.c_str());
  return SharedLibrary::open(paths);
}

}  // namespace tessera::cuda
