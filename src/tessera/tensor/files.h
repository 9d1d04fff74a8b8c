// Tensors in files: NumPy's .npy, one tensor each, and safetensors, many by name.
//
// Loading puts tensors on the default device. On the CPU nothing is copied where the bytes are
// aligned to their element: the tensor uses the mapped file, whose pages are read when first
// touched, and which stays mapped as long as a tensor uses it. detach() makes a copy that does not.
//
// Hazard: a mapped tensor shows the file. Files that are replaced by rename, as saving does here,
// are safe, also when a tensor is saved to where it came from; a program that writes into the file
// itself changes the tensor, and one that shortens it kills the process.
//
// Every error names the file; io/npy.h and io/safetensors.h say what is refused.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tessera/tensor/tensor.h"

namespace tessera {

// An array in Fortran order comes with the shape it has in NumPy.
Tensor load_npy(const std::filesystem::path& path);
// Evaluates the tensor and replaces the file atomically. bf16 is refused: NumPy has no such type.
void save_npy(const std::filesystem::path& path, const Tensor& tensor);

// Tensors by name. at() throws an Error with the names there are.
class NamedTensors : public std::map<std::string, Tensor> {
 public:
  using map::map;
  const Tensor& at(const std::string& name) const;
};
using FileMetadata = std::map<std::string, std::string>;

NamedTensors load_safetensors(const std::filesystem::path& path);
// Only those; throws when the file lacks one.
NamedTensors load_safetensors(const std::filesystem::path& path,
                              const std::vector<std::string>& names);

struct TensorsWithMetadata {
  NamedTensors tensors;
  FileMetadata metadata;
};
TensorsWithMetadata load_safetensors_with_metadata(const std::filesystem::path& path);

// Evaluates the tensors together and replaces the file atomically. What HuggingFace's libraries
// read as PyTorch's has the metadata {"format", "pt"}.
void save_safetensors(const std::filesystem::path& path, const NamedTensors& tensors,
                      const FileMetadata& metadata = {});

}  // namespace tessera
