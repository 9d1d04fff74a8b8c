#include "tessera/tensor/files.h"

#include <cstdint>
#include <memory>
#include <span>

#include "tessera/io/json.h"
#include "tessera/io/npy.h"
#include "tessera/io/safetensors.h"
#include "tessera/tensor/device.h"
#include "tessera/tensor/storage.h"
#include "tessera/tensor/structure.h"

namespace tessera {

namespace {

// Memory inside a mapped file, which it keeps mapped.
struct MappedMemory {
  std::shared_ptr<const void> file;
  Memory memory;
};

// Kernels only ever write into the storage of Vars and results, which are never foreign; the pages
// are mapped for reading.
std::shared_ptr<Memory> memory_in(std::shared_ptr<const void> file, Backend& backend,
                                  std::span<const std::byte> bytes) {
  void* address = const_cast<std::byte*>(bytes.data());
  const auto owner = std::shared_ptr<MappedMemory>(
      new MappedMemory{std::move(file), {&backend, address, int64_t(bytes.size()), true}});
  return {owner, &owner->memory};
}

bool is_aligned(std::span<const std::byte> bytes, DType dtype) {
  return reinterpret_cast<uintptr_t>(bytes.data()) % size_t(size_of(dtype)) == 0;
}

// The elements at `bytes`, which `file` owns.
Tensor tensor_in(const std::shared_ptr<const void>& file, const Type& type,
                 std::span<const std::byte> bytes) {
  const Device device = default_device();
  if (device.kind != DeviceKind::cpu || bytes.empty() || !is_aligned(bytes, type.dtype)) {
    return Tensor::from_bytes(type.dtype, type.shape, bytes.data());
  }
  DeviceContext& context = device_context(device);
  auto storage = std::make_shared<Storage>();
  storage->buffer = {memory_in(file, context.backend, bytes), 0, int64_t(bytes.size())};
  storage->device = &context;
  return Tensor(leaf_of(type, std::move(storage)));
}

std::vector<std::byte> bytes_of(const Tensor& tensor) {
  std::vector<std::byte> bytes(size_t(byte_size(tensor.value().type())));
  tensor.read_bytes(tensor.dtype(), bytes.data());
  return bytes;
}

std::shared_ptr<const SafetensorsFile> open_safetensors(const std::filesystem::path& path) {
  return std::make_shared<const SafetensorsFile>(path);
}

Tensor tensor_in(const std::shared_ptr<const SafetensorsFile>& file,
                 const SafetensorsTensor& tensor) {
  return tensor_in(file, {tensor.info.dtype, tensor.info.shape}, tensor.data);
}

NamedTensors all_of(const std::shared_ptr<const SafetensorsFile>& file) {
  NamedTensors tensors;
  for (const SafetensorsTensor& tensor : file->view.tensors) {
    tensors.emplace(tensor.info.name, tensor_in(file, tensor));
  }
  return tensors;
}

}  // namespace

Tensor load_npy(const std::filesystem::path& path) {
  const auto file = std::make_shared<const NpyFile>(read_npy(path));
  const NpyView& view = file->view;
  if (!view.fortran_order) return tensor_in(file, {view.dtype, view.shape}, view.data);
  // Column-major is row-major with the axes the other way round.
  const int rank = view.shape.rank();
  Shape reversed;
  Dims permutation;
  for (int axis = rank - 1; axis >= 0; --axis) {
    reversed.push_back(view.shape[axis]);
    permutation.push_back(axis);
  }
  return permute(tensor_in(file, {view.dtype, reversed}, view.data), permutation);
}

void save_npy(const std::filesystem::path& path, const Tensor& tensor) {
  write_npy(path, tensor.dtype(), tensor.shape(), bytes_of(tensor));
}

NamedTensors load_safetensors(const std::filesystem::path& path) {
  return all_of(open_safetensors(path));
}

NamedTensors load_safetensors(const std::filesystem::path& path,
                              const std::vector<std::string>& names) {
  const auto file = open_safetensors(path);
  std::map<std::string_view, const SafetensorsTensor*> by_name;
  for (const SafetensorsTensor& tensor : file->view.tensors) by_name[tensor.info.name] = &tensor;
  NamedTensors tensors;
  for (const std::string& name : names) {
    const auto found = by_name.find(name);
    if (found == by_name.end()) {
      fail("safetensors: '", path.native(), "': expected a tensor ", quote_for_error(name),
           ", got none of that name");
    }
    tensors.emplace(name, tensor_in(file, *found->second));
  }
  return tensors;
}

TensorsWithMetadata load_safetensors_with_metadata(const std::filesystem::path& path) {
  const auto file = open_safetensors(path);
  return {all_of(file), file->view.metadata};
}

const Tensor& NamedTensors::at(const std::string& name) const {
  constexpr size_t kShown = 10;
  const auto found = find(name);
  if (found != end()) return found->second;
  std::string known;
  size_t shown = 0;
  for (const auto& [other, tensor] : *this) {
    if (++shown > kShown) break;
    known += cat(known.empty() ? "" : ", ", quote_for_error(other));
  }
  fail("no tensor is called ", quote_for_error(name), "; of ", size(), " there ",
       size() == 1 ? "is " : "are ", known, size() > kShown ? ", …" : "");
}

void save_safetensors(const std::filesystem::path& path, const NamedTensors& tensors,
                      const FileMetadata& metadata) {
  std::vector<SafetensorsInfo> infos;
  std::vector<Tensor> values;
  for (const auto& [name, tensor] : tensors) {
    if (!tensor.defined())
      fail("save: expected a tensor for ", quote_for_error(name), ", got an empty handle");
    infos.push_back({name, tensor.dtype(), tensor.shape()});
    values.push_back(tensor);
  }
  eval(values);
  std::vector<std::byte> bytes;
  write_safetensors(path, infos, metadata, [&](size_t i) {
    bytes = bytes_of(values[i]);
    return std::span<const std::byte>(bytes);
  });
}

}  // namespace tessera
