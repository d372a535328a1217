// The style sheet of the report page.
#pragma once

#include <string_view>

namespace pawl::drill {

// The content of <style>. All text has a contrast of at least 4.5 : 1 with its background, in light
// and in dark mode.
inline constexpr std::string_view kPageStyle = R"(
:root {
  color-scheme: light dark;
  --page: #fff; --card: #f5f6f8; --ink: #1b1f24; --soft: #565e68; --line: #d3d8de; --grid: #e9ecef;
  --good: #116329; --good-page: #e3f5e7; --bad: #b3121d; --bad-page: #fdeaea; --on-bad: #fff; --warn: #8a4b00; --warn-page: #ffecd1;
  --hatch: #7b848e;
  --a0: #1f5fbf; --a1: #a8480a; --a2: #6b3fa0; --a3: #0b6e6e; --a4: #8a1f66; --a5: #4d5a00; --on-worker: #fff;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #14171b; --card: #1e2329; --ink: #e8ebee; --soft: #a5aeb8; --line: #3b434c; --grid: #262c33;
    --good: #6fdc8c; --good-page: #12301b; --bad: #ff8389; --bad-page: #3d1216; --on-bad: #2b0004; --warn: #ffbf66; --warn-page: #3d2a0a;
    --hatch: #8b95a0;
    --a0: #7db4ff; --a1: #ffab6b; --a2: #cbaaff; --a3: #5fd4d4; --a4: #ff9ed8; --a5: #cbd96b; --on-worker: #10131a;
  }
}
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem 1rem 3rem; max-width: 68rem; background: var(--page); color: var(--ink);
  font: 16px/1.5 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }
h1 { font-size: 1.15rem; margin: 0 0 .75rem; font-weight: 600; }
h2 { font-size: 1.15rem; margin: 2.2rem 0 .6rem; }
code { font: .92em ui-monospace, "DejaVu Sans Mono", monospace; overflow-wrap: anywhere; }
.verdict { border: 2px solid var(--good); background: var(--good-page); border-radius: 10px; padding: 1rem 1.2rem; }
.verdict.failed { border-color: var(--bad); background: var(--bad-page); }
.verdict p.word { font-size: 1.6rem; line-height: 1.25; font-weight: 700; margin: 0; color: var(--good); }
.verdict.failed p.word { color: var(--bad); }
.verdict ul { margin: .5rem 0 0; padding-left: 1.2rem; }
.figures { display: flex; flex-wrap: wrap; gap: .6rem; margin: 1rem 0 0; }
.figures div { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: .5rem .9rem; flex: 1 1 7.5rem; display: flex; flex-direction: column-reverse; justify-content: flex-end; }
.figures dt { font-size: .82rem; line-height: 1.3; color: var(--soft); }
.figures dd { margin: 0; font-size: 1.5rem; font-weight: 700; font-variant-numeric: tabular-nums; }
.figures .alarm { background: var(--bad); border-color: var(--bad); }
.figures .alarm dt, .figures .alarm dd { color: var(--on-bad); }
p.lead { max-width: 46rem; }
ol.summary { max-width: 50rem; padding: 0; margin: .5rem 0 1rem; list-style: none; counter-reset: step; }
ol.summary li { counter-increment: step; position: relative; padding-left: 2.1rem; margin: .35rem 0; }
ol.summary li::before { content: counter(step); position: absolute; left: 0; top: .1rem; width: 1.45rem; height: 1.45rem; border-radius: 50%;
  background: var(--ink); color: var(--page); font-size: .82rem; font-weight: 700; line-height: 1.45rem; text-align: center; }
