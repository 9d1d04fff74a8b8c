#include "tessera/backend/cuda/cublaslt.h"

#include <cstdlib>
#include <string_view>
#include <vector>

#include "tessera/backend/cuda/libraries.h"
#include "tessera/base/error.h"

namespace tessera::cuda {

namespace {

CublasLtLibrary open_cublaslt() {
  const char* asked = std::getenv("TESSERA_CUBLASLT_LIBRARY");
  const bool is_asked = asked != nullptr && *asked != '\0';
  if (is_asked && std::string_view(asked) == "0") return {std::nullopt, "it is not to be used"};
  const std::vector<const char*> names =
      is_asked ? std::vector{asked} : std::vector{"libcublasLt.so.13", "libcublasLt.so.12"};
  const std::optional<SharedLibrary> library = open_library(names);
  if (!library) return {std::nullopt, cat(names[0], " not found")};
  CublasLt l = {};
  const char* missing = nullptr;
  auto find = [&]<class F>(F*& function, const char* symbol) {
    function = library->function<F>(symbol);
    if (function == nullptr && missing == nullptr) missing = symbol;
  };
  find(l.version, "cublasLtGetVersion");
  find(l.create, "cublasLtCreate");
  find(l.operation_create, "cublasLtMatmulDescCreate");
  find(l.operation_set, "cublasLtMatmulDescSetAttribute");
  find(l.operation_destroy, "cublasLtMatmulDescDestroy");
  find(l.layout_create, "cublasLtMatrixLayoutCreate");
  find(l.layout_set, "cublasLtMatrixLayoutSetAttribute");
  find(l.layout_destroy, "cublasLtMatrixLayoutDestroy");
  find(l.preference_create, "cublasLtMatmulPreferenceCreate");
  find(l.preference_set, "cublasLtMatmulPreferenceSetAttribute");
  find(l.preference_destroy, "cublasLtMatmulPreferenceDestroy");
  find(l.candidates, "cublasLtMatmulAlgoGetHeuristic");
  find(l.multiply, "cublasLtMatmul");
  if (missing != nullptr) return {std::nullopt, cat(library->name(), " has no ", missing)};
  return {l, ""};
}

}  // namespace

const CublasLtLibrary& cublaslt_library() {
  static const CublasLtLibrary instance = open_cublaslt();
  return instance;
}

}  // namespace tessera::cuda
