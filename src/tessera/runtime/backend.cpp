#include "tessera/runtime/backend.h"

namespace tessera {

Memory::~Memory() {
  if (!foreign) backend->release(*this);
}

}  // namespace tessera
