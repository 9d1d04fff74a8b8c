// Everything a user of the library includes. Call tessera::init() once before anything else.
#pragma once

#include "tessera/base/precision.h"
#include "tessera/data/batch_loader.h"
#include "tessera/data/bpe_trainer.h"
#include "tessera/data/character_trainer.h"
#include "tessera/data/text_files.h"
#include "tessera/data/token_data.h"
#include "tessera/data/tokenizer.h"
#include "tessera/data/tokenizer_file.h"
#include "tessera/infer/generator.h"
#include "tessera/infer/text_stream.h"
#include "tessera/models/gpt.h"
#include "tessera/nn/nn.h"
#include "tessera/optim/optim.h"
#include "tessera/tensor/autograd.h"
#include "tessera/tensor/compiled.h"
#include "tessera/tensor/custom_op.h"
#include "tessera/tensor/device.h"
#include "tessera/tensor/eager.h"
#include "tessera/tensor/files.h"
#include "tessera/tensor/ops.h"
#include "tessera/tensor/profile.h"
#include "tessera/tensor/random.h"
#include "tessera/tensor/stats.h"
#include "tessera/tensor/tensor.h"
#include "tessera/tensor/var.h"

namespace tessera {

// Registers the backends this library was built with. May be called again.
void init();

const char* version();

}  // namespace tessera
