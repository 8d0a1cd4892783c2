"""The style sheet of the report: printable, and light or dark as the reader prefers."""

STYLE = """
:root{--paper:#fbfaf8;--card:#fff;--ink:#23262b;--soft:#6b7078;--line:#e4e1db;--bar:#8fb0cf;
--good:#2f7d4f;--fair:#a86a00;--bad:#b3372f;--tint-good:#eaf5ee;--tint-fair:#fdf3e0;
--tint-bad:#fbeae8;--tint:#f1efeb;color-scheme:light dark}
@media (prefers-color-scheme:dark){:root{--paper:#191b1e;--card:#212428;--ink:#e4e5e7;
--soft:#9aa0a8;--line:#363a40;--bar:#4f7396;--good:#6cc090;--fair:#e0a94a;--bad:#ea867d;
--tint-good:#1f3228;--tint-fair:#352b18;--tint-bad:#3a2220;--tint:#2a2e33}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
main{max-width:1040px;margin:0 auto;padding:40px 24px 64px}
h1,h2,h3,p,figure{margin:0}
h2{font-size:19px;font-weight:600;margin:44px 0 14px}
h3{font-size:15px;font-weight:600;margin:18px 0 8px}
code{font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;color:var(--soft)}
.kicker{color:var(--soft);font-size:13px;letter-spacing:.04em;margin-bottom:10px}
.verdict{font-size:24px;line-height:1.3;font-weight:600;padding:18px 22px;border-radius:10px;
border-left:6px solid}
.verdict.good{color:var(--good);background:var(--tint-good)}
.verdict.fair{color:var(--fair);background:var(--tint-fair)}
.verdict.bad{color:var(--bad);background:var(--tint-bad)}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(140px,1fr));gap:12px;
margin-top:16px}
.tile{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:14px 18px}
.tile b{display:block;font-size:25px;font-weight:600;line-height:1.2;
font-variant-numeric:tabular-nums}
.tile span,.more,.axis,.note{color:var(--soft);font-size:13px}
.note{margin-top:12px}
.finding{background:var(--card);border:1px solid var(--line);border-left:4px solid;
border-radius:10px;padding:18px 20px;margin-bottom:16px;break-inside:avoid-page}
.finding.fail{border-left-color:var(--bad)}
.finding.warn{border-left-color:var(--fair)}
.finding h3{margin:0 0 8px;font-size:16px;display:flex;flex-wrap:wrap;align-items:center;gap:10px}
.finding p{margin:4px 0;overflow-wrap:anywhere}
.pill{font-size:11px;font-weight:700;letter-spacing:.06em;text-transform:uppercase;padding:2px 9px;
border-radius:20px}
.pill.fail{color:var(--bad);background:var(--tint-bad)}
.pill.warn{color:var(--fair);background:var(--tint-fair)}
.scroll{overflow-x:auto;margin-top:12px}
table{border-collapse:collapse;width:100%;font-size:14px}
th{text-align:left;font-weight:500;color:var(--soft);font-size:13px;padding:4px 16px 6px 0;
border-bottom:1px solid var(--line);white-space:nowrap}
td{padding:7px 16px 7px 0;border-bottom:1px solid var(--line);vertical-align:middle;
overflow-wrap:break-word;unicode-bidi:isolate;font-variant-numeric:tabular-nums}
tr:last-child td{border-bottom:0}
td:has(.thumb){width:1px}
.thumb{display:block;width:64px;height:64px;object-fit:contain;background:var(--tint);
border-radius:6px;border:1px solid var(--line)}
.thumb.none{display:flex;align-items:center;justify-content:center;text-align:center;font-size:11px;
color:var(--soft);line-height:1.2}
.side .row{color:var(--soft);font-size:13px;margin-right:8px}
.tag{display:inline-block;background:var(--tint);border-radius:5px;padding:0 7px;font-size:13px;
margin-right:6px;unicode-bidi:isolate}
.uri{display:block;font-size:13px;color:var(--soft);unicode-bidi:isolate}
.long,.side{overflow-wrap:anywhere;min-width:150px}
.bars td:first-child{width:22%;padding-right:20px}
.bar{display:flex;align-items:center;gap:8px;min-width:110px}
.bar span{min-width:44px}
.bar b{flex:1}
.bar i{display:block;height:9px;min-width:2px;border-radius:3px;background:var(--bar)}
.bar i.bad{background:var(--bad);opacity:.65}
.bar.zero span{color:var(--bad);font-weight:600}
.bar.zero i{visibility:hidden}
.always{font-size:22px;font-weight:600;line-height:84px;text-align:center;color:var(--soft)}
.figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(230px,100%),1fr));gap:16px}
.figures figure{background:var(--card);border:1px solid var(--line);border-radius:10px;
padding:14px 16px}
.figures figcaption{font-size:13px;color:var(--soft);margin-bottom:8px}
svg{display:block;width:100%;height:84px}
rect{fill:var(--bar)}
.axis{display:flex;justify-content:space-between;border-top:1px solid var(--line);padding-top:4px;
margin-top:2px}
.samples{display:grid;grid-template-columns:repeat(auto-fill,minmax(96px,1fr));gap:16px 14px}
.samples .thumb{width:100%;height:auto;aspect-ratio:1}
.samples figcaption{font-size:13px;text-align:center;margin-top:5px;overflow-wrap:anywhere;
unicode-bidi:isolate}
.result.good{color:var(--good)}
.result.fair{color:var(--fair);font-weight:600}
.result.bad{color:var(--bad);font-weight:600}
@media print{:root{color-scheme:light}body{background:#fff;font-size:12px}main{padding:0;
max-width:none}.scroll{overflow:visible}*{-webkit-print-color-adjust:exact;
print-color-adjust:exact}h2{break-after:avoid}tr,figure{break-inside:avoid}}
@media (max-width:560px){.tiles{grid-template-columns:1fr 1fr}main{padding:20px 14px 40px}
.verdict{font-size:19px}}
@media (max-width:280px){.tiles{grid-template-columns:1fr}}
"""
