// Everything of optim/.
#pragma once

#include "tessera/optim/accumulator.h"
#include "tessera/optim/adam.h"
#include "tessera/optim/clip.h"
#include "tessera/optim/ema.h"
#include "tessera/optim/loss_scaler.h"
#include "tessera/optim/optimizer.h"
#include "tessera/optim/rmsprop.h"
#include "tessera/optim/schedule.h"
#include "tessera/optim/sgd.h"
