// attention of few queries, as in generating text one token at a time: the keys are read once, as
// rows, and the scores of all of them fit beside.
#pragma once

#include "tessera/backend/cpu/kernels/attention.h"

namespace tessera::cpu {

template <class T>
bool has_few_queries(const AttentionCall& call, const AttentionTools<T>& tools);

// REQUIRES has_few_queries.
template <class T>
void attend_few(const AttentionCall& call, const AttentionTools<T>& tools,
                std::span<char* const> at);

}  // namespace tessera::cpu
