// The same work by one thread and by four.
#pragma once

#include <functional>

namespace tessera::test {

// Runs `work` in the calling thread alone, although the pool has more.
void run_alone(const std::function<void()>& work);

}  // namespace tessera::test
