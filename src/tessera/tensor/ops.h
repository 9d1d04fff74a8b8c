// The maths on Tensors: errors name the op and both shapes when the expression is built.
#pragma once

#include "tessera/tensor/creation.h"
#include "tessera/tensor/elementwise.h"
#include "tessera/tensor/indexing.h"
#include "tessera/tensor/linalg.h"
#include "tessera/tensor/network.h"
#include "tessera/tensor/order.h"
#include "tessera/tensor/reduce.h"
#include "tessera/tensor/structure.h"
