#include "tessera/nn/sequential.h"

namespace tessera {

namespace {

class FunctionLayer : public Layer {
 public:
  FunctionLayer(std::string name, std::function<Tensor(const Tensor&)> function)
      : Layer(std::move(name)), function_(std::move(function)) {}

 private:
  Tensor forward(const Tensor& x) const override { return function_(x); }

  std::function<Tensor(const Tensor&)> function_;
};

}  // namespace

void Sequential::add(std::string name, std::function<Tensor(const Tensor&)> function) {
  append(std::make_unique<FunctionLayer>(std::move(name), std::move(function)));
}

void Sequential::append(std::unique_ptr<Layer> layer) {
  add_module(*layer);
  layers_.push_back(std::move(layer));
}

Tensor Sequential::forward(const Tensor& x) const {
  Tensor y = x;
  for (const auto& layer : layers_) y = (*layer)(y);
  return y;
}

}  // namespace tessera
