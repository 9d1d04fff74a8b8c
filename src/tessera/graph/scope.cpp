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

std::string scope_path(uint32_t scope) {
  const std::lock_guard lock(table().mutex);
  return table().entries[scope].path;
}

std::string scope_location(uint32_t scope) {
  const std::lock_guard lock(table().mutex);
  return table().entries[scope].location;
}

}  // namespace tessera
