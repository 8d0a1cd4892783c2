"""Prints the average precision of results as pycocotools computes it.

    python read_pycocotools.py ANNOTATIONS RESULTS

A line for each size of objects: of each class a list of values, one a threshold; -1 is unknown.
"""

from __future__ import annotations

import json
import sys

from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

truth = COCO(sys.argv[1])
scored = COCOeval(truth, truth.loadRes(sys.argv[2]), "bbox")
scored.evaluate()
scored.accumulate()
# Thresholds, recalls, classes, sizes, and 1, 10 or 100 results an image.
precision = scored.eval["precision"][..., 2].mean(1)
for size in range(4):
    print(json.dumps(precision[:, :, size].T.tolist()))
