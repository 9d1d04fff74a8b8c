#include "tessera/tensor/tensor.h"

#include "tessera/tensor/device.h"
#include "tessera/tensor/eval.h"
#include "tessera/tensor/storage.h"

namespace tessera {

void Scalar::check_fits(DType dtype) const {
  if (is_float(dtype)) return;
  const int64_t value =
      is_integer_ ? integer_ : scalar_as_int(DType::i64, scalar_bits(DType::i64, real_));
  const bool whole = is_integer_ || double(value) == real_;
  if (!whole || int64_t(scalar_bits(dtype, value)) != value) {
    fail("literal: ", is_integer_ ? cat(integer_) : cat(real_), " does not fit ", dtype);
  }
}

namespace {

Tensor on_device(DeviceContext& device, const Type& type, const void* data) {
  auto storage = make_storage(type, device);
  const int64_t bytes = byte_size(type);
  const HostSpan span(Profile::Kind::transfer, "upload", bytes);
  if (bytes > 0) device.backend.upload(ref(storage->buffer), data, bytes, {});
  return Tensor(leaf_of(type, std::move(storage)));
}

}  // namespace

Tensor Tensor::from_bytes(DType dtype, const Shape& shape, const void* data) {
  const Type type{dtype, shape};
  return on_device(device_context(default_device()), type, data);
}

const Value& Tensor::value() const {
  if (!value_) fail("Tensor: expected a tensor, got an empty handle");
  return value_;
}

void Tensor::compute_now() const {
  if (!value_ || pending().tracing) return;
  // What is made of literals alone waits for the device of its neighbours.
  bool has_data = value_.node->op == Op::uniform;
  for (const Value& input : value_.node->inputs()) has_data |= value_slot(input) != nullptr;
  if (has_data) evaluate_alone(value_);
}

int64_t Tensor::size(int64_t axis) const { return shape()[normalize_axis("size", axis, rank())]; }

const Tensor& Tensor::eval() const {
  const Value& v = value();
  evaluate(std::span(&v, 1));
  return *this;
}

void Tensor::read_bytes(DType dtype_, void* to) const {
  if (dtype_ != dtype()) fail("to_vector: the tensor holds ", dtype(), ", not ", dtype_);
  eval();
  const auto slot = value_slot(value_);
  const Buffer& buffer = read_slot(*slot);
  const int64_t bytes = byte_size(value_.type());
  const HostSpan span(Profile::Kind::transfer, "download", bytes);
  if (bytes > 0) slot->storage->device->backend.download(to, ref(buffer), bytes, {});
}

double Tensor::item() const {
  if (numel() != 1) fail("item: expected a tensor of one element, got ", shape());
  return visit(dtype(), [this]<class T>() {
    T element{};
    read_bytes(dtype(), &element);
    return double(element);
  });
}

Tensor::operator bool() const {
  if (numel() != 1) {
    fail("a condition: expected a tensor of one element, got ", shape(), ": use any() or all()");
  }
  return item() != 0;
}

Tensor Tensor::detach() const {
  eval();
  const Type& type = value_.type();
  const auto slot = value_slot(value_);
  const Buffer& from = read_slot(*slot);
  DeviceContext& device = *slot->storage->device;
  auto storage = make_storage(type, device);
  const HostSpan span(Profile::Kind::transfer, "copy", 2 * byte_size(type));
  device.backend.copy(ref(storage->buffer), ref(from), byte_size(type), {});
  return Tensor(leaf_of(type, std::move(storage)));
}

Device Tensor::device() const { return device_of(std::span(&value(), 1)).device; }

Tensor Tensor::to(Device device) const {
  DeviceContext& target = device_context(device);
  if (this->device() == device) return *this;
  std::vector<std::byte> bytes(size_t(byte_size(value_.type())));
  read_bytes(dtype(), bytes.data());
  return on_device(target, value_.type(), bytes.data());
}

void eval(std::span<const Tensor> tensors) {
  std::vector<Value> values;
  for (const Tensor& tensor : tensors) values.push_back(tensor.value());
  evaluate(values);
}

}  // namespace tessera
