// .npy: what is accepted lies inside the input, and written again reads as the same array.
#include <algorithm>
#include <string>

#include "fuzz.h"
#include "tessera/io/npy.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tessera;
  NpyView view{};
  try {
    view = parse_npy(std::as_bytes(std::span(data, size)), "input");
  } catch (const Error&) {
    return 0;
  }
  touch(view.data);
  require(size_t(numel(view.shape) * size_of(view.dtype)) == view.data.size(), "npy: size");
  std::string again = npy_preamble(view.dtype, view.shape);
  again.append(reinterpret_cast<const char*>(view.data.data()), view.data.size());
  const NpyView back = parse_npy(std::as_bytes(std::span(again)), "again");
  require(back.dtype == view.dtype && back.shape == view.shape && !back.fortran_order &&
              std::ranges::equal(back.data, view.data),
          "npy: differs when written and read again");
  return 0;
}
