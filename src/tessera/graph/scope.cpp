#include "tessera/graph/scope.h"

#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace tessera {

namespace {

struct Entry {
  std::string path, location;
};

struct Table {
  std::mutex mutex;
  std::vector<Entry> entries = {{}};
  std::map<std::pair<std::string, std::string>, uint32_t> ids;
};

Table& table() {
  static Table instance;
  return instance;
}

thread_local uint32_t t_scope = 0;
thread_local SourceLine t_line;

std::string_view file_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

Scope::Scope(std::string_view name, std::source_location where) : previous_(t_scope) {
  std::string path = scope_path(previous_);
  if (!path.empty()) path += '/';
  path += name;
  std::string location(file_name(where.file_name()));
  location += ':' + std::to_string(where.line());
  Table& t = table();
  const std::lock_guard lock(t.mutex);
  const auto [it, added] =
      t.ids.try_emplace({path, location}, static_cast<uint32_t>(t.entries.size()));
  if (added) t.entries.push_back({path, location});
  t_scope = it->second;
}

Scope::~Scope() { t_scope = previous_; }

uint32_t current_scope() { return t_scope; }
SourceLine current_line() { return t_line; }
void set_current_line(SourceLine line) { t_line = line; }

OriginGuard::OriginGuard(uint32_t scope, SourceLine line)
    : scope_(std::exchange(t_scope, scope)), line_(std::exchange(t_line, line)) {}

OriginGuard::~OriginGuard() {
  t_scope = scope_;
  t_line = line_;
}

std::string origin(uint32_t scope, SourceLine line) {
  const std::string place =
      line.file != nullptr ? cat(file_name(line.file), ':', line.line) : scope_location(scope);
  if (scope != 0) return cat(" (in ", scope_path(scope), ", ", place, ")");
  return place.empty() ? "" : cat(" (", place, ")");
}

std::string scope_path(uint32_t scope) {
  const std::lock_guard lock(table().mutex);
  return table().entries[scope].path;
}

std::string scope_location(uint32_t scope) {
  const std::lock_guard lock(table().mutex);
  return table().entries[scope].location;
}

}  // namespace tessera
