// Compiling sources for a device.
#pragma once

#include <mutex>
#include <string>
#include <unordered_map>

#include "tessera/backend/opencl/devices.h"

namespace tessera::opencl {

// Thread safe.
class Programs {
 public:
  // `name` is the device's in errors.
  Programs(ContextId context, const DeviceInfo& info, std::string name);

  // The program of a source, built now or before, by this process or by another that left its
  // binary on disk. Throws with the compiler's first error and the name of a file that keeps the
  // source; `op` is whose kernel it is.
  std::shared_ptr<const Program> get(const std::string& op, const std::string& source);

 private:
  Program build(const std::string& op, const std::string& source) const;
  Program compile(const std::string& op, const std::string& source) const;
  Program load(const std::string& binary) const;

  const ContextId context_;
  const DeviceInfo info_;
  const std::string name_;
  const std::string options_;  // of the compiler
  std::mutex mutex_;
  std::unordered_map<std::string, std::weak_ptr<const Program>> by_source_;
};

}  // namespace tessera::opencl
