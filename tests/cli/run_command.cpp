#include "cli/run_command.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "io/temp_folder.h"
#include "tessera/base/error.h"

namespace tessera {

namespace {

std::vector<char*> pointers(Words& words) {
  std::vector<char*> result;
  for (std::string& word : words) result.push_back(word.data());
  result.push_back(nullptr);
  return result;
}

std::string name_of(const std::string& setting) { return setting.substr(0, setting.find('=')); }

Environment merged(const Environment& changes) {
  Environment result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    bool kept = true;
    for (const std::string& change : changes) kept = kept && name_of(change) != name_of(*entry);
    if (kept) result.emplace_back(*entry);
  }
  for (const std::string& change : changes) {
    if (change.find('=') != std::string::npos) result.push_back(change);
  }
  return result;
}

// In the child nothing but system calls is safe, so `redirect` may do nothing else.
template <class F>
pid_t start(const Words& arguments, const Environment& environment, F&& redirect) {
  Words words = arguments, settings = merged(environment);
  words.insert(words.begin(), TESSERA_COMMAND);
  const std::vector<char*> argv = pointers(words), envp = pointers(settings);
  const pid_t child = ::fork();
  TESSERA_ASSERT(child >= 0);
  if (child != 0) return child;
  if (redirect()) ::execve(argv[0], argv.data(), envp.data());
  ::_exit(127);
}

CommandResult wait_for(pid_t child) {
  int status = 0;
  TESSERA_ASSERT(::waitpid(child, &status, 0) == child);
  CommandResult result;
  if (WIFEXITED(status)) result.status = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  return result;
}

bool send_to(const std::string& path, int descriptor) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  return file >= 0 && ::dup2(file, descriptor) >= 0;
}

}  // namespace

CommandResult run_command(const Words& arguments, const Environment& environment) {
  const TempFolder folder;
  const std::string out = (folder / "out").string(), err = (folder / "err").string();
  CommandResult result = wait_for(start(arguments, environment, [&] {
    return send_to(out, STDOUT_FILENO) && send_to(err, STDERR_FILENO);
  }));
  result.out = read_text(out);
  result.err = read_text(err);
  return result;
}

CommandResult run_into(const std::string& path, const Words& arguments) {
  const TempFolder folder;
  const std::string err = (folder / "err").string();
  CommandResult result = wait_for(start(
      arguments, {}, [&] { return send_to(path, STDOUT_FILENO) && send_to(err, STDERR_FILENO); }));
  result.err = read_text(err);
  return result;
}

CommandResult run_into_closed_pipe(const Words& arguments, bool ignored) {
  const TempFolder folder;
  const std::string err = (folder / "err").string();
  int ends[2];
  TESSERA_ASSERT(::pipe(ends) == 0);
  ::close(ends[0]);
  const pid_t child = start(arguments, {}, [&] {
    return ::signal(SIGPIPE, ignored ? SIG_IGN : SIG_DFL) != SIG_ERR &&
           ::dup2(ends[1], STDOUT_FILENO) >= 0 && send_to(err, STDERR_FILENO);
  });
  ::close(ends[1]);
  CommandResult result = wait_for(child);
  result.err = read_text(err);
  return result;
}

CommandResult run_in_terminal(const Words& arguments, const Environment& environment) {
  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
  TESSERA_ASSERT(terminal >= 0 && ::grantpt(terminal) == 0 && ::unlockpt(terminal) == 0);
  const std::string path = ::ptsname(terminal);
  // Open before the child starts, which keeps it: a terminal that nobody has open cannot be read.
  const int other_side = ::open(path.c_str(), O_RDWR | O_NOCTTY);
  const pid_t child = start(arguments, environment, [&] {
    return ::dup2(other_side, STDOUT_FILENO) >= 0 && ::dup2(other_side, STDERR_FILENO) >= 0;
  });
  ::close(other_side);
  std::string shown;
  char part[4096];
  // The end of a terminal is an error, EIO.
  for (ssize_t n; (n = ::read(terminal, part, sizeof part)) > 0;) shown.append(part, size_t(n));
  CommandResult result = wait_for(child);
  ::close(terminal);
  result.out = shown;
  return result;
}

}  // namespace tessera
