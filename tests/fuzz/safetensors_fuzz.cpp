// Safetensors: what is accepted covers the input without overlaps, and written again reads as the
// same tensors.
#include <algorithm>
#include <string>
#include <vector>

#include "fuzz.h"
#include "tessera/io/safetensors.h"

namespace tessera {
namespace {

std::string write_again(const SafetensorsView& view) {
  std::vector<SafetensorsInfo> infos;
  for (const SafetensorsTensor& tensor : view.tensors) infos.push_back(tensor.info);
  SafetensorsLayout layout = layout_safetensors(infos, view.metadata);
  require(layout.head.size() % 8 == 0, "safetensors: alignment of the header");
  for (const size_t i : layout.order) {
    const auto bytes = view.tensors[i].data;
    layout.head.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  return layout.head;
}

void check(std::span<const std::byte> input, const SafetensorsView& view) {
  size_t total = 0;
  for (const SafetensorsTensor& tensor : view.tensors) {
    const auto& [info, bytes] = tensor;
    touch(bytes);
    total += bytes.size();
    require(size_t(numel(info.shape) * size_of(info.dtype)) == bytes.size(), "safetensors: size");
    require(
        bytes.data() >= input.data() && bytes.data() + bytes.size() <= input.data() + input.size(),
        "safetensors: bytes outside of the input");
    if (info.dtype != DType::boolean) continue;
    require(std::ranges::all_of(bytes, [](std::byte b) { return b <= std::byte{1}; }),
            "safetensors: bool");
  }
  require(total <= input.size(), "safetensors: overlapping tensors");
}

}  // namespace
}  // namespace tessera

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tessera;
  const auto input = std::as_bytes(std::span(data, size));
  SafetensorsView view;
  try {
    view = parse_safetensors(input, "input");
  } catch (const Error&) {
    return 0;
  }
  check(input, view);
  const std::string again = write_again(view);
  const SafetensorsView back = parse_safetensors(std::as_bytes(std::span(again)), "again");
  require(back.metadata == view.metadata && back.tensors.size() == view.tensors.size(),
          "safetensors: other names or metadata when written and read again");
  for (const SafetensorsTensor& tensor : view.tensors) {
    const SafetensorsTensor* same = back.find(tensor.info.name);
    require(same != nullptr && same->info.dtype == tensor.info.dtype &&
                same->info.shape == tensor.info.shape &&
                std::ranges::equal(same->data, tensor.data),
            "safetensors: a tensor differs when written and read again");
  }
  return 0;
}
