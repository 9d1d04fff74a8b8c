// Everything of nn/.
#pragma once

#include "tessera/nn/attention.h"
#include "tessera/nn/feed_forward.h"
#include "tessera/nn/init.h"
#include "tessera/nn/layers.h"
#include "tessera/nn/module.h"
#include "tessera/nn/sequential.h"
#include "tessera/nn/summary.h"
