#include <iomanip>
#include <ostream>
#include <sstream>

#include "tessera/cli/command.h"
#include "tessera/io/json.h"
#include "tessera/runtime/binary_cache.h"

namespace tessera::cli {

namespace {

constexpr Option kOptions[] = {
    {"--json", "", "the result as a JSON document"},
};

constexpr std::string_view kExamples[] = {
    "tessera cache info",
    "tessera cache info --json",
    "tessera cache clear",
};

std::string topics() {
  return cat("actions:\n", help_line("info", "folder, number, bytes and age of what is kept"),
             help_line("clear", "remove it; kernels are compiled again when next used"));
}

std::string mib(int64_t bytes) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(1) << double(bytes) / double(1 << 20) << " MiB";
  return out.str();
}

// "2026-03-01T12:00:00Z"
std::string time_text(std::time_t time) {
  std::tm parts = {};
  ::gmtime_r(&time, &parts);
  std::ostringstream out;
  out << std::put_time(&parts, "%Y-%m-%dT%H:%M:%SZ");
  return out.str();
}

std::string line(std::string label, const std::string& text) {
  label.resize(12, ' ');
  return cat(label, text, "\n");
}

std::string info_text(const CacheInfo& info) {
  if (info.folder.empty()) return line("folder", "none: the cache is off");
  std::string text = line("folder", info.folder) + line("binaries", cat(info.entries)) +
                     line("size", cat(mib(info.bytes), " of at most ", mib(info.max_bytes)));
  if (info.oldest) text += line("oldest use", time_text(*info.oldest));
  if (info.newest) text += line("newest use", time_text(*info.newest));
  return text;
}

std::string info_json(const CacheInfo& info) {
  const auto time = [](const auto& t) { return t ? Json(time_text(*t)) : Json(); };
  return Json()
             .set("folder", info.folder.empty() ? Json() : Json(info.folder))
             .set("entries", info.entries)
             .set("bytes", info.bytes)
             .set("max_bytes", info.max_bytes)
             .set("oldest", time(info.oldest))
             .set("newest", time(info.newest))
             .dump(2) +
         "\n";
}

Status run_cache(const Arguments& arguments, Console& console) {
  const std::string action = arguments.words.empty() ? "nothing" : arguments.words[0];
  if (arguments.words.size() > 1) {
    throw UsageError(cat("cache: expected one action, got also '", arguments.words[1], "'"));
  }
  BinaryCache& cache = binary_cache();
  const bool json = arguments.has("--json");
  if (action == "info") {
    console.out << (json ? info_json(cache.info()) : info_text(cache.info()));
  } else if (action == "clear") {
    const int64_t freed = cache.clear();
    console.out << (json ? Json().set("freed_bytes", freed).dump(2) + "\n"
                         : cat("freed ", mib(freed), "\n"));
  } else {
    throw UsageError(cat("cache: expected info or clear, got ", action));
  }
  return Status::done;
}

}  // namespace

constexpr Command kCache = {"cache",   "show or clear the compiled kernels that are kept on disk",
                            "ACTION",  kOptions,
                            kExamples, topics,
                            run_cache};

}  // namespace tessera::cli
