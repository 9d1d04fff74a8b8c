// Sequential: layers one after another, owned.
//
//   Sequential model("model");
//   model.add<Linear>("fc1", 2, 64, random);
//   model.add("relu", relu);
//   model.add<Linear>("fc2", 64, 2, random);
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tessera/nn/module.h"

namespace tessera {

class Sequential : public Layer {
 public:
  explicit Sequential(std::string name) : Layer(std::move(name)) {}

  template <std::derived_from<Layer> L, class... Args>
  L& add(Args&&... args) {
    auto layer = std::make_unique<L>(std::forward<Args>(args)...);
    L& reference = *layer;
    append(std::move(layer));
    return reference;
  }

  // A function without parameters, such as an activation.
  void add(std::string name, std::function<Tensor(const Tensor&)> function);

 private:
  void append(std::unique_ptr<Layer> layer);
  Tensor forward(const Tensor& x) const override;

  std::vector<std::unique_ptr<Layer>> layers_;
};

}  // namespace tessera
