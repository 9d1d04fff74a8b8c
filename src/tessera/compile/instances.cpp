#include "tessera/compile/instances.h"

namespace tessera {

Stored stored(const Instance& x, int out) {
  if (!x.stored.empty()) return x.stored[size_t(out)];
  const Shape& shape = x.types[size_t(out)].shape;
  return {out, contiguous_view(shape), numel(shape)};
}

void store(Instance& x, int out, const Stored& where) {
  if (x.stored.empty()) {
    std::vector<Stored> all;
    for (size_t i = 0; i < x.types.size(); ++i) all.push_back(stored(x, int(i)));
    x.stored = std::move(all);
  }
  x.stored[size_t(out)] = where;
}

}  // namespace tessera
