#include "indexpool/reports/html_sections.hpp"

namespace indexpool::reports {

// System fonts and nothing fetched. Colours are variables: light, dark and print differ in them
// only. No '<' or '&' in here, so that the page stays well-formed XML.
std::string_view style_sheet() {
  return R"css(:root {
  color-scheme: light dark;
  --page: #f6f7f9; --card: #ffffff; --ink: #1b1f24; --soft: #59636e; --line: #d9dee4;
  --accent: #2f5fd0; --code: #f0f2f5;
  --good: #1a7f4b; --good-soft: #e3f5ea; --bad: #c4302b; --bad-soft: #fdeae8;
  --warn: #935d00; --warn-soft: #fdf3d7; --idle: #6a737d; --idle-soft: #eceff2;
  --s1: #2f5fd0; --s2: #c2570c; --s3: #1a7f4b; --s4: #8a3ffc; --s5: #b5266e; --s6: #0b7a8a;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #0f1318; --card: #171c23; --ink: #e6eaef; --soft: #9aa5b1; --line: #2c343d;
    --accent: #86a8ff; --code: #1f262f;
    --good: #57d38c; --good-soft: #12301f; --bad: #ff8078; --bad-soft: #3a1816;
    --warn: #f0c04f; --warn-soft: #352808; --idle: #98a2ad; --idle-soft: #262d35;
    --s1: #86a8ff; --s2: #ff9f5a; --s3: #57d38c; --s4: #c39bff; --s5: #ff86bb; --s6: #5fd0e0;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif; }
main { max-width: 1180px; margin: 0 auto; padding: 24px 20px 64px; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px;
  padding: 16px 22px 18px; margin: 0 0 16px; }
h1 { font-size: 15px; font-weight: 600; color: var(--soft); margin: 0; }
h2 { font-size: 17px; font-weight: 650; margin: 0 0 8px; }
h3 { font-size: 15px; font-weight: 600; margin: 4px 0 2px; }
p { margin: 4px 0 10px; max-width: 110ch; }
p.note, .note { color: var(--soft); font-size: 13.5px; }
code, pre { font-family: ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: 13px; }
pre { background: var(--code); border-radius: 8px; padding: 10px 14px; margin: 6px 0;
  white-space: pre-wrap; overflow-wrap: anywhere; }
.verdict { display: flex; gap: 18px; align-items: center; border-width: 0 0 0 8px; }
.verdict .mark { flex: none; font-size: 34px; line-height: 64px; width: 64px; text-align: center;
  border-radius: 50%; font-weight: 700; }
.verdict .word { font-size: 32px; line-height: 1.15; font-weight: 700; margin: 2px 0 2px; }
.verdict p { margin: 0; }
.verdict .counts { margin-left: auto; max-width: 40%; display: flex; flex-wrap: wrap; gap: 8px;
  justify-content: flex-end; }
.verdict.passed { border-color: var(--good); } .verdict.passed .word { color: var(--good); }
.verdict.failed, .verdict.error { border-color: var(--bad); }
.verdict.failed .word, .verdict.error .word { color: var(--bad); }
.verdict.untrusted, .verdict.marginal { border-color: var(--warn); }
.verdict.untrusted .word, .verdict.marginal .word { color: var(--warn); }
.verdict.skipped, .verdict.unsupported { border-color: var(--idle); }
.badge, .mark { background: var(--idle-soft); color: var(--idle); }
.badge { display: inline-block; border-radius: 999px; padding: 1px 10px; font-size: 13px;
  font-weight: 600; white-space: nowrap; }
.badge.passed, .mark.passed { background: var(--good-soft); color: var(--good); }
.badge.failed, .badge.error, .mark.failed, .mark.error { background: var(--bad-soft); color: var(--bad); }
.badge.untrusted, .badge.marginal, .mark.untrusted, .mark.marginal {
  background: var(--warn-soft); color: var(--warn); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 14px; }
th { text-align: left; font-weight: 600; color: var(--soft); font-size: 12.5px; white-space: nowrap; }
th, td { padding: 5px 14px 5px 0; border-bottom: 1px solid var(--line); vertical-align: middle; }
tbody tr:last-child td { border-bottom: 0; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.absent { color: var(--soft); }
.facts { display: flex; flex-wrap: wrap; gap: 10px 36px; margin: 4px 0 12px; }
.fact .value { font-size: 22px; font-weight: 650; font-variant-numeric: tabular-nums;
  line-height: 1.25; }
.fact .label { color: var(--soft); font-size: 13px; }
.problem { border-top: 1px solid var(--line); padding: 10px 0; }
.problem p { margin: 4px 0; overflow-wrap: anywhere; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(440px, 1fr)); gap: 18px; }
figure { margin: 0; }
#records table { font-size: 13px; } #records th, #records td { padding-right: 9px; }
details { margin: 6px 0; } summary { cursor: pointer; color: var(--accent); font-size: 14px; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 6px 16px; margin: 6px 0; }
dt { font-weight: 600; } dd { margin: 0; }
svg.plot { width: 100%; height: auto; display: block; }
svg text { font-size: 12px; font-family: inherit; } svg text:where(:not([fill])) { fill: var(--ink); }
svg .tick, svg .row-label { fill: var(--soft); } svg .row-op { font-weight: 600; }
svg .grid { stroke: var(--line); stroke-width: 1; }
svg .bound { stroke: var(--bad); stroke-width: 1.5; } svg .bound-label { fill: var(--bad); font-weight: 600; }
svg .beyond { fill: var(--bad-soft); opacity: .6; }
svg .mark { fill: var(--idle); fill-opacity: .75; stroke: var(--card); stroke-width: 1; }
svg .mark.passed { fill: var(--good); } svg .mark.failed, svg .mark.error { fill: var(--bad); }
svg .mark.untrusted, svg .mark.marginal { fill: var(--warn); }
svg .line { fill: none; stroke-width: 2; } svg .band { opacity: .16; } svg .dot { stroke: var(--card); }
svg .line.s1 { stroke: var(--s1); } svg .line.s2 { stroke: var(--s2); } svg .line.s3 { stroke: var(--s3); }
svg .line.s4 { stroke: var(--s4); } svg .line.s5 { stroke: var(--s5); } svg .line.s6 { stroke: var(--s6); }
svg .band.s1, svg .dot.s1, svg .series.s1 { fill: var(--s1); }
svg .band.s2, svg .dot.s2, svg .series.s2 { fill: var(--s2); }
svg .band.s3, svg .dot.s3, svg .series.s3 { fill: var(--s3); }
svg .band.s4, svg .dot.s4, svg .series.s4 { fill: var(--s4); }
svg .band.s5, svg .dot.s5, svg .series.s5 { fill: var(--s5); }
svg .band.s6, svg .dot.s6, svg .series.s6 { fill: var(--s6); }
svg .ring { fill: none; stroke-width: 1; opacity: .5; } svg .dot { stroke-width: .6; }
svg .ring.s1 { stroke: var(--s1); } svg .ring.s2 { stroke: var(--s2); } svg .ring.s3 { stroke: var(--s3); }
svg .ring.s4 { stroke: var(--s4); } svg .ring.s5 { stroke: var(--s5); } svg .ring.s6 { stroke: var(--s6); }
svg .ring.wide { stroke-width: 2; opacity: 1; } svg .ceiling { stroke: var(--soft); stroke-width: 1.5; }
svg text.series { paint-order: stroke; stroke: var(--card); stroke-width: 3px; }
svg .near { fill: var(--good-soft); } svg .ideal { stroke: var(--good); stroke-width: 1; }
svg .key { fill: var(--soft); } svg .key.hollow { fill: none; stroke: var(--soft); }
svg.bar { width: 180px; height: 18px; display: block; } svg.bar .band { opacity: .45; }
.pipeline svg { width: 100%; height: auto; max-height: 420px; display: block; margin: 0 auto; }
.pipeline svg text { font-size: 12px; } .pipeline svg .edge text { font-size: 10px; }
.pipeline svg .edge text:where(:not([fill])), .pipeline svg > g > text:where(:not([fill])) { fill: var(--soft); }
.hierarchy svg { max-height: none; } .hierarchy svg .edge text { font-size: 11px; }
.pipeline svg .node path, .pipeline svg .node polygon { stroke: var(--line); }
.pipeline svg .node.solid text { fill: #1b1f24; }
@media (max-width: 720px) {
  .verdict { flex-wrap: wrap; } .verdict .counts { margin-left: 0; }
  .plots { grid-template-columns: 1fr; }
}
@media print {
  :root { --page: #ffffff; --card: #ffffff; --ink: #000000; --soft: #444444; --line: #bbbbbb; }
  body { font-size: 11px; } main { max-width: none; padding: 0; }
  section { border-radius: 0; padding: 8px 10px; } .verdict { break-inside: avoid; }
  tr, figure, .problem { break-inside: avoid; } summary { display: none; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
)css";
}

}  // namespace indexpool::reports
