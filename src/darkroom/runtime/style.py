"""The style sheets: of pages, printable and light or dark as the reader prefers, and of cards."""

# The colors of both themes. Text differs enough from what is below it to be read.
THEMES = """
:root{--paper:#fbfaf8;--card:#fff;--ink:#23262b;--soft:#62676f;--line:#e4e1db;--bar:#8fb0cf;
--good:#2f7d4f;--fair:#8a5600;--bad:#b3372f;--tint-good:#eaf5ee;--tint-fair:#fdf3e0;
--tint-bad:#fbeae8;--tint:#f1efeb;--accent:#1f5f99;--on-accent:#fff;--train:#3a6ea5;
--right:#2f7d4f;--wrong:#cf5a52;color-scheme:light dark}
@media (prefers-color-scheme:dark){:root{--paper:#191b1e;--card:#212428;--ink:#e4e5e7;
--soft:#a2a8b0;--line:#363a40;--bar:#4f7396;--good:#6cc090;--fair:#e0a94a;--bad:#ea867d;
--tint-good:#1f3228;--tint-fair:#352b18;--tint-bad:#3a2220;--tint:#2a2e33;--accent:#7db4e6;
--on-accent:#10161c;--train:#7fb0dc;--right:#2f7d4f;--wrong:#a8362f}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
"""
# Of classes, by their numbers: seen on photographs, and on pages of both themes.
COLORS = (
    "#4e79a7",
    "#f28e2b",
    "#59a14f",
    "#e15759",
    "#76b7b2",
    "#b07aa1",
    "#9c755f",
    "#edc948",
    "#d9829f",
    "#8c8c99",
)
PAGE_STYLE = (
    THEMES
    + """
main{max-width:1040px;margin:0 auto;padding:40px 24px 64px}
h1,h2,h3,p,figure{margin:0}
main>img{max-width:100%}
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
.thumb rect,.pic rect{fill:none;stroke-width:2;vector-effect:non-scaling-stroke}
.thumb rect[stroke="#000"],.pic rect[stroke="#000"]{stroke-width:4;opacity:.6}
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
.figures{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(300px,100%),1fr));gap:16px}
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
.chart svg{height:auto}
.chart text{fill:var(--soft);font-size:11px}
.chart .grid{stroke:var(--line)}
.chart .mark{stroke:var(--soft);stroke-dasharray:3 4}
.chart polyline{fill:none;stroke-width:2;stroke-linejoin:round}
.chart .ideal{stroke:var(--ink);stroke-dasharray:5 4}
.chart .train polyline{stroke:var(--train)}.chart .train circle{fill:var(--train)}
.chart .eval polyline{stroke:var(--good)}.chart .eval circle{fill:var(--good)}
.key{font-weight:600}.key.train{color:var(--train)}.key.eval{color:var(--good)}
.pic{display:block;width:100%;aspect-ratio:1;background-color:var(--tint);border-radius:6px;
border:1px solid var(--line);background-position:center;background-size:contain;
background-repeat:no-repeat}
.pic svg{width:100%;height:100%}
.pics:has(svg){grid-template-columns:repeat(auto-fill,minmax(min(220px,100%),1fr))}
.pics{display:grid;grid-template-columns:repeat(auto-fill,minmax(112px,1fr));gap:16px 14px}
.pics figcaption{font-size:13px;margin-top:5px;line-height:1.35;overflow-wrap:anywhere}
.pics small{color:var(--soft);display:block;unicode-bidi:isolate}
.pics b{font-weight:600;unicode-bidi:isolate}
.pics .truth{display:block}
.pics .no{color:var(--bad)}.pics .yes{color:var(--good)}
.matrix{width:auto;border-collapse:separate;border-spacing:3px}
.matrix th{border:0;padding:2px 6px;max-width:140px;overflow:hidden;text-overflow:ellipsis;
unicode-bidi:isolate}
.matrix thead th{writing-mode:vertical-rl;transform:rotate(180deg);text-align:left;max-width:none;
max-height:130px;padding:6px 0}
.matrix.flat thead th{writing-mode:initial;transform:none;text-align:center}
.matrix td{width:52px;min-width:34px;height:40px;padding:0;border:0;border-radius:6px;
text-align:center;background:var(--tint)}
.matrix td.none{color:var(--line)}
.matrix summary{list-style:none;cursor:pointer;padding:4px;border-radius:6px;color:var(--ink)}
.matrix summary::-webkit-details-marker{display:none}
.matrix summary .pic{width:44px;margin:3px auto 0}
.matrix summary:hover,.matrix details[open] summary{outline:2px solid var(--bar)}
.matrix .wrong{background:color-mix(in srgb,var(--wrong) var(--share),var(--tint))}
.matrix .right{background:color-mix(in srgb,var(--right) var(--share),var(--tint))}
.sheet{position:fixed;left:0;right:0;bottom:0;z-index:9;background:var(--card);
padding:14px 24px 20px;border-top:1px solid var(--line);box-shadow:0 -8px 30px #0003;
text-align:left;max-height:46vh;overflow-y:auto}
.sheet h3{margin:0 0 10px}
.sheet .pics{max-width:1040px}
.more+.pics,.more+.scroll{margin-top:12px}
.plain td:first-child{width:30%;color:var(--soft)}
.plain td{overflow-wrap:anywhere}
@media print{:root{color-scheme:light}body{background:#fff;font-size:12px}main{padding:0;
max-width:none}.scroll{overflow:visible}*{-webkit-print-color-adjust:exact;
print-color-adjust:exact}h2{break-after:avoid}.sheet{display:none}tr,figure{break-inside:avoid}}
@media (max-width:560px){.tiles{grid-template-columns:1fr 1fr}main{padding:20px 14px 40px}
.verdict{font-size:19px}table:has(.side) tr{display:grid;grid-template-columns:80px 1fr}
table:has(.side) th{display:none}}
@media (max-width:280px){.tiles{grid-template-columns:1fr}}
"""
)
# A notebook is light or dark whatever the reader prefers, so colors are translucent or those of its
# text. It styles tables by rules that are more specific than those of a class.
CARD_STYLE = """
.darkroom-card{font:13px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,sans-serif;
max-width:860px;padding:4px 0 6px}
.darkroom-card h4{font-size:15px;font-weight:600;margin:0 0 4px}
.darkroom-card .good{color:#2f8f57}.darkroom-card .fair{color:#b87800}
.darkroom-card .bad{color:#d0443a}
.darkroom-card p{margin:6px 0 0;opacity:.65}
.darkroom-card table{border-collapse:collapse;margin:8px 0 0;border:0;width:auto;font-size:13px}
.darkroom-card tr,.darkroom-card tbody tr:nth-child(odd){background:none}
.darkroom-card th,.darkroom-card td{text-align:left!important;vertical-align:top;border:0;
padding:2px 20px 2px 0;max-width:460px;overflow-wrap:anywhere;unicode-bidi:isolate;
white-space:normal}
.darkroom-card th{font-weight:500;opacity:.65;white-space:nowrap}
.darkroom-card tbody tr{border-top:1px solid #8883}
.darkroom-card td.number{text-align:right!important;font-variant-numeric:tabular-nums;
white-space:nowrap}
.darkroom-card img{max-width:100%;margin-top:8px}
.darkroom-card .strip{display:flex;flex-wrap:wrap;gap:6px 10px;margin-top:8px}
.darkroom-card figure{margin:0;width:96px;font-size:11px;line-height:1.3;overflow-wrap:anywhere}
.darkroom-card .thumb{display:block;width:96px;height:96px;object-fit:contain;margin:0}
.darkroom-card rect{fill:none;stroke-width:2;vector-effect:non-scaling-stroke}
"""
