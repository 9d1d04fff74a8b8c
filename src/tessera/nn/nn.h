// Everything of nn/.
#pragma once

#include "tessera/nn/init.h"
#include "tessera/nn/layers.h"
#include "tessera/nn/module.h"
#include "tessera/nn/sequential.h"
