// The same work by one thread and by four.
#pragma once

#include <functional>
#include <string>

namespace tessera::test {

// Runs `work` in the calling thread alone, although the pool has more.
void run_alone(const std::function<void()>& work);

// A death test: processes of one, two and seven threads find what this one's four do. The test
// must do nothing before.
void expect_equal_in_processes(const std::function<std::string()>& digest);

}  // namespace tessera::test
