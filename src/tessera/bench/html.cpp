#include "tessera/bench/html.h"

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/bench/format.h"
#include "tessera/bench/svg.h"
#include "tessera/bench/text.h"

namespace tessera::bench {

namespace {

constexpr const char* kStyle = R"(
:root { color-scheme: light dark; --ink: #1c1e21; --paper: #ffffff; --line: #d9dce1; --soft: #667;
  --plain: #a7adb8; --library: #d98f2b; --bytes: #7d6bb0; --own: #2a78b8; --gpu: #2f9e5b;
  --bad: #c0392b; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e8eb; --paper: #16181c; --line: #383c44; --soft: #9aa2b0; --plain: #6b7280;
    --library: #e0a352; --bytes: #9f8fd0; --own: #5aa5e0; --gpu: #57c785; --bad: #ff7a6b; } }
body { font: 15px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { border-bottom: 1px solid var(--line); padding: .25rem .5rem; text-align: right; }
th:first-child, td:first-child, .words td { text-align: left; }
.scroll { overflow-x: auto; } .soft { color: var(--soft); } .bad { color: var(--bad); }
svg { max-width: 100%; height: auto; } svg text { fill: var(--ink); font-size: 12px; }
.plain { fill: var(--plain); } .library { fill: var(--library); } .bytes { fill: var(--bytes); }
.own { fill: var(--own); } .gpu { fill: var(--gpu); }
polyline { fill: none; stroke-width: 1.5; } polyline.grid { stroke: var(--line); }
polyline.own { stroke: var(--own); fill: none; } polyline.library { stroke: var(--library); fill: none; }
)";

std::string css_class_of(const std::string& column) {
  if (is_yardstick(column)) return column;
  return column.starts_with("cpu") ? "own" : "gpu";
}

std::string cell_html(const Line& line, const std::string& column, const Results& results) {
  const Measurement* cell = line.find(column);
  if (cell == nullptr) return element("td", absence_text(results, column), "soft");
  const Summary& time = cell->time;
  const std::optional<Relation> share = line.share(results.limits, *cell);
  const std::string of_limit =
      share ? cat(", ", percent_text(share->value), " of ", share->to) : "";
  const std::string tooltip =
      cat(cell->by, cell->by.empty() ? "" : ", ", rate_text(line.rate(*cell), line.unit), of_limit,
          ", spread ", percent_text(time.spread()), ", least ", time_text(time.least), ", ",
          time.samples, " samples of ", time.batch, " runs");
  return cat("<td title=\"", escape(tooltip), "\">", escape(time_text(time.median)),
             time.is_noisy() ? " ~" : "", "</td>");
}

std::string row_html(const Line& line, const std::vector<std::string>& columns,
                     const Results& results) {
  std::string html = "<tr>" + element("td", line.name);
  if (line.no_device) {
    return cat(html, "<td class=\"soft\" colspan=\"", columns.size() + 3,
               "\">no device</td></tr>\n");
  }
  if (!line.passed()) {
    return cat(html, "<td class=\"bad\" colspan=\"", columns.size() + 3,
               "\">wrong: ", escape(wrong_text(line)), "</td></tr>\n");
  }
  for (const std::string& column : columns) html += cell_html(line, column, results);
  const Measurement* own = line.subject();
  const std::optional<Relation> ratio = line.ratio(), share = line.share(results.limits);
  return cat(html, element("td", own == nullptr ? "—" : rate_text(line.rate(*own), line.unit)),
             element("td", ratio ? three_digits(ratio->value) : "—"),
             element("td", share ? percent_text(share->value) : "—"), "</tr>\n");
}

std::string chart_html(const std::string& suite, const std::vector<const Line*>& lines) {
  std::vector<BarGroup> groups;
  for (const Line* line : lines) {
    BarGroup group{line->name, {}};
    for (const Measurement& cell : line->cells) {
      const double rate = line->rate(cell);
      group.bars.push_back(
          {css_class_of(cell.column),
           cat(rate_text(rate, line->unit), " ", cell.by.empty() ? title_of(cell.column) : cell.by),
           rate});
    }
    if (!group.bars.empty()) groups.push_back(std::move(group));
  }
  return cat("<div class=\"scroll\">", bar_chart(suite + ": rates, longer is faster", groups),
             "</div>\n");
}

std::string suite_html(const std::string& suite, const Results& results) {
  const std::vector<std::string> columns = columns_of(suite, results.devices);
  std::string html = element("h2", suite) + "\n<div class=\"scroll\"><table><tr><th>line</th>";
  for (const std::string& column : columns) html += element("th", title_of(column));
  html += "<th>rate</th><th>ratio</th><th>share</th></tr>\n";
  std::vector<const Line*> lines;
  for (const Line& line : results.lines) {
    if (line.suite != suite) continue;
    html += row_html(line, columns, results);
    lines.push_back(&line);
  }
  return cat(html, "</table></div>\n", chart_html(suite, lines));
}

std::string claims_html(const std::vector<Claim>& claims) {
  std::string html =
      "<h2>The claims of the field, measured</h2>\n<div class=\"scroll\"><table class=\"words\">"
      "<tr><th>claim</th><th>measured</th><th>verdict</th></tr>\n";
  for (const Claim& claim : claims) {
    html += cat(
        "<tr>", element("td", claim.statement), element("td", claim.measured),
        element("td", name(claim.verdict), claim.verdict == Verdict::does_not_hold ? "bad" : ""),
        "</tr>\n");
  }
  return html + "</table></div>\n";
}

}  // namespace

std::string element(std::string_view tag, std::string_view text, std::string_view css_class) {
  const std::string attribute = css_class.empty() ? "" : cat(" class=\"", css_class, "\"");
  return cat("<", tag, attribute, ">", escape(text), "</", tag, ">");
}

std::string page(std::string_view title, std::string_view body) {
  return cat(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n",
      element("title", title), "\n<style>", kStyle, "</style>\n</head>\n<body>\n",
      element("h1", title), "\n", body, "\n</body>\n</html>\n");
}

std::string to_html(const Results& results) {
  std::string html = cat(element("pre", machine_text(results) + limits_text(results.limits)), "\n");
  for (const std::string& suite : results.suites()) html += suite_html(suite, results);
  if (!results.claims.empty()) html += claims_html(results.claims);
  return page("tessera bench", cat(html, element("pre", footer_text(results), "soft")));
}

}  // namespace tessera::bench
