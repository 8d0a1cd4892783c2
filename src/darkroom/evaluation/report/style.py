"""The additions of the page of a model to the style sheet of reports."""

from __future__ import annotations

from darkroom.validation.report.style import STYLE

PAGE_STYLE = (
    STYLE
    + """
:root{--train:#3a6ea5;--right:var(--good);--wrong:#cf5a52}
@media (prefers-color-scheme:dark){:root{--train:#7fb0dc;--right:#2f7d4f;--wrong:#a8362f}}
.chart svg{height:auto}
.chart text{fill:var(--soft);font-size:11px}
.chart .grid{stroke:var(--line)}
.chart .mark{stroke:var(--soft);stroke-dasharray:3 4}
.chart polyline{fill:none;stroke-width:2;stroke-linejoin:round}
.chart .ideal{stroke:var(--ink);stroke-dasharray:5 4}
.chart .train polyline{stroke:var(--train)}.chart .train circle{fill:var(--train)}
.chart .eval polyline{stroke:var(--good)}.chart .eval circle{fill:var(--good)}
.key{font-weight:600}.key.train{color:var(--train)}.key.eval{color:var(--good)}
.figures{grid-template-columns:repeat(auto-fill,minmax(min(300px,100%),1fr))}
.pic{display:block;width:100%;aspect-ratio:1;background-color:var(--tint);border-radius:6px;
border:1px solid var(--line);background-position:center;background-size:contain;
background-repeat:no-repeat}
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
@media print{.sheet{display:none}}
"""
)


def make_picture_rules(thumbnails: dict[int, str]) -> str:
    """Returns a rule for each image, so that one that is shown twice is in the page once."""
    return "".join(
        f".i{number}{{background-image:url({uri})}}\n" for number, uri in thumbnails.items()
    )
