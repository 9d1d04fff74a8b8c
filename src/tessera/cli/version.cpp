#include "tessera/cli/version.h"

#include "tessera/base/error.h"
#include "tessera/io/json.h"
#include "tessera/runtime/registry.h"
#include "tessera/tessera.h"

namespace tessera::cli {

std::string compiler() {
#if defined(__clang__)
  return cat("clang ", __clang_major__, ".", __clang_minor__, ".", __clang_patchlevel__);
#else
  return cat("gcc ", __GNUC__, ".", __GNUC_MINOR__, ".", __GNUC_PATCHLEVEL__);
#endif
}

std::string version_text() {
  std::string names;
  for (const DeviceKind kind : backend_kinds()) names += cat(" ", name(kind));
  return cat("tessera ", version(), "\ncompiler: ", compiler(),
             "\nbuild type: ", TESSERA_BUILD_TYPE, "\nbackends:", names, "\n");
}

std::string version_json() {
  Json names = Json::array();
  for (const DeviceKind kind : backend_kinds()) names.push(name(kind));
  Json document;
  document.set("version", version());
  document.set("compiler", compiler());
  document.set("build_type", TESSERA_BUILD_TYPE);
  document.set("backends", names);
  return document.dump(2) + "\n";
}

}  // namespace tessera::cli