ol.summary time { color: var(--soft); font-size: .85rem; white-space: nowrap; }
.scroll { overflow-x: auto; border: 1px solid var(--line); border-radius: 8px; padding: .6rem .4rem; }
svg.defs { position: absolute; }
svg.timeline { display: block; width: 100%; min-width: 46rem; height: auto; }
svg.timeline + svg.timeline { margin-top: .6rem; padding-top: .6rem; border-top: 1px solid var(--line); }
svg text { font: 12px system-ui, "Segoe UI", "DejaVu Sans", sans-serif; fill: var(--ink); text-anchor: middle; }
svg .lane { text-anchor: end; font-weight: 700; font-size: 13px; }
svg .what { text-anchor: end; font-size: 11px; fill: var(--soft); }
svg .tick { font-size: 11px; fill: var(--soft); }
.grid { stroke: var(--grid); } .axis, .rail { stroke: var(--line); fill: none; }
.step path { stroke: var(--soft); stroke-dasharray: 2 3; fill: none; } .step circle { fill: var(--ink); }
svg .number { fill: var(--page); font-weight: 700; }
.worker0 { --c: var(--a0); } .worker1 { --c: var(--a1); } .worker2 { --c: var(--a2); }
.worker3 { --c: var(--a3); } .worker4 { --c: var(--a4); } .worker5 { --c: var(--a5); }
.own rect { fill: var(--c); stroke: var(--page); } svg .own .in { fill: var(--on-worker); font-weight: 600; }
.belief rect { fill: var(--page); fill-opacity: .55; stroke: var(--c); stroke-width: 2; } svg .belief .in { fill: var(--c); font-weight: 600; }
.late rect { stroke: var(--warn); stroke-dasharray: 5 3; fill: var(--warn-page); fill-opacity: .8; } svg .late .in { fill: var(--warn); }
.overlap rect { fill: var(--warn-page); fill-opacity: .75; stroke: var(--warn); stroke-dasharray: 2 2; } svg .overlap .in { fill: var(--warn); font-weight: 600; }
.hatch { stroke: var(--hatch); stroke-width: 2.4; } .fault rect { fill: url(#hatch); stroke: var(--hatch); }
svg .fault .name, svg .belief .in { paint-order: stroke; stroke: var(--page); stroke-width: 5px; stroke-linejoin: round; }
svg .late .in { stroke: var(--warn-page); } svg .fault .name { font-weight: 600; }
.resource { fill: var(--card); } .wall { stroke: var(--ink); stroke-width: 4; } .wall.open { stroke: var(--soft); stroke-width: 2; stroke-dasharray: 3 6; }
.path { stroke: var(--soft); stroke-width: 1.5; } .from { fill: var(--soft); stroke: var(--page); }
.stopped, .stopped .path { stroke: var(--ink); stroke-width: 2; } .bad, .bad .path { stroke: var(--bad); stroke-width: 2.5; }
.stopped .from { fill: var(--ink); } .bad .from { fill: var(--bad); }
svg .fate { font-size: 11px; fill: var(--soft); stroke: none; } svg .fate.stopped { fill: var(--ink); font-weight: 700; } svg .fate.bad { fill: var(--bad); font-weight: 700; }
.admitted circle { fill: var(--good); stroke: var(--page); } .admitted path { stroke: var(--page); stroke-width: 2; fill: none; }
.refused rect { fill: var(--page); stroke: var(--ink); stroke-width: 2; } .refused path { stroke: var(--ink); stroke-width: 2.4; }
.through .sign { fill: var(--bad); stroke: var(--page); } .through path { stroke: var(--on-bad); stroke-width: 2.4; } .through circle { fill: var(--on-bad); }
.withheld circle { fill: var(--page); stroke: var(--ink); stroke-width: 2; stroke-dasharray: 3 2; } .withheld path { stroke: var(--ink); stroke-width: 2.4; }
.unknown circle { fill: var(--warn-page); stroke: var(--warn); stroke-width: 2; } svg .unknown text { fill: var(--warn); font-weight: 700; }
.legend { display: flex; flex-wrap: wrap; gap: .2rem 1.3rem; padding: 0; margin: .7rem 0 0; list-style: none; font-size: .88rem; color: var(--soft); }
.legend li { display: flex; align-items: center; gap: .45rem; } .legend svg { flex: none; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; }
th { text-align: left; font-weight: 600; color: var(--soft); } th, td { padding: .28rem .6rem .28rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
td:first-child { white-space: nowrap; font-variant-numeric: tabular-nums; color: var(--soft); width: 6rem; } td:nth-child(2) { font-weight: 600; width: 7rem; }
td { overflow-wrap: anywhere; }
table.ways td { white-space: normal; color: var(--ink); font-weight: 400; width: auto; } strong.landed { color: var(--bad); }
dl.details { display: grid; grid-template-columns: max-content 1fr; gap: .25rem 1.2rem; margin: 0; font-size: .95rem; }
dl.details dt { color: var(--soft); } dl.details dd { margin: 0; overflow-wrap: anywhere; }
@media print {
  :root { color-scheme: light;
    --page: #fff; --card: #f5f6f8; --ink: #000; --soft: #444b53; --line: #bbb; --grid: #e4e4e4; --good: #116329; --good-page: #fff; --bad: #b3121d;
    --bad-page: #fff; --on-bad: #fff; --warn: #8a4b00; --warn-page: #ffecd1; --hatch: #7b848e;
    --a0: #1f5fbf; --a1: #a8480a; --a2: #6b3fa0; --a3: #0b6e6e; --a4: #8a1f66; --a5: #4d5a00; --on-worker: #fff; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  body { padding: 0; max-width: none; font-size: 11pt; }
  .scroll { overflow: visible; } svg.timeline { min-width: 0; }
  svg.timeline, .verdict, .figures, tr, li { break-inside: avoid; } h2 { break-after: avoid; }
}
)";

}  // namespace pawl::drill
