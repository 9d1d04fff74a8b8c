// Everything of optim/.
#pragma once

#include "tessera/optim/adamw.h"
#include "tessera/optim/clip.h"
#include "tessera/optim/optimizer.h"
#include "tessera/optim/schedule.h"
#include "tessera/optim/sgd.h"
