#include "cli/run_command.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/temp_folder.h"
#include "tessera/base/error.h"

namespace tessera {

namespace {

// In the child, where nothing but system calls is safe.
void redirect(const char* path, int descriptor) {
  const int file = ::open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (file < 0 || ::dup2(file, descriptor) < 0) ::_exit(127);
}

}  // namespace

CommandResult run_command(const std::vector<std::string>& arguments,
                          const std::string& stdout_path) {
  const TempFolder folder;
  const std::string out = stdout_path.empty() ? (folder / "out").string() : stdout_path;
  const std::string err = (folder / "err").string();
  std::string command = TESSERA_COMMAND;
  std::vector<std::string> copies = arguments;
  std::vector<char*> words = {command.data()};
  for (std::string& argument : copies) words.push_back(argument.data());
  words.push_back(nullptr);

  const pid_t child = ::fork();
  TESSERA_ASSERT(child >= 0);
  if (child == 0) {
    redirect(out.c_str(), STDOUT_FILENO);
    redirect(err.c_str(), STDERR_FILENO);
    ::execv(words[0], words.data());
    ::_exit(127);
  }
  int status = 0;
  TESSERA_ASSERT(::waitpid(child, &status, 0) == child);
  CommandResult result;
  if (WIFEXITED(status)) result.status = WEXITSTATUS(status);
  if (stdout_path.empty()) result.out = read_text(out);
  result.err = read_text(err);
  return result;
}

}  // namespace tessera
